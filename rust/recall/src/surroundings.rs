//! A message's neighbours, and component `nearby`: the best of them.
//!
//! Neighbours are up to two messages before and two after a message, of one session with it, and short as it is: a long
//! message stands for itself. A message's passage is it and its neighbours.

use remora_kernels::prefetch;

use super::content::Content;
use super::scope::View;
use super::sessions::Sessions;

/// Neighbours on each side, at most.
const REACH: usize = 2;

/// No neighbour.
const NONE: u32 = u32::MAX;

/// The slots of one document's neighbours: those after it by distance, then those before it.
type Neighbours = [u32; 2 * REACH];

/// The neighbours and the passages of the documents of one thread, by slot.
pub(super) struct Surroundings {
    neighbours: Vec<Neighbours>,
    /// In terms.
    passage_lengths: Vec<u32>,
}

impl Surroundings {
    pub(super) const SLOT_BYTES: usize = size_of::<Neighbours>() + size_of::<u32>();

    pub(super) fn of(content: &Content, sessions: &Sessions) -> Self {
        let mut surroundings = Self {
            neighbours: vec![[NONE; 2 * REACH]; content.slots()],
            passage_lengths: Vec::new(),
        };
        surroundings.join(content, sessions);
        surroundings.passage_lengths = surroundings.measure(content);
        surroundings
    }

    fn join(&mut self, content: &Content, sessions: &Sessions) {
        let order = content.order();
        let is_short = |slot: u32| content.traits(slot).signs.short;
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
    fn measure(&self, content: &Content) -> Vec<u32> {
        let mut own = vec![0; content.slots()];
        for &(_, slot) in content.order() {
            own[slot as usize] = content.traits(slot).length;
        }
        let whole =
            |slot: usize| self.around(slot).map(|other| own[other]).sum::<u32>() + own[slot];
        (0..own.len()).map(whole).collect()
    }

    /// Asks for the memory of all neighbours.
    pub(super) fn prefetch(&self) {
        prefetch(&self.neighbours);
    }

    /// The document right before the one in a slot, where that is a neighbour.
    pub(super) fn before(&self, slot: usize) -> Option<usize> {
        neighbour(self.neighbours[slot][REACH])
    }

    /// The document right after the one in a slot, where that is a neighbour.
    pub(super) fn after(&self, slot: usize) -> Option<usize> {
        neighbour(self.neighbours[slot][0])
    }

    /// The neighbours of the document in a slot.
    pub(super) fn around(&self, slot: usize) -> impl Iterator<Item = usize> {
        self.neighbours[slot].into_iter().filter_map(neighbour)
    }

    /// The length of each document's passage, in terms; 0 for a slot without one.
    pub(super) fn passage_lengths(&self) -> &[u32] {
        &self.passage_lengths
    }
}

fn neighbour(slot: u32) -> Option<usize> {
    (slot != NONE).then_some(slot as usize)
}

/// Writes to each document the best score among its neighbours.
pub(super) fn write_nearby(view: &View<'_>, scores: &[f64], values: &mut [f32]) {
    let surroundings = &view.content.layout().surroundings;
    for (slot, value) in values.iter_mut().enumerate() {
        for other in surroundings.around(slot) {
            *value = value.max(scores[other] as f32);
        }
    }
}
