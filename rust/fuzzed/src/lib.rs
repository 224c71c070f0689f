//! The checks of the engine that fuzzers run on arbitrary bytes. The usual tests replay the fuzzers' findings; `make fuzz`
//! continues from these.
//!
//! Knows: `core`, `journal`, `tokens`, `wire`, by their public interfaces. It must not know a fuzzer.

mod input;
pub mod journal;
pub mod records;
mod segments;
pub mod tokens;
