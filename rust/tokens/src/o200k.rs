//! How o200k_base cuts a text into pieces, each of which is then encoded by itself.
//!
//! The pattern is tiktoken's, the alternatives in this order, C being `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`:
//! `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+C`,
//! `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*C`,
//! `\p{N}{1,3}`, ` ?[^\s\p{L}\p{N}]+[\r\n/]*`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`.

use super::class::{LOWER, MARK, NEWLINE, NUMBER, OTHER, UNCASED, UPPER};
use super::runs::{
    BLANK, LETTER, all_but_last, ascii_word_end, class_at, contraction_end, is_at, last_end,
    last_newline_end, numbers_end, run_end,
};

const SYMBOL: u8 = MARK | OTHER;
/// What both the upper and the lower part of a word may hold.
const EITHER: u8 = UNCASED | MARK;

/// The end of the piece that begins at `start`; `start` itself at the end of the text.
pub(super) fn piece_end(text: &str, start: usize) -> usize {
    if let Some(end) = ascii_word_end(text, start, u8::is_ascii_uppercase, u8::is_ascii_lowercase) {
        return end;
    }
    let Some((class, next)) = class_at(text, start) else {
        return start;
    };
    if class == NUMBER {
        return numbers_end(text, start);
    }
    if let Some(end) = word_end(text, start, class, next) {
        return contraction_end(text, end).unwrap_or(end);
    }
    if class & SYMBOL != 0 || (text.as_bytes()[start] == b' ' && is_at(text, next, SYMBOL)) {
        return symbols_end(text, next);
    }
    blanks_end(text, start)
}

/// The first two alternatives, in the order in which a backtracking matcher tries them.
fn word_end(text: &str, start: usize, class: u8, next: usize) -> Option<usize> {
    let after_lead = (class & (LETTER | NEWLINE) == 0).then_some(next);
    let (led, bare) = (
        after_lead.map(|at| Upper::new(text, at)),
        Upper::new(text, start),
    );
    led.as_ref()
        .and_then(|upper| upper.with_lower(text))
        .or_else(|| bare.with_lower(text))
        .or_else(|| led.and_then(|upper| upper.alone()))
        .or_else(|| bare.alone())
}

/// A run of characters that may stand in the upper part of a word.
struct Upper {
    start: usize,
    end: usize,
}

impl Upper {
    fn new(text: &str, start: usize) -> Self {
        let end = run_end(text, start, UPPER | EITHER);
        Self { start, end }
    }

    /// The end of the word with a lower part, which takes the last characters that may be either when none else follows.
    fn with_lower(&self, text: &str) -> Option<usize> {
        if is_at(text, self.end, LOWER) {
            return Some(run_end(text, self.end, LOWER | EITHER));
        }
        last_end(text, self.start, self.end, EITHER)
    }

    fn alone(&self) -> Option<usize> {
        (self.end > self.start).then_some(self.end)
    }
}

fn symbols_end(text: &str, at: usize) -> usize {
    let end = run_end(text, at, SYMBOL);
    let tail = |byte: &&u8| matches!(byte, b'\r' | b'\n' | b'/');
    end + text.as_bytes()[end..].iter().take_while(tail).count()
}

fn blanks_end(text: &str, start: usize) -> usize {
    let end = run_end(text, start, BLANK);
    if let Some(newline) = last_newline_end(text, start, end) {
        return newline;
    }
    if end == text.len() {
        return end;
    }
    all_but_last(text, start, end)
}
