//! The vectors of one set, and how near they are to a question.

use remora_kernels::Kernels;

use super::rows::Rows;
use super::vector::{Query, VectorError, norm, write_unit};

/// Rows that are scored before their scores are looked at: these stay in the nearest cache.
const GROUP: usize = 64;

/// The row of a slot that holds no vector.
const ABSENT: u32 = u32::MAX;

/// The unit vectors of one set, by slot. A slot costs 4 bytes up to the largest one that was ever used.
#[derive(Debug)]
pub struct Segment {
    dim: usize,
    kernels: &'static Kernels,
    rows: Rows,
    /// The slot of each row.
    slots: Vec<u32>,
    /// The row of each slot, or [`ABSENT`].
    row_numbers: Vec<u32>,
}

impl Segment {
    /// An empty segment for vectors of `dim` values, which are compared with these kernels.
    pub fn new(dim: usize, kernels: &'static Kernels) -> Self {
        Self {
            dim,
            kernels,
            rows: Rows::new(dim),
            slots: Vec::new(),
            row_numbers: Vec::new(),
        }
    }

    /// The number of values in a vector.
    pub fn dim(&self) -> usize {
        self.dim
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
        let ids = self.slots.capacity() + self.row_numbers.capacity();
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
        self.row_numbers[slot as usize] = ABSENT;
        if let Some(moved) = self.slots.get(row) {
            self.row_numbers[*moved as usize] = row as u32;
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

    /// Writes the cosine of every vector to `out[slot]`. Other values of `out` keep what they hold; a slot beyond its end
    /// is left out.
    ///
    /// # Panics
    /// Where the query has another dimension.
    pub fn scores(&self, query: &Query, out: &mut [f32]) {
        assert_eq!(
            query.dim(),
            self.dim,
            "the query has the dimension of the segment"
        );
        let mut scores = [0.0; GROUP];
        for (rows, slots) in self.rows.groups(GROUP).zip(self.slots.chunks(GROUP)) {
            let scores = &mut scores[..slots.len()];
            self.kernels.dot_rows(query.padded(), rows, scores);
            for (slot, score) in slots.iter().zip(scores) {
                if let Some(out) = out.get_mut(*slot as usize) {
                    *out = *score;
                }
            }
        }
    }

    fn push(&mut self, slot: u32) -> &mut [f32] {
        let index = slot as usize;
        if index >= self.row_numbers.len() {
            self.row_numbers.resize(index + 1, ABSENT);
        }
        self.row_numbers[index] = self.rows.len() as u32;
        self.slots.push(slot);
        self.rows.push()
    }

    fn row_of(&self, slot: u32) -> Option<usize> {
        let row = self.row_numbers.get(slot as usize).copied()?;
        (row != ABSENT).then_some(row as usize)
    }
}
