//! Components `answer` and `next`: a message inherits the score of the question that it answers, and a little of the
//! message after it. Both are of one session, and short: a long message stands for itself. A question is shorter yet: what
//! a longer message asks is little of what it says.

use super::scope::View;

/// Words of a short message, at most.
const SHORT: usize = 200;

/// Words of a question, at most.
const QUESTION: usize = 60;

/// Whether a text is short.
pub(super) fn is_short(text: &str) -> bool {
    has_words_up_to(SHORT, text)
}

/// Whether a text asks a question, in the marks of Latin, Chinese and Japanese, Arabic, Armenian or Ethiopic writing, and
/// says little else.
pub(super) fn asks(text: &str) -> bool {
    text.contains(['?', '？', '؟', '՞', '፧']) && has_words_up_to(QUESTION, text)
}

fn has_words_up_to(most: usize, text: &str) -> bool {
    text.split_whitespace().take(most + 1).count() <= most
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
