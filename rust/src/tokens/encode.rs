//! Byte-pair encoding of one piece in linear time: its count, and the counts of its prefixes and suffixes.

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
        self.encode(piece);
        self.tokens.len()
    }

    /// The count if it is at most `limit`; takes time for at most about `limit` tokens.
    pub(super) fn count_up_to(&mut self, piece: &[u8], limit: usize) -> Option<usize> {
        let least = piece.len().div_ceil(self.vocabulary.longest_token());
        if least > limit {
            return None;
        }
        Some(self.count(piece)).filter(|count| *count <= limit)
    }

    /// Takes the longest token that fits the one before it, and goes back from places where none does; each place is
    /// left for good once (the backtracking encoder of the crate `bpe`).
    fn encode(&mut self, piece: &[u8]) {
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
    }

    /// The longest token, this one or a prefix of it, that may follow the previous one and ends at a reachable place.
    fn fitting(&self, longest: Token, previous: Option<Token>, at: usize) -> Option<Token> {
        std::iter::successors(Some(longest), |token| self.vocabulary.shorter(*token)).find(
            |token| {
                self.reachable.contains(at + self.vocabulary.length(*token))
                    && previous.is_none_or(|before| self.vocabulary.keep_apart(before, *token))
            },
        )
    }
}

/// The places of a piece that have not been found to lead nowhere, one bit each.
#[derive(Default)]
struct Reachable(Vec<u64>);

impl Reachable {
    fn reset(&mut self, last: usize) {
        self.0.clear();
        self.0.resize(last / 64 + 1, u64::MAX);
    }

    fn contains(&self, place: usize) -> bool {
        self.0[place / 64] & (1 << (place % 64)) != 0
    }

    fn remove(&mut self, place: usize) {
        self.0[place / 64] &= !(1 << (place % 64));
    }
}

/// The token at the border of a growing part of a piece, and how many tokens that part has.
type Border = Option<(Token, u32)>;

/// The token counts of the first 0, 1, 2 ... bytes of a piece, each as a piece by itself.
pub(super) fn prefix_counts(vocabulary: &Vocabulary, piece: &[u8]) -> Vec<usize> {
    let mut borders: Vec<Border> = vec![None; piece.len() + 1];
    for start in 0..piece.len() {
        let before = borders[start];
        for token in tokens_at(vocabulary, &piece[start..]) {
            let border = &mut borders[start + vocabulary.length(token)];
            if border.is_none() && before.is_none_or(|(left, _)| vocabulary.keep_apart(left, token))
            {
                *border = Some((token, count(before) + 1));
            }
        }
    }
    borders
        .into_iter()
        .map(|border| count(border) as usize)
        .collect()
}

/// The token counts of a piece without its first 0, 1, 2 ... bytes, each as a piece by itself.
pub(super) fn suffix_counts(vocabulary: &Vocabulary, piece: &[u8]) -> Vec<usize> {
    let mut borders: Vec<Border> = vec![None; piece.len() + 1];
    for start in (0..piece.len()).rev() {
        borders[start] = tokens_at(vocabulary, &piece[start..])
            .map(|token| (token, borders[start + vocabulary.length(token)]))
            .find(|(token, after)| {
                after.is_none_or(|(right, _)| vocabulary.keep_apart(*token, right))
            })
            .map(|(token, after)| (token, count(after) + 1));
    }
    borders
        .into_iter()
        .map(|border| count(border) as usize)
        .collect()
}

/// The tokens that begin a text, the longest first.
fn tokens_at(vocabulary: &Vocabulary, text: &[u8]) -> impl Iterator<Item = Token> {
    std::iter::successors(vocabulary.longest_prefix(text), |token| {
        vocabulary.shorter(*token)
    })
}

fn count(border: Border) -> u32 {
    border.map_or(0, |(_, count)| count)
}
