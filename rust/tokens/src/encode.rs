//! Byte-pair encoding of one piece in linear time.

use super::vocabulary::{Token, Vocabulary};

/// Counts the tokens of pieces; its memory serves one piece after another.
pub(super) struct PieceEncoder<'v> {
    vocabulary: &'v Vocabulary,
    tokens: Vec<Token>,
    reachable: Reachable,
}

impl<'v> PieceEncoder<'v> {
    pub(super) fn new(vocabulary: &'v Vocabulary) -> Self {
        Self {
            vocabulary,
            tokens: Vec::new(),
            reachable: Reachable::default(),
        }
    }

    pub(super) fn count(&mut self, piece: &[u8]) -> usize {
        if self.vocabulary.is_token(piece) {
            return 1;
        }
        self.encode(piece).len()
    }

    /// The count if it is at most `limit`; takes time for at most about `limit` tokens.
    pub(super) fn count_up_to(&mut self, piece: &[u8], limit: usize) -> Option<usize> {
        if piece.len() > self.vocabulary.most_bytes(limit) {
            return None;
        }
        Some(self.count(piece)).filter(|count| *count <= limit)
    }

    /// The lengths of the tokens of a piece. Any of them that are neighbours are the encoding of their bytes.
    pub(super) fn lengths(&mut self, piece: &[u8]) -> Vec<usize> {
        let vocabulary = self.vocabulary;
        let tokens = self.encode(piece).iter();
        tokens.map(|token| vocabulary.length(*token)).collect()
    }

    /// Takes the longest token that fits the one before it, and goes back from offsets where none does; each offset is
    /// left for good once (the backtracking encoder of the crate `bpe`).
    fn encode(&mut self, piece: &[u8]) -> &[Token] {
        self.tokens.clear();
        self.reachable.reset(piece.len());
        let mut at = 0;
        let mut next = self.vocabulary.longest_prefix(piece);
        while let Some(longest) = next {
            let previous = self.tokens.last().copied();
            if let Some(token) = self.fitting(longest, previous, at) {
                self.tokens.push(token);
                at += self.vocabulary.length(token);
                next = self.vocabulary.longest_prefix(&piece[at..]);
            } else {
                self.reachable.remove(at);
                self.tokens.pop();
                at -= previous.map_or(0, |token| self.vocabulary.length(token));
                next = previous;
            }
        }
        &self.tokens
    }

    /// The longest token, this one or a prefix of it, that may follow the previous one and ends at a reachable offset.
    fn fitting(&self, longest: Token, previous: Option<Token>, at: usize) -> Option<Token> {
        std::iter::successors(Some(longest), |token| self.vocabulary.shorter(*token)).find(
            |token| {
                self.reachable.contains(at + self.vocabulary.length(*token))
                    && previous.is_none_or(|before| self.vocabulary.keep_apart(before, *token))
            },
        )
    }
}

/// The offsets of a piece that have not been found to lead nowhere, one bit each.
#[derive(Default)]
struct Reachable(Vec<u64>);

impl Reachable {
    fn reset(&mut self, last: usize) {
        self.0.clear();
        self.0.resize(last / 64 + 1, u64::MAX);
    }

    fn contains(&self, offset: usize) -> bool {
        self.0[offset / 64] & (1 << (offset % 64)) != 0
    }

    fn remove(&mut self, offset: usize) {
        self.0[offset / 64] &= !(1 << (offset % 64));
    }
}
