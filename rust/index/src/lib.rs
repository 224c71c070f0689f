//! Exact cosines between a query and all vectors of one set.
//!
//! A [`Segment`] holds unit vectors under the slots that its caller assigns: small, dense numbers. Scores have the same bits
//! with every instruction set.
//!
//! Knows: `kernels`. It must not know messages.

mod rows;
mod segment;
#[cfg(test)]
mod tests;
mod vector;

pub use segment::Segment;
pub use vector::{Query, VectorError};
