//! Late interaction: a text as small vectors, one for each of its word pieces, compared piece by piece.
//!
//! After Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
//! BERT", 2020: what one vector of a text averages away, the best match of each word of a question still finds.
//!
//! Knows: `kernels`. It must not know the encoder, which makes the vectors, or recall, which compares them.

mod pieces;
mod projection;
#[cfg(test)]
mod tests;

pub use pieces::{Pieces, Query};
pub use projection::{HIDDEN, code};
