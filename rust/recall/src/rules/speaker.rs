//! Component `speaker`: messages of whom the question names, or of the user where it speaks of "I".

use rustc_hash::FxHashSet;

use crate::memory::View;
use crate::text::english::persons::{asks_for_advice, is_in_first_person};
use crate::text::names::name_words;
use crate::text::words::Word;

/// Whose messages a question is about.
pub(crate) enum Asked<'a> {
    /// Those of these speakers.
    Speakers(FxHashSet<&'a str>),
    /// Those with the role `user`.
    User,
    /// It does not say, or names everybody.
    Anybody,
}

impl<'a> Asked<'a> {
    /// Reads a question, in lower case, that is asked of the scope's speakers, role words included.
    pub(crate) fn of(question: &[Word<'_>], speakers: &FxHashSet<&'a str>) -> Self {
        let asked: FxHashSet<&str> = question.iter().map(|word| word.text).collect();
        let is_named = |speaker: &&&str| {
            let words = name_words(speaker);
            words.iter().any(|word| asked.contains(word.as_str()))
        };
        let named: FxHashSet<_> = speakers.iter().filter(is_named).copied().collect();
        if named.is_empty() && is_in_first_person(question) && !asks_for_advice(question) {
            Self::User
        } else if named.is_empty() || named.len() == speakers.len() {
            Self::Anybody
        } else {
            Self::Speakers(named)
        }
    }

    /// Calls `mark` with the slots of the messages that are asked for.
    pub(crate) fn each_slot(&self, view: &View<'_>, mut mark: impl FnMut(u32)) {
        let content = &view.content;
        let wanted = match self {
            Self::Speakers(named) => content.speakers_where(|name| named.contains(name)),
            _ => Vec::new(),
        };
        for &(_, slot) in content.order() {
            let traits = content.traits(slot);
            let matches = match self {
                Self::Speakers(_) => wanted[traits.speaker as usize],
                Self::User => traits.by_user,
                Self::Anybody => false,
            };
            if matches {
                mark(slot);
            }
        }
    }
}
