//! Fuzzes what opens and reads a journal.
#![no_main]

#[path = "../../rust/tests/fuzzed/input.rs"]
mod input;
#[path = "../../rust/tests/fuzzed/segments.rs"]
mod segments;
#[path = "../../rust/tests/fuzzed/journal.rs"]
mod journal;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| journal::check(bytes));
