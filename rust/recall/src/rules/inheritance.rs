//! Components `answer` and `next`: a message inherits the score of the question that it answers, and a little of the
//! message after it. Both are of one session, and short: a long message stands for itself. A question is shorter yet: what
//! a longer message asks is little of what it says.

use crate::memory::View;

/// Writes to each message that follows a question the score of the question.
pub(crate) fn write_answers(view: &View<'_>, scores: &[f64], values: &mut [f32]) {
    let surroundings = &view.content.layout().surroundings;
    let asks = |slot: &usize| view.content.traits(*slot as u32).signs.asks;
    inherit(scores, values, |slot| {
        surroundings.before(slot).filter(asks)
    });
}

/// Writes to each message the score of the one after it.
pub(crate) fn write_nexts(view: &View<'_>, scores: &[f64], values: &mut [f32]) {
    let surroundings = &view.content.layout().surroundings;
    inherit(scores, values, |slot| surroundings.after(slot));
}

/// Writes to each document the score of the one that `source` gives.
fn inherit(scores: &[f64], values: &mut [f32], source: impl Fn(usize) -> Option<usize>) {
    for (slot, value) in values.iter_mut().enumerate() {
        if let Some(source) = source(slot) {
            *value = scores[source] as f32;
        }
    }
}
