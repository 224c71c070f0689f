//! Fuzzes what counts tokens and cuts texts.
#![no_main]

use remora_fuzzed::tokens::check;

// The vocabularies are loaded before the clock of an input runs.
libfuzzer_sys::fuzz_target!(init: check(&[]), |bytes: &[u8]| check(bytes));
