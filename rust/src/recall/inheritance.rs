//! Components `answer` and `next`: a message inherits the score of the question that it answers, and a little of the
//! message after it. Both are of one session, and short: a long message stands for itself.

use super::scope::View;

/// Words of a short message, at most.
const SHORT: usize = 200;

/// Whether a text is short.
pub(super) fn is_short(text: &str) -> bool {
    text.split_whitespace().take(SHORT + 1).count() <= SHORT
}

/// Whether a text asks a question, in the marks of Latin, Chinese and Japanese, Arabic, Armenian or Ethiopic writing.
pub(super) fn asks(text: &str) -> bool {
    text.contains(['?', '？', '؟', '՞', '፧'])
}

/// Writes to each message that follows a question the score of the question.
pub(super) fn write_answers(view: &View<'_>, scores: &[f64], values: &mut [f32]) {
    let surroundings = &view.content.layout().surroundings;
    let asks = |slot: &usize| view.content.traits(*slot as u32).signs.asks;
    inherit(scores, values, |slot| {
        surroundings.before(slot).filter(asks)
    });
}

/// Writes to each message the score of the one after it.
pub(super) fn write_nexts(view: &View<'_>, scores: &[f64], values: &mut [f32]) {
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
