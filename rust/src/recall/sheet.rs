//! The scores of all documents of a scope, component by component.

use parking_lot::Mutex;

/// One part of a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Component {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its weight.
    pub weight: f64,
}

/// The mark of a value that a document does not have.
pub(super) const ABSENT: f32 = f32::NAN;

/// The values of one component, a place for each slot of the scope; [`ABSENT`] where a document has none.
pub(super) struct Column {
    name: &'static str,
    weight: f64,
    values: Vec<f32>,
}

impl Column {
    pub(super) fn new(name: &'static str, weight: f64, values: Vec<f32>) -> Self {
        Self {
            name,
            weight,
            values,
        }
    }
}

/// Components, in the order in which they are added up.
pub(super) struct Sheet {
    columns: Vec<Column>,
    /// For each place the sum of value times weight over the columns, added from left to right.
    totals: Vec<f64>,
}

impl Sheet {
    pub(super) fn new(places: usize) -> Self {
        Self {
            columns: Vec::new(),
            totals: vec![0.0; places],
        }
    }

    pub(super) fn add(&mut self, column: Column) {
        for (total, value) in self.totals.iter_mut().zip(&column.values) {
            if !value.is_nan() {
                *total += f64::from(*value) * column.weight;
            }
        }
        self.columns.push(column);
    }

    pub(super) fn totals(&self) -> &[f64] {
        &self.totals
    }

    /// Whether the document at `place` has a value of the first component.
    pub(super) fn has_first(&self, place: usize) -> bool {
        let first = self.columns.first();
        first.is_some_and(|column| !column.values[place].is_nan())
    }

    /// The components that the document at `place` has; their sum of value times weight, from left to right, is the score.
    pub(super) fn explain(&self, place: usize) -> Vec<Component> {
        self.columns
            .iter()
            .filter(|column| !column.values[place].is_nan())
            .map(|column| Component {
                name: column.name,
                value: f64::from(column.values[place]),
                weight: column.weight,
            })
            .collect()
    }
}

/// Columns of earlier searches, used again: a search of many documents would else spend its time on fresh pages.
#[derive(Default)]
pub(super) struct Buffers {
    spare: Mutex<Vec<Vec<f32>>>,
}

/// Columns that are kept at most.
const SPARE: usize = 16;

/// Values of the longest column that is kept: what one user's scope may have, not a tenant's.
const LONGEST_SPARE: usize = 1 << 18;

impl Buffers {
    /// A column of `places` values, each `value`.
    pub(super) fn take(&self, places: usize, value: f32) -> Vec<f32> {
        let mut values = self.spare.lock().pop().unwrap_or_default();
        values.clear();
        values.resize(places, value);
        values
    }

    /// Gives the columns of a search back.
    pub(super) fn give_back(&self, sheet: Sheet) {
        let mut spare = self.spare.lock();
        for column in sheet.columns {
            if spare.len() < SPARE && column.values.capacity() <= LONGEST_SPARE {
                spare.push(column.values);
            }
        }
    }
}
