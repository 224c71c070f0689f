//! Components `answer` and `next`: a message inherits the score of the question that it answers, and a little of the
//! message after it. Both are of one session, and short: a long message stands for itself.

use super::scope::View;
use super::sessions::Sessions;

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
pub(super) fn answers(views: &[View<'_>], sessions: &Sessions, scores: &[f64], values: &mut [f32]) {
    for view in views {
        each_pair(view, sessions, |question, answer| {
            if view.content.traits(question).signs.asks {
                values[view.base + answer as usize] = scores[view.base + question as usize] as f32;
            }
        });
    }
}

/// Writes to each message the score of the one after it.
pub(super) fn nexts(views: &[View<'_>], sessions: &Sessions, scores: &[f64], values: &mut [f32]) {
    for view in views {
        each_pair(view, sessions, |first, next| {
            values[view.base + first as usize] = scores[view.base + next as usize] as f32;
        });
    }
}

/// Visits the slots of neighbours that are both short and of one session.
fn each_pair(view: &View<'_>, sessions: &Sessions, mut visit: impl FnMut(u32, u32)) {
    let content = &view.content;
    for pair in content.order().windows(2) {
        let (first, second) = (pair[0].1, pair[1].1);
        let places = (view.base + first as usize, view.base + second as usize);
        if content.traits(first).signs.short
            && content.traits(second).signs.short
            && sessions.same(places.0, places.1)
        {
            visit(first, second);
        }
    }
}
