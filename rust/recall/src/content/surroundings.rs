//! A message's neighbours.
//!
//! Neighbours are up to two messages before and two after a message, of one session with it, and short as it is: a long
//! message stands for itself. A message's passage is it and its neighbours.

use remora_kernels::prefetch;

use super::sessions::Sessions;
use super::traits::Arrangement;

/// Neighbours on each side, at most.
const REACH: usize = 2;

/// No neighbour.
const NONE: u32 = u32::MAX;

/// The slots of one document's neighbours: those after it by distance, then those before it.
type Neighbours = [u32; 2 * REACH];

/// The neighbours and the passages of the documents of one part, by slot.
pub(crate) struct Surroundings {
    neighbours: Vec<Neighbours>,
    /// In terms.
    passage_lengths: Vec<u32>,
}

impl Surroundings {
    pub(crate) const SLOT_BYTES: usize = size_of::<Neighbours>() + size_of::<u32>();

    pub(super) fn of(documents: Arrangement<'_>, sessions: &Sessions) -> Self {
        let mut surroundings = Self {
            neighbours: vec![[NONE; 2 * REACH]; documents.traits.len()],
            passage_lengths: Vec::new(),
        };
        surroundings.join(documents, sessions);
        surroundings.passage_lengths = surroundings.measure(documents);
        surroundings
    }

    fn join(&mut self, documents: Arrangement<'_>, sessions: &Sessions) {
        let order = documents.order;
        let is_short = |slot: u32| documents.traits(slot).signs.short;
        for (at, &(_, slot)) in order.iter().enumerate() {
            let after = order[at + 1..].iter().take(REACH);
            for (distance, &(_, other)) in after.enumerate() {
                if is_short(slot) && is_short(other) && sessions.same(slot, other) {
                    self.neighbours[slot as usize][distance] = other;
                    self.neighbours[other as usize][REACH + distance] = slot;
                }
            }
        }
    }

    /// The length of each document's passage.
    fn measure(&self, documents: Arrangement<'_>) -> Vec<u32> {
        let mut own = vec![0; documents.traits.len()];
        for &(_, slot) in documents.order {
            own[slot as usize] = documents.traits(slot).length;
        }
        let whole =
            |slot: usize| self.around(slot).map(|other| own[other]).sum::<u32>() + own[slot];
        (0..own.len()).map(whole).collect()
    }

    /// Asks for the memory of all neighbours.
    pub(crate) fn prefetch(&self) {
        prefetch(&self.neighbours);
    }

    /// The document right before the one in a slot, where that is a neighbour.
    pub(crate) fn before(&self, slot: usize) -> Option<usize> {
        neighbour(self.neighbours[slot][REACH])
    }

    /// The document right after the one in a slot, where that is a neighbour.
    pub(crate) fn after(&self, slot: usize) -> Option<usize> {
        neighbour(self.neighbours[slot][0])
    }

    /// The neighbours of the document in a slot.
    pub(crate) fn around(&self, slot: usize) -> impl Iterator<Item = usize> {
        self.neighbours[slot].into_iter().filter_map(neighbour)
    }

    /// The length of each document's passage, in terms; 0 for a slot without one.
    pub(crate) fn passage_lengths(&self) -> &[u32] {
        &self.passage_lengths
    }
}

fn neighbour(slot: u32) -> Option<usize> {
    (slot != NONE).then_some(slot as usize)
}
