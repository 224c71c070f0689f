//! What fuzzers check of the engine, on any bytes. The usual tests replay what fuzzers found; `make fuzz` goes on from there.
//!
//! It knows the faces of the parts that it checks, and nothing of a fuzzer.

mod input;
pub mod journal;
pub mod records;
mod segments;
pub mod tokens;
