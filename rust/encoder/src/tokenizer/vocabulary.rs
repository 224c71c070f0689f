//! The word pieces: which there are, and how a word is cut into them.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

/// Pieces that may stand at one kind of place in a word.
#[derive(Debug, Default)]
struct Pieces {
    ids: HashMap<Box<str>, u32, FxBuildHasher>,
    /// Bytes of the longest piece.
    longest: usize,
}

impl Pieces {
    fn insert(&mut self, piece: &str, id: u32) {
        self.longest = self.longest.max(piece.len());
        self.ids.insert(piece.into(), id);
    }

    /// The longest piece that `word` begins with: its length in bytes and its id.
    fn longest_prefix(&self, word: &str) -> Option<(usize, u32)> {
        (1..=word.len().min(self.longest))
            .rev()
            .filter_map(|end| Some((end, word.get(..end)?)))
            .find_map(|(end, prefix)| Some((end, *self.ids.get(prefix)?)))
    }
}

/// The pieces that begin a word and those that continue one.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    beginnings: Pieces,
    continuations: Pieces,
}

impl Vocabulary {
    /// What marks a piece that continues a word.
    pub(super) const CONTINUATION: &str = "##";

    pub(super) fn insert(&mut self, piece: &str, id: u32) {
        // A word may begin with the mark itself, so every piece can be a beginning.
        self.beginnings.insert(piece, id);
        if let Some(continuation) = piece.strip_prefix(Self::CONTINUATION) {
            self.continuations.insert(continuation, id);
        }
    }

    /// All pieces with their ids.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (&str, u32)> {
        let ids = self.beginnings.ids.iter();
        ids.map(|(piece, id)| (&**piece, *id))
    }

    /// The id of a whole piece.
    pub(super) fn id(&self, piece: &str) -> Option<u32> {
        self.beginnings.ids.get(piece).copied()
    }

    /// Appends the pieces of `word`, the longest first from the left; `false`, and nothing appended, if there is a rest
    /// that no piece begins.
    pub(super) fn cut(&self, word: &str, ids: &mut Vec<u32>) -> bool {
        let before = ids.len();
        let (mut pieces, mut rest) = (&self.beginnings, word);
        while !rest.is_empty() {
            let Some((end, id)) = pieces.longest_prefix(rest) else {
                ids.truncate(before);
                return false;
            };
            ids.push(id);
            (pieces, rest) = (&self.continuations, &rest[end..]);
        }
        true
    }
}
