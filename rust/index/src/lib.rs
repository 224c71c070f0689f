//! Exact cosine search over the vectors of one partition, or of several.
//!
//! A [`Segment`] holds unit vectors under the slots that its caller assigns: small, dense numbers. Hits come by descending
//! score, then by ascending segment number and slot, with the same bits at every instruction set. It knows the kernels, and nothing of messages.

mod id_set;
mod rows;
mod search;
mod segment;
#[cfg(test)]
mod tests;
mod vector;

pub use id_set::IdSet;
pub use search::{Hit, Scope, SegmentHit, search_many};
pub use segment::Segment;
pub use vector::{Query, VectorError};
