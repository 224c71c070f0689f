//! The vectors of items, by model and dimension.

use bytes::Bytes;
use hashbrown::HashMap;
use remora_vectors::{Codes, floats, norm};

/// The number of a table.
pub(crate) type Number = u32;

/// Where a vector is: its table, and its slot there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) table: Number,
    pub(crate) slot: u32,
}

/// The vectors of one model and one dimension, in any order.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) codes: Codes,
    vectors: Vec<Vector>,
}

#[derive(Debug)]
struct Vector {
    row: u32,
    values: Bytes,
    norm: f64,
}

impl Table {
    /// The row of an item that a vector is of.
    pub(crate) fn row(&self, slot: usize) -> u32 {
        self.vectors[slot].row
    }

    /// The values of a vector, and their norm.
    pub(crate) fn vector(&self, slot: usize) -> (&[u8], f64) {
        (&self.vectors[slot].values, self.vectors[slot].norm)
    }

    pub(crate) fn norm(&self, slot: usize) -> f64 {
        self.vectors[slot].norm
    }

    pub(crate) fn len(&self) -> usize {
        self.vectors.len()
    }

    fn push(&mut self, row: u32, values: Bytes) -> u32 {
        let norm = norm(&values);
        self.codes.push(floats(&values), norm);
        self.vectors.push(Vector { row, values, norm });
        self.vectors.len() as u32 - 1
    }

    /// Removes a vector; the row of the one that takes its slot.
    fn remove(&mut self, slot: usize) -> Option<u32> {
        self.codes.swap_remove(slot);
        self.vectors.swap_remove(slot);
        self.vectors.get(slot).map(|moved| moved.row)
    }

    fn bytes(&self) -> usize {
        self.codes.bytes() + self.vectors.capacity() * size_of::<Vector>()
    }
}

/// All tables.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    numbers: HashMap<(String, usize), Number>,
    tables: Vec<Table>,
}

impl Tables {
    /// Adds a vector of an item.
    pub(crate) fn add(&mut self, row: u32, model: String, values: Bytes) -> Spot {
        let dim = floats(&values).len();
        let number = *self.numbers.entry((model, dim)).or_insert_with(|| {
            self.tables.push(Table {
                codes: Codes::new(dim),
                vectors: Vec::new(),
            });
            self.tables.len() as Number - 1
        });
        let slot = self.tables[number as usize].push(row, values);
        Spot {
            table: number,
            slot,
        }
    }

    /// Removes a vector. Another may take its slot: of which row, and where it was.
    pub(crate) fn remove(&mut self, spot: Spot) -> Option<(u32, Spot)> {
        let table = &mut self.tables[spot.table as usize];
        let row = table.remove(spot.slot as usize)?;
        let slot = table.len() as u32;
        Some((row, Spot { slot, ..spot }))
    }

    /// A vector is of another row, because its item moved.
    pub(crate) fn reassign(&mut self, spot: Spot, row: u32) {
        self.tables[spot.table as usize].vectors[spot.slot as usize].row = row;
    }

    /// The vectors of a model with a dimension.
    pub(crate) fn find(&self, model: &str, dim: usize) -> Option<(Number, &Table)> {
        let number = *self.numbers.get(&(model.to_owned(), dim))?;
        Some((number, &self.tables[number as usize]))
    }

    /// An estimate of the memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.tables.iter().map(Table::bytes).sum()
    }
}
