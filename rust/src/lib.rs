//! Remora's engine. Each module stands alone and knows no Python; `python` converts, releases the GIL and calls.

mod absences;
pub mod core;
pub mod encoder;
mod failpoints;
mod fingerprint;
pub mod index;
pub mod journal;
pub mod kernels;
pub mod late;
pub mod lexical;
pub mod panics;
pub mod recall;
pub mod records;
pub mod rows;
mod supervision;
pub mod times;
pub mod tokens;
pub mod transport;
pub mod windows;
pub mod wire;

#[cfg(feature = "python")]
mod python;
