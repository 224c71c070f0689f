//! What fuzzers found, and what leads them far into the code, replayed without a fuzzer.

use std::fs;
use std::path::Path;

use remora_fuzzed::{journal, records, tokens};

/// Checks every input that is kept for a target.
fn replay(target: &str, check: fn(&[u8])) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut inputs = 0;
    for file in fs::read_dir(&kept).expect("a corpus") {
        let path = file.expect("listed").path();
        println!("{}", path.display());
        check(&fs::read(path).expect("read"));
        inputs += 1;
    }
    assert!(inputs > 0, "no inputs in {}", kept.display());
}

#[test]
fn a_journal_of_any_bytes_is_read_whole_or_refused() {
    replay("journal", journal::check);
}

#[test]
fn records_of_any_bytes_are_applied_or_refused() {
    replay("records", records::check);
}

#[test]
fn any_text_is_counted_and_cut() {
    replay("tokens", tokens::check);
}
