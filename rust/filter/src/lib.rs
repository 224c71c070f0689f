//! Conditions on typed attributes: what holds of a message or of a vector.
//!
//! It knows how attributes are encoded, and nothing of what has them.

mod expression;
mod scalar;

pub use expression::{Condition, Expression, Operator, UnknownOperator};
pub use scalar::Scalar;
