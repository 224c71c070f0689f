//! Conditions on typed attributes: what holds of a message or of a vector.
//!
//! It knows how attributes are encoded, and nothing of what has them.

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
