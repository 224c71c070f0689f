//! Identifiers in a question: the numbers of tickets and orders, codes, names of files, addresses.
//!
//! Whoever types one means the message that has it, letter by letter. Nothing here belongs to a language.

/// The words of a text that identify something, without the punctuation around them.
pub(crate) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace();
    words
        .map(|word| word.trim_matches(|character: char| !character.is_alphanumeric()))
        .filter(|word| identifies(word))
}

/// Digits of a number that is no age, amount of something or day.
const DIGITS: usize = 3;

/// Letters behind a number that are a unit or an ending: "3rd", "7pm", "90s".
const ENDING: usize = 2;

fn identifies(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    if word.contains(['@', '_']) || is_file_name(word) {
        return true;
    }
    if word.chars().any(char::is_alphabetic) {
        digits > 0 && !is_quantity(word)
    } else {
        digits >= DIGITS && !is_year(word) && !word.contains(':')
    }
}

/// Whether a word is a name with an ending behind a full stop: a file, a host, a method.
fn is_file_name(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(stem, ending)| {
        stem.len() >= 2
            && (2..=5).contains(&ending.len())
            && ending
                .chars()
                .all(|character| character.is_ascii_alphanumeric())
            && ending
                .chars()
                .any(|character| character.is_ascii_alphabetic())
    })
}

/// Whether a word is a small number with a unit or an ending.
fn is_quantity(word: &str) -> bool {
    let rest = word.trim_start_matches(|character: char| {
        character.is_ascii_digit() || matches!(character, '.' | ',' | ':')
    });
    let number = word.len() - rest.len();
    number > 0
        && number <= 4
        && rest.chars().count() <= ENDING
        && rest.chars().all(char::is_alphabetic)
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && (word.starts_with("19") || word.starts_with("20"))
}
