//! Runs of characters of given classes, and what the patterns of both encodings share.

use super::class::{LOWER, NEWLINE, NUMBER, SPACE, UNCASED, UPPER};

pub(super) const LETTER: u8 = UPPER | LOWER | UNCASED;
pub(super) const BLANK: u8 = SPACE | NEWLINE;

/// The longest run of numbers in one piece, in characters.
const NUMBERS: usize = 3;

const BLOCK_BITS: u32 = 8;
const BLOCKS_START: usize = 0x11_0000 >> BLOCK_BITS;

/// The block of each 256 characters, then the blocks (see the build script).
static CLASSES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.bin"));

/// The end of a word of ASCII characters that begins at `start`, with or without a space before it, where nothing follows
/// that might belong to it by the pattern: most pieces of English and of programs. `None` leaves it to the pattern.
///
/// `head` are the letters that the word may begin with, `rest` those that it goes on with.
#[inline]
pub(super) fn ascii_word_end(
    text: &str,
    start: usize,
    head: impl Fn(&u8) -> bool,
    rest: impl Fn(&u8) -> bool,
) -> Option<usize> {
    let bytes = text.as_bytes();
    let first = start + usize::from(bytes.get(start) == Some(&b' '));
    let head_length = bytes[first..].iter().take_while(|b| head(b)).count();
    let tail = &bytes[first + head_length..];
    let length = head_length + tail.iter().take_while(|b| rest(b)).count();
    let ends_here = |next: &u8| next.is_ascii() && *next != b'\'';
    (length > 0 && bytes.get(first + length).is_none_or(ends_here)).then_some(first + length)
}

fn class_of(character: char) -> u8 {
    let code = character as usize;
    let block = CLASSES[code >> BLOCK_BITS] as usize;
    CLASSES[BLOCKS_START + (block << BLOCK_BITS) + (code & 0xff)]
}

/// The class of the character at a boundary and where it ends; `None` at the end of the text.
#[inline]
pub(super) fn class_at(text: &str, at: usize) -> Option<(u8, usize)> {
    let byte = *text.as_bytes().get(at)?;
    if byte.is_ascii() {
        return Some((class_of(byte as char), at + 1));
    }
    let character = text[at..].chars().next()?;
    Some((class_of(character), at + character.len_utf8()))
}

#[inline]
pub(super) fn is_at(text: &str, at: usize, classes: u8) -> bool {
    class_at(text, at).is_some_and(|(class, _)| class & classes != 0)
}

/// The end of the run of characters of the classes that begins at `at`; `at` itself where there is none.
#[inline]
pub(super) fn run_end(text: &str, mut at: usize, classes: u8) -> usize {
    while let Some((class, next)) = class_at(text, at) {
        if class & classes == 0 {
            break;
        }
        at = next;
    }
    at
}

/// The start of the run of characters of the classes that ends at `at`.
pub(super) fn run_start(text: &str, at: usize, classes: u8) -> usize {
    let outside = |character: &char| class_of(*character) & classes == 0;
    text[..at]
        .char_indices()
        .rev()
        .take_while(|(_, character)| !outside(character))
        .last()
        .map_or(at, |(start, _)| start)
}

/// The end of the last character of the classes in a run.
pub(super) fn last_end(text: &str, start: usize, end: usize, classes: u8) -> Option<usize> {
    text[start..end]
        .char_indices()
        .rev()
        .find(|(_, character)| class_of(*character) & classes != 0)
        .map(|(offset, character)| start + offset + character.len_utf8())
}

/// `\p{N}{1,3}`
pub(super) fn numbers_end(text: &str, mut at: usize) -> usize {
    for _ in 0..NUMBERS {
        match class_at(text, at) {
            Some((NUMBER, next)) => at = next,
            _ => break,
        }
    }
    at
}

/// `'(?i:[sdmt]|ll|ve|re)`. U+017F folds to an s.
pub(super) fn contraction_end(text: &str, at: usize) -> Option<usize> {
    let rest = text.as_bytes()[at..].strip_prefix(b"'")?;
    match rest {
        [b's' | b'S' | b'd' | b'D' | b'm' | b'M' | b't' | b'T', ..] => Some(at + 2),
        [b'l' | b'L', b'l' | b'L', ..]
        | [b'v' | b'V' | b'r' | b'R', b'e' | b'E', ..]
        | [0xc5, 0xbf, ..] => Some(at + 3),
        _ => None,
    }
}

/// The end of the last line feed or carriage return in a run of blanks.
pub(super) fn last_newline_end(text: &str, start: usize, end: usize) -> Option<usize> {
    let newline = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let last = text.as_bytes()[start..end].iter().rposition(newline)?;
    Some(start + last + 1)
}

/// `\s+(?!\S)|\s+` where something follows the run: all but its last character, which begins the next piece.
pub(super) fn all_but_last(text: &str, start: usize, end: usize) -> usize {
    match text[start..end].char_indices().next_back() {
        Some((last, _)) if last > 0 => start + last,
        _ => end,
    }
}
