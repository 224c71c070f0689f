//! Typed values of attributes, and how they compare.

use std::cmp::Ordering;

use remora_wire::{self as wire, ScalarKind};

/// A typed value of an attribute or of a condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// An explicit null.
    Null,
    /// A truth value.
    Boolean(bool),
    /// A whole number; compares numerically with `Number`.
    Integer(i64),
    /// A double; compares numerically with `Integer`.
    Number(f64),
    /// Unicode text; compares by code point.
    Text(Box<str>),
    /// An array or an object, which is there, and equals nothing.
    Composite,
}

/// The same, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScalarRef<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Text(&'a str),
    Composite,
}

impl ScalarRef<'_> {
    /// How the value compares to another; `None` if their types differ.
    pub(crate) fn compare(self, other: ScalarRef<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Null, ScalarRef::Null) => Some(Ordering::Equal),
            (Self::Boolean(left), ScalarRef::Boolean(right)) => Some(left.cmp(&right)),
            (Self::Integer(left), ScalarRef::Integer(right)) => Some(left.cmp(&right)),
            (Self::Number(left), ScalarRef::Number(right)) => left.partial_cmp(&right),
            (Self::Integer(left), ScalarRef::Number(right)) => compare_exactly(left, right),
            (Self::Number(left), ScalarRef::Integer(right)) => {
                compare_exactly(right, left).map(Ordering::reverse)
            }
            (Self::Text(left), ScalarRef::Text(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }

    /// Whether the value's type has an order that conditions may ask for.
    pub(crate) fn is_ordered(self) -> bool {
        matches!(self, Self::Integer(_) | Self::Number(_) | Self::Text(_))
    }
}

impl Scalar {
    /// The value, borrowed.
    pub fn borrowed(&self) -> ScalarRef<'_> {
        match self {
            Self::Null => ScalarRef::Null,
            Self::Boolean(value) => ScalarRef::Boolean(*value),
            Self::Integer(value) => ScalarRef::Integer(*value),
            Self::Number(value) => ScalarRef::Number(*value),
            Self::Text(text) => ScalarRef::Text(text),
            Self::Composite => ScalarRef::Composite,
        }
    }

    /// The bytes that the value holds beside itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            _ => 0,
        }
    }
}

impl From<wire::Scalar> for Scalar {
    fn from(stored: wire::Scalar) -> Self {
        match stored.kind {
            None | Some(ScalarKind::Null(_)) => Self::Null,
            Some(ScalarKind::Boolean(value)) => Self::Boolean(value),
            Some(ScalarKind::Integer(value)) => Self::Integer(value),
            Some(ScalarKind::Number(value)) => Self::Number(value),
            Some(ScalarKind::Text(value)) => Self::Text(value.into()),
        }
    }
}

/// Compares without rounding the integer to a double, which would make neighbours beyond 2^53 equal.
fn compare_exactly(integer: i64, number: f64) -> Option<Ordering> {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if number.is_nan() {
        None
    } else if number >= BOUND {
        Some(Ordering::Less)
    } else if number < -BOUND {
        Some(Ordering::Greater)
    } else {
        let whole = number.trunc();
        let fraction = 0.0_f64.total_cmp(&(number - whole + 0.0));
        Some(integer.cmp(&(whole as i64)).then(fraction))
    }
}
