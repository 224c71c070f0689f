//! The declared kinds of records.

use std::sync::Arc;

use super::value::{ColumnType, Value};

/// A declared sort of record. Order 0 of a kind is that of its keys; `orders` are the further ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Written in the journal, thus never given to another kind.
    pub number: u32,
    pub columns: Vec<ColumnType>,
    /// Columns by their index, for each order. Records of the same columns follow each other as they were written.
    pub orders: Vec<Vec<usize>>,
    /// Whether its records go with their conversation.
    pub of_conversation: bool,
    /// Whether its records go with their user.
    pub of_user: bool,
    /// Whether its records are vectors, which are searched.
    pub is_searched: bool,
    /// Whether its records are items of the store, which are searched, too.
    pub holds_items: bool,
}

impl Kind {
    /// Whether searches hold its records in memory.
    pub(crate) fn is_followed(&self) -> bool {
        self.is_searched || self.holds_items
    }

    /// The columns of a further order.
    pub(super) fn order_columns<'a>(
        &'a self,
        order: usize,
    ) -> impl Iterator<Item = usize> + 'a + use<'a> {
        self.orders[order - 1].iter().copied()
    }

    /// What is wrong with the columns of a record.
    pub(super) fn check(&self, columns: &[Value]) -> Result<(), &'static str> {
        if columns.len() != self.columns.len() {
            return Err("has not as many columns as declared");
        }
        let mut typed = columns.iter().zip(&self.columns);
        if !typed.all(|(value, column)| value.fits(*column)) {
            return Err("has a column of another type than declared");
        }
        let mut ordered = self.orders.iter().flatten();
        if !ordered.all(|column| columns[*column].has_order()) {
            return Err("has no value by which it is ordered");
        }
        Ok(())
    }
}

/// Kinds that cannot be declared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKinds {
    #[error("the number of a kind is 0")]
    NoNumber,
    #[error("two kinds have the number {0}")]
    SameNumber(u32),
    #[error("an order of kind {0} names a column that it does not have")]
    UnknownColumn(u32),
}

/// The declared kinds, by number.
#[derive(Clone, Debug, Default)]
pub struct Kinds(Arc<[Arc<Kind>]>);

impl Kinds {
    pub fn new(kinds: impl IntoIterator<Item = Kind>) -> Result<Self, InvalidKinds> {
        let mut kinds: Vec<_> = kinds.into_iter().map(Arc::new).collect();
        kinds.sort_by_key(|kind| kind.number);
        for kind in &kinds {
            check_declaration(kind)?;
        }
        match kinds.windows(2).find(|two| two[0].number == two[1].number) {
            Some(same) => Err(InvalidKinds::SameNumber(same[0].number)),
            None => Ok(Self(kinds.into())),
        }
    }

    pub fn get(&self, number: u32) -> Option<&Arc<Kind>> {
        let index = self.index(number)?;
        self.0.get(index)
    }

    /// All kinds, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.0.iter()
    }

    /// Where a kind stands among all.
    pub(super) fn index(&self, number: u32) -> Option<usize> {
        self.0
            .binary_search_by_key(&number, |kind| kind.number)
            .ok()
    }
}

fn check_declaration(kind: &Kind) -> Result<(), InvalidKinds> {
    if kind.number == 0 {
        return Err(InvalidKinds::NoNumber);
    }
    let mut ordered = kind.orders.iter().flatten();
    if ordered.all(|column| *column < kind.columns.len()) {
        Ok(())
    } else {
        Err(InvalidKinds::UnknownColumn(kind.number))
    }
}
