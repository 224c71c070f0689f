//! Texts cut to a count of tokens.
//!
//! A text is cut where the count of all its pieces says, give or take a few pieces: the cut itself changes how the pieces
//! around it fall. That window is searched character by character, the rest of the text is counted once.

use super::class::NUMBER;
use super::runs::{BLANK, is_at, run_end, run_start};
use super::tokenizer::Tokenizer;

/// The longest window that is searched character by character, in bytes.
const WINDOW: usize = 1024;
/// How many estimates of a cut are checked in a longer one.
const TRIES: usize = 16;

/// The longest prefix of a text with at most `max_tokens`.
pub(super) fn longest_prefix<'t>(
    tokenizer: &Tokenizer,
    text: &'t str,
    max_tokens: usize,
) -> &'t str {
    let window = PrefixWindow::find(tokenizer, text, max_tokens);
    window.map_or(text, |window| &text[..window.cut()])
}

/// The longest suffix of a text with at most `max_tokens`.
pub(super) fn longest_suffix<'t>(
    tokenizer: &Tokenizer,
    text: &'t str,
    max_tokens: usize,
) -> &'t str {
    let window = SuffixWindow::find(tokenizer, text, max_tokens);
    window.map_or(text, |window| &text[window.cut()..])
}

/// A border between two pieces.
#[derive(Clone, Copy, Default)]
struct Border {
    at: usize,
    /// The tokens of the text on the side that is kept.
    tokens: usize,
}

/// Where the longest prefix ends: after `settled`, at `end` at the latest.
struct PrefixWindow<'a> {
    tokenizer: &'a Tokenizer,
    text: &'a str,
    max_tokens: usize,
    /// The last border before `exceeding` that stays one, with the same pieces before it, however the text is cut after
    /// it. A border in or at the end of a run of blanks is none: the pieces of such a run depend on what follows it.
    settled: Border,
    /// The start of the first piece that exceeds the tokens.
    exceeding: Border,
    end: usize,
}

impl<'a> PrefixWindow<'a> {
    /// `None` if the whole text fits.
    fn find(tokenizer: &'a Tokenizer, text: &'a str, max_tokens: usize) -> Option<Self> {
        let mut encoder = tokenizer.encoder();
        let mut settled = Border::default();
        let mut border = Border::default();
        for piece in tokenizer.pieces(text) {
            let bytes = &text.as_bytes()[piece.clone()];
            let is_blank = text[piece.clone()].trim_start().is_empty();
            let Some(count) = encoder.count_up_to(bytes, max_tokens - border.tokens) else {
                let run_end = run_end(text, piece.start, BLANK);
                return Some(Self {
                    tokenizer,
                    text,
                    max_tokens,
                    settled,
                    exceeding: border,
                    end: if is_blank { run_end } else { piece.end },
                });
            };
            border.at = piece.end;
            border.tokens += count;
            if !is_blank {
                settled = border;
            }
        }
        None
    }

    fn cut(&self) -> usize {
        let cut = if self.end - self.settled.at <= WINDOW {
            self.boundaries(self.settled.at, self.end)
                .find(|offset| self.excess(*offset) == 0)
        } else {
            self.estimate(self.exceeding, self.end)
                .or_else(|| self.estimate(self.settled, self.exceeding.at))
        };
        cut.unwrap_or(self.settled.at)
    }

    /// The ends of the characters between two offsets, the last first.
    fn boundaries(&self, start: usize, end: usize) -> impl Iterator<Item = usize> {
        let is_boundary = |offset: &usize| self.text.is_char_boundary(*offset);
        (start + 1..=end).rev().filter(is_boundary)
    }

    /// By how many tokens the prefix that ends at an offset exceeds the most that are allowed.
    fn excess(&self, offset: usize) -> usize {
        let tokens = self.tokenizer.count(&self.text[self.settled.at..offset]);
        (self.settled.tokens + tokens).saturating_sub(self.max_tokens)
    }

    /// A cut after some tokens of the text from a border to an offset, taken for one piece, that keeps to the tokens.
    fn estimate(&self, from: Border, end: usize) -> Option<usize> {
        let mut budget = self.max_tokens - from.tokens;
        let reach = self.tokenizer.vocabulary.most_bytes(budget);
        let end = end.min(from.at.saturating_add(reach));
        let bytes = &self.text.as_bytes()[from.at..end];
        let lengths = self.tokenizer.encoder().lengths(bytes);
        for _ in 0..TRIES {
            let kept = lengths.iter().take(budget).sum::<usize>();
            let cut = self.boundaries(from.at, from.at + kept).next()?;
            match self.excess(cut) {
                0 => return Some(cut),
                excess => budget = budget.checked_sub(excess)?,
            }
        }
        None
    }
}

