//! The spellings from which a word differs by one typing error.

/// The letters that an error may have replaced, added or left out.
const LETTERS: std::ops::RangeInclusive<u8> = b'a'..=b'z';

/// Visits each spelling with two neighbours of a word exchanged, one letter more than it, one other letter or one letter
/// less, in this order; one may come again. The word is of ASCII letters in lower case. Its first letter stays: it is mostly
/// right.
pub(crate) fn each_near(word: &str, mut visit: impl FnMut(&str)) {
    let mut near = String::with_capacity(word.len() + 1);
    let mut emit = |head: &str, letters: &[u8], tail: &str| {
        near.clear();
        near.push_str(head);
        near.extend(letters.iter().copied().map(char::from));
        near.push_str(tail);
        visit(&near);
    };
    for (at, pair) in word.as_bytes().windows(2).enumerate().skip(1) {
        emit(&word[..at], &[pair[1], pair[0]], &word[at + 2..]);
    }
    for at in 1..=word.len() {
        for letter in LETTERS {
            emit(&word[..at], &[letter], &word[at..]);
        }
    }
    for at in 1..word.len() {
        for letter in LETTERS {
            emit(&word[..at], &[letter], &word[at + 1..]);
        }
    }
    for at in 1..word.len() {
        emit(&word[..at], &[], &word[at + 1..]);
    }
}

/// How many spellings [`each_near`] visits, for a word of so many letters.
pub(crate) fn count_near(letters: usize) -> usize {
    54 * letters
}
