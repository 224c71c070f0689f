//! How cl100k_base cuts a text into pieces, each of which is then encoded by itself.
//!
//! The pattern is tiktoken's:
//! `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`.

use super::class::{MARK, NEWLINE, NUMBER, OTHER};
use super::runs::class_at;
use super::runs::{
    BLANK, LETTER, all_but_last, ascii_word_end, contraction_end, is_at, last_newline_end,
    numbers_end, run_end,
};

const SYMBOL: u8 = MARK | OTHER;

/// The end of the piece that begins at `start`; `start` itself at the end of the text.
pub(super) fn piece_end(text: &str, start: usize) -> usize {
    let letter = u8::is_ascii_alphabetic;
    if let Some(end) = ascii_word_end(text, start, letter, letter) {
        return end;
    }
    let Some((class, next)) = class_at(text, start) else {
        return start;
    };
    if class & LETTER != 0 {
        return run_end(text, next, LETTER);
    }
    if class == NUMBER {
        return numbers_end(text, start);
    }
    if let Some(end) = contraction_end(text, start) {
        return end;
    }
    if class != NEWLINE && is_at(text, next, LETTER) {
        return run_end(text, next, LETTER);
    }
    if class & SYMBOL != 0 || (text.as_bytes()[start] == b' ' && is_at(text, next, SYMBOL)) {
        return run_end(text, run_end(text, next, SYMBOL), NEWLINE);
    }
    blanks_end(text, start)
}

fn blanks_end(text: &str, start: usize) -> usize {
    let end = run_end(text, start, BLANK);
    if end == text.len() {
        return end;
    }
    last_newline_end(text, start, end).unwrap_or_else(|| all_but_last(text, start, end))
}
