//! The names of speakers: found in questions, and taken out of what is embedded or searched by words.
//!
//! Who speaks belongs to a message's metadata. In the texts, names only pull everything that mentions a person together.

use std::collections::BTreeSet;

use super::words::{Word, lower_case, words};

/// Speakers that are roles: what they are called says nothing about who they are.
const ROLES: [&str; 8] = [
    "user",
    "assistant",
    "system",
    "tool",
    "developer",
    "function",
    "human",
    "ai",
];

/// Whether a speaker is a role, not a person.
pub(crate) fn is_role(speaker: &str) -> bool {
    ROLES.iter().any(|role| speaker.eq_ignore_ascii_case(role))
}

/// The words of a name by which someone may be called: those of more than one letter, in lower case.
pub(crate) fn name_words(speaker: &str) -> Vec<String> {
    if is_role(speaker) {
        return Vec::new();
    }
    let lower = lower_case(speaker);
    words(&lower)
        .iter()
        .filter(|word| word.text.chars().nth(1).is_some())
        .map(|word| word.text.to_owned())
        .collect()
}

/// The words of several names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    words: BTreeSet<String>,
}

impl Names {
    /// The words of the speakers' names; role words are none.
    pub fn of<'a>(speakers: impl IntoIterator<Item = &'a str>) -> Self {
        let words = speakers.into_iter().flat_map(name_words).collect();
        Self { words }
    }

    /// Whether a word in lower case is part of a name.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    /// The text without the names, with the possessive "'s" that follows one, and without the blanks that this leaves
    /// over; the text itself where nothing else would be left.
    pub fn strip(&self, text: &str) -> String {
        let words = words(text);
        let mut kept = String::with_capacity(text.len());
        let mut from = 0;
        for (index, word) in words.iter().enumerate() {
            if self.words.contains(&lower_case(word.text)) {
                kept.push_str(&text[from..word.start]);
                from = end_of_name(&words[index..]);
            }
        }
        if from == 0 {
            return text.to_owned();
        }
        kept.push_str(&text[from..]);
        let tidy = tidied(&kept);
        if tidy.chars().any(char::is_alphanumeric) {
            tidy
        } else {
            text.to_owned()
        }
    }
}

/// Where a name ends, its possessive included.
fn end_of_name(words: &[Word<'_>]) -> usize {
    match words {
        [_, next, ..] if matches!(next.gap, "'" | "’") && next.text.eq_ignore_ascii_case("s") => {
            next.end()
        }
        _ => words[0].end(),
    }
}

/// One blank for each run of blanks, none before a comma, a full stop or the like, none at the ends.
fn tidied(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    for character in text.trim().chars() {
        let blank = matches!(character, ' ' | '\t');
        if blank && tidy.ends_with(' ') {
            continue;
        }
        if matches!(character, ',' | '.' | '!' | '?') {
            tidy.truncate(tidy.trim_end().len());
        }
        tidy.push(if blank { ' ' } else { character });
    }
    tidy
}
