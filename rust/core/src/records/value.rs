//! Typed values of columns, and their order: that of the database.

use std::cmp::Ordering;
use std::sync::Arc;

use remora_wire as wire;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Boolean,
    Integer,
    Number,
    Text,
    Data,
}

/// A value of a column. Values of one column have one type, or are null.
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Never a negative zero.
    Number(f64),
    Text(Arc<str>),
    Data(Arc<[u8]>),
}

impl Value {
    /// A number; both zeros are one.
    pub fn number(number: f64) -> Self {
        Self::Number(if number == 0.0 { 0.0 } else { number })
    }

    /// Whether a column of this type may hold it.
    pub(super) fn fits(&self, column: ColumnType) -> bool {
        match self {
            Self::Null => true,
            Self::Boolean(_) => column == ColumnType::Boolean,
            Self::Integer(_) => column == ColumnType::Integer,
            Self::Number(_) => column == ColumnType::Number,
            Self::Text(_) => column == ColumnType::Text,
            Self::Data(_) => column == ColumnType::Data,
        }
    }

    /// Whether it has a position in an order.
    pub(super) fn has_order(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Number(number) => !number.is_nan(),
            _ => true,
        }
    }

    /// An estimate of the memory held.
    pub(super) fn bytes(&self) -> usize {
        let beyond = match self {
            Self::Text(text) => text.len(),
            Self::Data(data) => data.len(),
            _ => 0,
        };
        size_of::<Self>() + beyond
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Boolean(_) => 1,
            Self::Integer(_) => 2,
            Self::Number(_) => 3,
            Self::Text(_) => 4,
            Self::Data(_) => 5,
        }
    }
}

impl From<wire::Value> for Value {
    fn from(value: wire::Value) -> Self {
        match value.kind {
            None => Self::Null,
            Some(wire::ValueKind::Boolean(truth)) => Self::Boolean(truth),
            Some(wire::ValueKind::Integer(integer)) => Self::Integer(integer),
            Some(wire::ValueKind::Number(number)) => Self::number(number),
            Some(wire::ValueKind::Text(text)) => Self::Text(text.into()),
            Some(wire::ValueKind::Data(data)) => Self::Data(data.as_ref().into()),
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => left.cmp(right),
            (Self::Integer(left), Self::Integer(right)) => left.cmp(right),
            (Self::Number(left), Self::Number(right)) => left.total_cmp(right),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Data(left), Self::Data(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}
