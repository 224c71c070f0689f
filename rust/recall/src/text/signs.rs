//! What rules look for in a text of a message.

use super::english::{named, temporal};

/// Words of a short message, at most.
const SHORT: usize = 200;

/// Words of a question, at most.
const QUESTION: usize = 60;

/// What rules look for in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signs {
    /// Whether it asks a question.
    pub(crate) asks: bool,
    /// Whether it speaks of a time.
    pub(crate) timed: bool,
    /// Whether it names somebody or something.
    pub(crate) names: bool,
    /// Whether it is short enough to inherit.
    pub(crate) short: bool,
}

impl Signs {
    /// Those of a text that is not there.
    pub(crate) const NONE: Self = Self {
        asks: false,
        timed: false,
        names: false,
        short: false,
    };

    pub(crate) fn of(text: &str) -> Self {
        Self {
            asks: asks(text),
            timed: temporal::speaks_of_time(text),
            names: named::names_something(text),
            short: is_short(text),
        }
    }
}

/// Whether a text is short.
pub(crate) fn is_short(text: &str) -> bool {
    has_words_up_to(SHORT, text)
}

/// Whether a text asks a question, in the marks of Latin, Chinese and Japanese, Arabic, Armenian or Ethiopic writing, and
/// says little else.
pub(crate) fn asks(text: &str) -> bool {
    text.contains(['?', '？', '؟', '՞', '፧']) && has_words_up_to(QUESTION, text)
}

fn has_words_up_to(most: usize, text: &str) -> bool {
    text.split_whitespace().take(most + 1).count() <= most
}
