//! Component `recency`: how recent a message is among those of the scope.
//!
//! Age counts from the scope's newest message, not from now: a ranking depends only on what is stored.

use crate::memory::View;

/// Writes to each document 1 for the newest of the scope, and half of it for each half-life, in seconds, that it is older.
pub(crate) fn write(views: &[View<'_>], half_life: f64, values: &mut [f32]) {
    let documents = || {
        views.iter().flat_map(|view| {
            let order = view.content.order().iter();
            order.map(|&(_, slot)| (view.base + slot as usize, view.content.traits(slot).time))
        })
    };
    let Some(newest) = documents().map(|(_, time)| time).max() else {
        return;
    };
    for (row, time) in documents() {
        let age = newest.saturating_sub(time) as f64 / 1e6;
        values[row] = (-age / half_life).exp2() as f32;
    }
}
