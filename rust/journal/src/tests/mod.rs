//! What the journal promises, tried on real files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod crash;
mod damage;
mod failure;
mod opening;
mod order;
mod reading;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use super::{Journal, JournalError, Options, Record, Recovery, Waited};

const PATIENCE: Duration = Duration::from_secs(300);

/// Small segments, so that a few records fill several.
fn small_segments() -> Options {
    Options {
        segment_bytes: 8 << 10,
        queue_bytes: 16 << 10,
        ..Options::default()
    }
}

fn open(directory: &Path) -> (Journal, Recovery) {
    Journal::open(directory, small_segments()).expect("the journal opens")
}

fn refusal(directory: &Path, options: Options) -> JournalError {
    match Journal::open(directory, options) {
        Ok((_, recovery)) => panic!("opened: {recovery:?}"),
        Err(error) => error,
    }
}

/// Bytes that differ from payload to payload and within one.
fn payload(seed: u64, length: usize) -> Bytes {
    let bytes =
        (0..length as u64).map(|at| (seed.wrapping_mul(31) ^ at.wrapping_mul(0x9e37_79b9)) as u8);
    bytes.collect()
}

/// Submits and waits until it is published.
fn append(journal: &Journal, payload: Bytes) -> u64 {
    let revision = journal.submit_with(payload, |_| ()).expect("accepted");
    let waited = journal.wait(revision, Some(PATIENCE)).expect("published");
    assert_eq!(waited, Waited::Published);
    revision
}

/// Appends `count` records of `length` bytes, each a batch of its own.
fn append_each(journal: &Journal, count: u64, length: usize) -> Vec<Record> {
    let appended = (0..count).map(|seed| {
        let payload = payload(seed, length);
        let revision = append(journal, payload.clone());
        Record { revision, payload }
    });
    appended.collect()
}

/// Every record after `revision`, read in small pieces.
fn read_all_after(journal: &Journal, mut revision: u64) -> Vec<Record> {
    let mut records = Vec::new();
    loop {
        let read = journal.records_after(revision, 3000).expect("readable");
        let Some(last) = read.last() else {
            return records;
        };
        revision = last.revision;
        records.extend(read);
    }
}
