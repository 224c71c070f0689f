//! The vectors of one partition, with exact search.

use remora_kernels::{Kernels, Level};

use super::rows::Rows;
use super::search::Best;
use super::vector::{norm, write_unit};
use super::{Hit, IdSet, Query, VectorError};

/// Rows that are scored before their scores are looked at: these stay in the nearest cache.
const GROUP: usize = 64;

/// A filter that lets through less than one in this many rows has its rows looked up one by one: scattered rows are read
/// at about half the speed of consecutive ones.
const SELECTIVE: usize = 4;

/// The row of a slot that holds no vector.
const ABSENT: u32 = u32::MAX;

/// The unit vectors of one partition, by slot. A slot costs 4 bytes up to the largest one that was ever used.
#[derive(Debug)]
pub struct Segment {
    dim: usize,
    kernels: &'static Kernels,
    rows: Rows,
    /// The slot of each row.
    slots: Vec<u32>,
    /// The row of each slot, or [`ABSENT`].
    places: Vec<u32>,
}

impl Segment {
    /// An empty segment for vectors of `dim` values, on the best instruction set of this processor.
    pub fn new(dim: usize) -> Self {
        Self::with_kernels(dim, Kernels::best())
    }

    /// An empty segment for vectors of `dim` values, on a chosen instruction set.
    pub fn with_kernels(dim: usize, kernels: &'static Kernels) -> Self {
        Self {
            dim,
            kernels,
            rows: Rows::new(dim),
            slots: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The number of values in a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The instruction set that searches.
    pub fn level(&self) -> Level {
        self.kernels.level()
    }

    /// The number of vectors.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no vector.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that is allocated, in bytes.
    pub fn bytes(&self) -> usize {
        let ids = self.slots.capacity() + self.places.capacity();
        size_of::<Self>() + self.rows.bytes() + ids * size_of::<u32>()
    }

    /// Stores `vector`, normalised, under `slot`, in place of what is there. A vector that is refused changes nothing.
    pub fn upsert(&mut self, slot: u32, vector: &[f32]) -> Result<(), VectorError> {
        let norm = norm(vector, self.dim)?;
        let row = match self.row_of(slot) {
            Some(row) => self.rows.get_mut(row),
            None => self.push(slot),
        };
        write_unit(vector, norm, row);
        Ok(())
    }

    /// Removes the vector under `slot`; whether there was one.
    pub fn remove(&mut self, slot: u32) -> bool {
        let Some(row) = self.row_of(slot) else {
            return false;
        };
        self.rows.swap_remove(row);
        self.slots.swap_remove(row);
        self.places[slot as usize] = ABSENT;
        if let Some(moved) = self.slots.get(row) {
            self.places[*moved as usize] = row as u32;
        }
        true
    }

    /// Whether there is a vector under `slot`.
    pub fn contains(&self, slot: u32) -> bool {
        self.row_of(slot).is_some()
    }

    /// The unit vector under `slot`.
    pub fn get(&self, slot: u32) -> Option<&[f32]> {
        self.row_of(slot).map(|row| &self.rows.get(row)[..self.dim])
    }

    /// Writes the cosine of every vector to `out[slot]`. Other places of `out` keep what they hold; a slot beyond its end
    /// is left out.
    ///
    /// # Panics
    /// Where the query has another dimension.
    pub fn scores(&self, query: &Query, out: &mut [f32]) {
        self.scan(query, |slots, scores| {
            for (slot, score) in slots.iter().zip(scores) {
                if let Some(out) = out.get_mut(*slot as usize) {
                    *out = *score;
                }
            }
        });
    }

    /// The best `k` hits among the slots of `filter` whose score is at least `threshold`: by score descending, then slot
    /// ascending. Fewer where there are fewer.
    ///
    /// # Panics
    /// Where the query has another dimension.
    pub fn search(
        &self,
        query: &Query,
        k: usize,
        filter: Option<&IdSet>,
        threshold: Option<f32>,
    ) -> Vec<Hit> {
        let mut best = Best::new(k, threshold);
        self.offer(0, query, filter, &mut best);
        let hits = best.into_sorted().into_iter();
        hits.map(|hit| Hit {
            slot: hit.slot,
            score: hit.score,
        })
        .collect()
    }

    /// Offers every vector that the filter lets through, as one of segment `number`.
    pub(super) fn offer(
        &self,
        number: u32,
        query: &Query,
        filter: Option<&IdSet>,
        best: &mut Best,
    ) {
        match filter {
            None => self.offer_rows(number, query, |_| true, best),
            Some(ids) if ids.len() < self.len() / SELECTIVE => {
                self.offer_ids(number, query, ids, best)
            }
            Some(ids) => self.offer_rows(number, query, |slot| ids.contains(slot), best),
        }
    }

    fn offer_rows(
        &self,
        number: u32,
        query: &Query,
        allowed: impl Fn(u32) -> bool,
        best: &mut Best,
    ) {
        self.scan(query, |slots, scores| {
            for (slot, score) in slots.iter().zip(scores) {
                if best.may_take(*score) && allowed(*slot) {
                    best.offer(number, *slot, *score);
                }
            }
        });
    }

    fn offer_ids(&self, number: u32, query: &Query, ids: &IdSet, best: &mut Best) {
        assert_eq!(
            query.dim(),
            self.dim,
            "the query has the dimension of the segment"
        );
        for (slot, row) in ids
            .iter()
            .filter_map(|slot| Some((slot, self.row_of(slot)?)))
        {
            let score = self.kernels.dot(query.padded(), self.rows.get(row));
            if best.may_take(score) {
                best.offer(number, slot, score);
            }
        }
    }

    /// Visits the slots and the scores of all rows, a group at a time.
    fn scan(&self, query: &Query, mut visit: impl FnMut(&[u32], &[f32])) {
        assert_eq!(
            query.dim(),
            self.dim,
            "the query has the dimension of the segment"
        );
        let mut scores = [0.0; GROUP];
        for (rows, slots) in self.rows.groups(GROUP).zip(self.slots.chunks(GROUP)) {
            let scores = &mut scores[..slots.len()];
            self.kernels.dot_rows(query.padded(), rows, scores);
            visit(slots, scores);
        }
    }

    fn push(&mut self, slot: u32) -> &mut [f32] {
        let place = slot as usize;
        if place >= self.places.len() {
            self.places.resize(place + 1, ABSENT);
        }
        self.places[place] = self.rows.len() as u32;
        self.slots.push(slot);
        self.rows.push()
    }

    fn row_of(&self, slot: u32) -> Option<usize> {
        let row = self.places.get(slot as usize).copied()?;
        (row != ABSENT).then_some(row as usize)
    }
}
