//! Fuzzes what reads records and applies them in memory.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| remora_fuzzed::records::check(bytes));
