//! Remora's engine. Each module stands alone and knows no Python; `python` converts, releases the GIL and calls.

pub mod encoder;
pub mod index;
pub mod journal;
pub mod kernels;
pub mod lexical;
pub mod tokens;

#[cfg(feature = "python")]
mod python;
