//! Fuzzes what counts tokens and cuts texts.
#![no_main]

#[path = "../../rust/tests/fuzzed/tokens.rs"]
mod tokens;

// The vocabularies are loaded before the clock of an input runs.
libfuzzer_sys::fuzz_target!(init: tokens::check(&[]), |bytes: &[u8]| tokens::check(bytes));
