//! Conditions on the typed attributes of a message, a vector or an item.
//!
//! Knows: `wire`, for the encoding of attributes. It must not know the things that have them.

mod columns;
mod expression;
mod scalar;
mod symbols;
#[cfg(test)]
mod tests;

pub use columns::Columns;
pub use expression::{Condition, Expression, Operator, UnknownOperator};
pub use scalar::{Scalar, ScalarRef};
pub use symbols::{Symbol, Symbols};
