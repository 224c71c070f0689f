//! The merges that make the tokens of a vocabulary, and whether two tokens may stand side by side. Tokens are ranks here.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// A rank's left and right part; a single byte is both parts of itself.
type Parts = (u32, u32);

pub(super) struct Merges {
    parts: Vec<Parts>,
    /// Ranks by their parts.
    merged: HashTable<u32>,
}

impl Merges {
    /// Takes the parts of each rank.
    pub(super) fn new(parts: Vec<Parts>) -> Self {
        let mut merged = HashTable::with_capacity(parts.len());
        for (rank, pair) in (0u32..).zip(&parts) {
            if pair.0 != rank {
                merged.insert_unique(hash(*pair), rank, |rank| hash(parts[*rank as usize]));
            }
        }
        Self { parts, merged }
    }

    fn merge(&self, left: u32, right: u32) -> Option<u32> {
        let pair = (left, right);
        let is_pair = |rank: &u32| self.parts[*rank as usize] == pair;
        self.merged.find(hash(pair), is_pair).copied()
    }

    /// Whether byte-pair encoding leaves these two tokens as they are where they meet, which makes a sequence of tokens
    /// the encoding of its bytes if it holds for each two neighbours (the method of the crate `bpe`).
    ///
    /// Undoes the merges of both, the latest first; a merge across the border that comes before the last undone one
    /// would have been made in its place.
    pub(super) fn keep_apart(&self, mut left: u32, mut right: u32) -> bool {
        let mut limit = u32::MAX;
        loop {
            if self.merge(left, right).is_some_and(|rank| rank < limit) {
                return false;
            }
            let (inner_left, inner_right) = (self.inner_left(left), self.inner_right(right));
            let left_is_later = left > right || inner_right.is_none();
            if let Some(inner) = inner_left.filter(|_| left_is_later) {
                limit = left;
                left = inner;
            } else if let Some(inner) = inner_right {
                limit = right + 1;
                right = inner;
            } else {
                return true;
            }
        }
    }

    /// The part of a left token that touches its right neighbour.
    fn inner_left(&self, token: u32) -> Option<u32> {
        let (_, part) = self.parts[token as usize];
        (part != token).then_some(part)
    }

    /// The part of a right token that touches its left neighbour.
    fn inner_right(&self, token: u32) -> Option<u32> {
        let (part, _) = self.parts[token as usize];
        (part != token).then_some(part)
    }
}

fn hash(pair: Parts) -> u64 {
    FxBuildHasher.hash_one(pair)
}