/// Where the longest suffix starts: at `start` or later, at `kept` at the latest.
struct SuffixWindow<'a> {
    tokenizer: &'a Tokenizer,
    text: &'a str,
    max_tokens: usize,
    /// The first border of two pieces after which the text has few enough tokens.
    kept: Border,
    /// The start of the piece before `kept`.
    exceeding: usize,
    start: usize,
}

impl<'a> SuffixWindow<'a> {
    /// `None` if the whole text fits.
    fn find(tokenizer: &'a Tokenizer, text: &'a str, max_tokens: usize) -> Option<Self> {
        let mut encoder = tokenizer.encoder();
        let mut pieces = tokenizer.pieces(text);
        let mut tokens = tokenizer.count(text);
        let (mut kept, mut starts) = (0, [0; 3]);
        while tokens > max_tokens {
            let piece = pieces.next()?;
            kept = piece.end;
            starts = [starts[1], starts[2], piece.start];
            tokens -= encoder.count(&text.as_bytes()[piece]);
        }
        (kept > 0).then(|| Self {
            tokenizer,
            text,
            max_tokens,
            kept: Border { at: kept, tokens },
            exceeding: starts[2],
            start: window_start(text, kept, starts),
        })
    }

    fn cut(&self) -> usize {
        let is_short = |start: usize| self.kept.at - start <= WINDOW;
        if is_short(self.start) || is_at(self.text, self.start, NUMBER) {
            self.search(self.start)
        } else if is_short(self.exceeding) {
            self.search(self.exceeding)
        } else {
            self.estimate().unwrap_or(self.kept.at)
        }
    }

    /// The first offset from `start` on whose suffix fits. Each suffix is a piece and the suffix after it.
    fn search(&self, start: usize) -> usize {
        let mut encoder = self.tokenizer.encoder();
        let mut tokens = vec![usize::MAX; self.kept.at - start];
        tokens.push(self.kept.tokens);
        for offset in self.boundaries(start).rev() {
            let end = (self.tokenizer.piece_end)(self.text, offset);
            let after = match tokens.get(end - start) {
                Some(after) => *after,
                None if end - self.kept.at <= WINDOW => self.suffix_tokens(end),
                None => continue,
            };
            let count = encoder.count(&self.text.as_bytes()[offset..end]);
            tokens[offset - start] = after.saturating_add(count);
        }
        let first = tokens.iter().position(|tokens| *tokens <= self.max_tokens);
        start + first.unwrap_or(self.kept.at - start)
    }

    /// The starts of the characters from an offset up to `kept`.
    fn boundaries(&self, start: usize) -> impl DoubleEndedIterator<Item = usize> {
        let is_boundary = |offset: &usize| self.text.is_char_boundary(*offset);
        (start..self.kept.at).filter(is_boundary)
    }

    /// The tokens of the suffix that starts at an offset: its pieces soon end where those after `kept` do.
    fn suffix_tokens(&self, mut offset: usize) -> usize {
        let mut encoder = self.tokenizer.encoder();
        let mut kept = self.kept;
        let mut tokens = 0;
        while offset != kept.at {
            let start = offset.min(kept.at);
            let end = (self.tokenizer.piece_end)(self.text, start);
            let count = encoder.count(&self.text.as_bytes()[start..end]);
            if offset < kept.at {
                offset = end;
                tokens += count;
            } else {
                kept.at = end;
                kept.tokens -= count;
            }
        }
        tokens + kept.tokens
    }

    /// A cut before some tokens of the piece that ends at `kept`, that keeps to the tokens.
    fn estimate(&self) -> Option<usize> {
        let mut budget = self.max_tokens - self.kept.tokens;
        let reach = self.tokenizer.vocabulary.most_bytes(budget);
        let start = self.exceeding.max(self.kept.at.saturating_sub(reach));
        let bytes = &self.text.as_bytes()[start..self.kept.at];
        let lengths = self.tokenizer.encoder().lengths(bytes);
        for _ in 0..TRIES {
            let kept = lengths.iter().rev().take(budget).sum::<usize>();
            let cut = self.boundaries(self.kept.at - kept).next()?;
            match self.suffix_tokens(cut).saturating_sub(self.max_tokens) {
                0 => return Some(cut),
                excess => budget = budget.checked_sub(excess)?,
            }
        }
        None
    }
}

/// Where a suffix may start whose pieces first meet those of the whole text at `kept` or after it, given the starts of
/// the three pieces before. A cut moves the border of the next piece at most, or those of a whole run of numbers.
fn window_start(text: &str, kept: usize, starts: [usize; 3]) -> usize {
    let [first, _, last] = starts;
    if is_at(text, last, NUMBER) {
        run_start(text, kept, NUMBER)
    } else {
        first
    }
}
