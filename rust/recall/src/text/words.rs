//! The words of a text with what stands between them, for rules that read phrases.

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// A run of letters, digits and underscores, with the accents that stand apart from their letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// Where it starts in its text, in bytes.
    pub(crate) start: usize,
    /// What stands between the word before, or the start of the text, and this one.
    pub(crate) gap: &'a str,
}

impl Word<'_> {
    /// Whether the word follows the one before after one blank.
    pub(crate) fn follows(&self) -> bool {
        self.gap == " "
    }

    /// Whether its last letter is in lower case.
    pub(crate) fn ends_in_lower_case(&self) -> bool {
        self.text
            .trim_end_matches(is_accent)
            .ends_with(char::is_lowercase)
    }

    /// Whether it has letters alone.
    pub(crate) fn is_of_letters(&self) -> bool {
        self.text
            .chars()
            .all(|character| character.is_alphabetic() || is_accent(character))
    }

    /// Where it ends in its text, in bytes.
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The words of a text, in order.
pub(crate) fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut end = 0;
    for run in text.split(|character: char| !is_word_character(character)) {
        let run = run.trim_start_matches(is_accent);
        if !run.is_empty() {
            let start = run.as_ptr().addr() - text.as_ptr().addr();
            let gap = &text[end..start];
            words.push(Word {
                text: run,
                start,
                gap,
            });
            end = start + run.len();
        }
    }
    words
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || is_accent(character)
}

/// Whether a character changes the letter before it: an accent that stands apart, or a sign such as a virama.
pub(crate) fn is_accent(character: char) -> bool {
    !character.is_ascii() && canonical_combining_class(character) != 0
}

/// The text in lower case, its accents joined with their letters: in NFC.
pub(crate) fn lower_case(text: &str) -> String {
    let lower = text.to_lowercase();
    if lower.is_ascii() || is_nfc_quick(lower.chars()) == IsNormalized::Yes {
        lower
    } else {
        lower.nfc().collect()
    }
}

/// Whether the words begin with the phrase, its words parted by one blank each.
pub(crate) fn begin_with(words: &[Word<'_>], phrase: &[&str]) -> bool {
    words.len() >= phrase.len()
        && words
            .iter()
            .zip(phrase)
            .all(|(word, other)| word.text == *other)
        && words[1..phrase.len()].iter().all(Word::follows)
}
