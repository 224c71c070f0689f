//! Memory of earlier searches, used again.

use parking_lot::Mutex;

/// Memory of earlier searches, used again: a search of many documents would else spend its time on fresh pages.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The values of components.
    pub(crate) columns: Pool<f32>,
    /// Totals, and what else is computed in their precision.
    pub(crate) sums: Pool<f64>,
    pub(crate) counts: Pool<u32>,
}

/// Vectors that are kept at most.
const SPARE: usize = 16;

/// Values of the longest vector that is kept: what one user's scope may have, not a tenant's.
const LONGEST_SPARE: usize = 1 << 18;

/// Vectors that wait to be used again.
#[derive(Default)]
pub(crate) struct Pool<T> {
    spare: Mutex<Vec<Vec<T>>>,
}

impl<T: Copy> Pool<T> {
    /// `count` values, each `value`.
    pub(crate) fn take(&self, count: usize, value: T) -> Vec<T> {
        let mut values = self.spare.lock().pop().unwrap_or_default();
        values.clear();
        values.resize(count, value);
        values
    }

    /// `count` values, whatever they are, to be written before they are read.
    pub(crate) fn take_any(&self, count: usize) -> Vec<T>
    where
        T: Default,
    {
        let mut values = self.spare.lock().pop().unwrap_or_default();
        values.resize(count, T::default());
        values
    }

    pub(crate) fn give_back(&self, values: Vec<T>) {
        let mut spare = self.spare.lock();
        if spare.len() < SPARE && values.capacity() <= LONGEST_SPARE {
            spare.push(values);
        }
    }
}
