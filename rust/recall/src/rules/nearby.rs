//! Component `nearby`: the best of a message's neighbours.

use crate::memory::View;

/// Writes to each document the best score among its neighbours.
pub(crate) fn write_nearby(view: &View<'_>, scores: &[f64], values: &mut [f32]) {
    let surroundings = &view.content.layout().surroundings;
    for (slot, value) in values.iter_mut().enumerate() {
        for other in surroundings.around(slot) {
            *value = value.max(scores[other] as f32);
        }
    }
}
