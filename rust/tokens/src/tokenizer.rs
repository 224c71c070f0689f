//! A tokenizer: how an encoding cuts a text into pieces, and the vocabulary that encodes each.

use std::ops::Range;

use super::encode::PieceEncoder;
use super::memo::Memo;
use super::vocabulary::Vocabulary;

pub(super) struct Tokenizer {
    pub(super) vocabulary: Vocabulary,
    /// The end of the piece of a text that begins at an offset; depends on nothing before that offset.
    pub(super) piece_end: fn(&str, usize) -> usize,
    pub(super) memo: Memo,
}

impl Tokenizer {
    pub(super) fn count(&self, text: &str) -> usize {
        let mut encoder = self.encoder();
        let count = |piece: &[u8]| self.memo.count(piece, || encoder.count(piece));
        self.pieces(text)
            .map(|piece| &text.as_bytes()[piece])
            .map(count)
            .sum()
    }

    pub(super) fn count_up_to(&self, text: &str, limit: usize) -> Option<usize> {
        let mut encoder = self.encoder();
        self.pieces(text).try_fold(0, |total, piece| {
            let count = encoder.count_up_to(&text.as_bytes()[piece], limit - total)?;
            Some(total + count)
        })
    }

    pub(super) fn encoder(&self) -> PieceEncoder<'_> {
        PieceEncoder::new(&self.vocabulary)
    }

    pub(super) fn pieces<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at;
            at = (self.piece_end)(text, start);
            (at > start).then_some(start..at)
        })
    }
}
