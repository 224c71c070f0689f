//! The vectors of one model and dimension in one part, and the word pieces of the texts that they are of.

use hashbrown::{HashMap, HashSet};
use remora_index::Segment;
use remora_kernels::Kernels;
use remora_late::Pieces;
use rustc_hash::FxBuildHasher;

use crate::values::ModelVector;

/// Vectors under the slots of their documents.
pub(crate) struct ModelVectors {
    model: Box<str>,
    segment: Segment,
    /// By slot; empty if there are none, and not there beyond the last that has some.
    pieces: Vec<Pieces>,
    piece_bytes: usize,
    with_pieces: usize,
    /// For each piece how many documents have it.
    holding: HashMap<u16, u32, FxBuildHasher>,
    /// The slots of documents that the model makes no vector of: theirs have no values.
    refused: HashSet<u32, FxBuildHasher>,
    /// How many documents the server's model was to embed, and is done with.
    embeddable: usize,
}

impl ModelVectors {
    pub(crate) fn new(model: &str, dim: usize, kernels: &'static Kernels) -> Self {
        Self {
            model: model.into(),
            segment: Segment::new(dim, kernels),
            pieces: Vec::new(),
            piece_bytes: 0,
            with_pieces: 0,
            holding: HashMap::default(),
            refused: HashSet::default(),
            embeddable: 0,
        }
    }

    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    pub(crate) fn is_of(&self, model: &str, dim: usize) -> bool {
        self.segment.dim() == dim && *self.model == *model
    }

    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// The word pieces of the document in a slot, where there are some.
    pub(crate) fn pieces(&self, slot: u32) -> Option<&Pieces> {
        let pieces = self.pieces.get(slot as usize);
        pieces.filter(|pieces| !pieces.ids().is_empty())
    }

    /// How many documents have pieces.
    pub(crate) fn with_pieces(&self) -> usize {
        self.with_pieces
    }

    /// How many documents have a piece of this id.
    pub(crate) fn holding(&self, id: u16) -> usize {
        self.holding.get(&id).map_or(0, |count| *count as usize)
    }

    pub(crate) fn embeddable(&self) -> usize {
        self.embeddable
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.model.len()
            + self.segment.bytes()
            + self.pieces.capacity() * size_of::<Pieces>()
            + self.piece_bytes
            + self.holding.allocation_size()
            + self.refused.allocation_size()
    }

    /// Stores a vector in place of the one that is there; one without direction leaves the slot without a vector. One
    /// without values says that there will be none.
    pub(crate) fn upsert(&mut self, slot: u32, vector: ModelVector, embeddable: bool) {
        self.remove(slot, embeddable);
        let done = match vector.values.as_slice() {
            [] => self.refused.insert(slot),
            values => self.segment.upsert(slot, values).is_ok(),
        };
        if done {
            self.embeddable += usize::from(embeddable);
            self.put_pieces(slot, vector.pieces);
        }
    }

    pub(crate) fn remove(&mut self, slot: u32, embeddable: bool) {
        let removed = self.segment.remove(slot) | self.refused.remove(&slot);
        self.embeddable -= usize::from(removed && embeddable);
        self.put_pieces(slot, Pieces::default());
    }

    /// Holds the pieces of a slot in place of those that are there.
    fn put_pieces(&mut self, slot: u32, pieces: Pieces) {
        let index = slot as usize;
        if index >= self.pieces.len() {
            if pieces.ids().is_empty() {
                return;
            }
            self.pieces.resize_with(index + 1, Pieces::default);
        }
        self.count(&pieces);
        let before = std::mem::replace(&mut self.pieces[index], pieces);
        self.discount(&before);
    }

    fn count(&mut self, pieces: &Pieces) {
        self.piece_bytes += pieces.heap_bytes();
        self.with_pieces += usize::from(!pieces.ids().is_empty());
        for id in distinct(pieces) {
            *self.holding.entry(id).or_insert(0) += 1;
        }
    }

    fn discount(&mut self, pieces: &Pieces) {
        self.piece_bytes -= pieces.heap_bytes();
        self.with_pieces -= usize::from(!pieces.ids().is_empty());
        for id in distinct(pieces) {
            if let Some(count) = self.holding.get_mut(&id) {
                *count -= 1;
                if *count == 0 {
                    self.holding.remove(&id);
                }
            }
        }
    }
}

/// The ids of the pieces, each once.
fn distinct(pieces: &Pieces) -> Vec<u16> {
    let mut ids = pieces.ids().to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}
