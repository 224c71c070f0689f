//! Fuzzes what reads records and applies them in memory.
#![no_main]

#[path = "../../rust/tests/fuzzed/input.rs"]
mod input;
#[path = "../../rust/tests/fuzzed/records.rs"]
mod records;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| records::check(bytes));
