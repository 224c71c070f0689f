//! The orders of a partition: where its records stand, and from where on all of them are in memory.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::ops::Bound;
use std::sync::Arc;

use super::entry::{Content, Held, Version};
use super::kinds::Kind;
use super::value::Value;

/// A key within its partition.
pub(super) type Key = Arc<[u8]>;

/// Where a record stands in an order. Positions of one order are of one sort.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// In the order of keys.
    Key(Arc<[u8]>),
    /// In a further one: its columns there, then as it was written.
    Columns {
        values: Box<[Value]>,
        revision: u64,
        ordinal: u32,
    },
}

impl Position {
    /// Where a version of a record stands in a further order.
    fn of(kind: &Kind, order: usize, revision: u64, content: &Content) -> Self {
        let values = kind.order_columns(order);
        Self::Columns {
            values: values
                .map(|column| content.columns[column].clone())
                .collect(),
            revision,
            ordinal: content.ordinal,
        }
    }
}

/// What stands at a position.
pub(super) struct Placed {
    pub(super) key: Key,
    pub(super) content: Arc<Content>,
}

/// The further orders of a partition: every version that is in memory has an entry in each.
pub(super) struct Orders {
    kind: Arc<Kind>,
    positions: Box<[BTreeMap<Position, Placed>]>,
}

impl Orders {
    pub(super) fn new(kind: Arc<Kind>) -> Self {
        Self {
            positions: kind.orders.iter().map(|_| BTreeMap::new()).collect(),
            kind,
        }
    }

    pub(super) fn insert(&mut self, key: &Key, revision: u64, held: &Held) {
        for (index, positions) in self.positions.iter_mut().enumerate() {
            let position = Position::of(&self.kind, index + 1, revision, &held.content);
            let placed = Placed {
                key: Arc::clone(key),
                content: Arc::clone(&held.content),
            };
            positions.insert(position, placed);
        }
    }

    pub(super) fn remove(&mut self, version: &Version) {
        let Some(held) = &version.held else {
            return;
        };
        for (index, positions) in self.positions.iter_mut().enumerate() {
            let position = Position::of(&self.kind, index + 1, version.revision, &held.content);
            positions.remove(&position);
        }
    }

    /// The versions of a further order between two positions, ascending.
    pub(super) fn range(
        &self,
        order: usize,
        bounds: (Bound<&Position>, Bound<&Position>),
    ) -> btree_map::Range<'_, Position, Placed> {
        self.positions[order - 1].range::<Position, _>(bounds)
    }

    /// How many entries all of them have.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.positions.iter().map(BTreeMap::len).sum()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.positions.len()
    }
}
