//! The checks of the engine that fuzzers run on arbitrary bytes. The usual tests replay the fuzzers' findings; `make fuzz`
//! continues from these.
//!
//! It knows the public interfaces of the crates that it checks, and no fuzzer.

mod input;
pub mod journal;
pub mod records;
mod segments;
pub mod tokens;
