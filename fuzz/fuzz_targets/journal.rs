//! Fuzzes what opens and reads a journal.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| remora_fuzzed::journal::check(bytes));
