//! Reading and releasing: from memory, from disk, in pieces, and no longer what was released.

use std::fs;
use std::thread;

use tempfile::tempdir;

use super::*;

/// Keeps almost nothing in memory, so that reads go to disk.
fn without_memory() -> Options {
    Options {
        memory_bytes: 1000,
        ..small_segments()
    }
}

#[test]
fn reads_from_disk_equal_reads_from_memory() {
    let (on_disk, in_memory) = (tempdir().unwrap(), tempdir().unwrap());
    let (journal, _) = Journal::open(on_disk.path(), without_memory()).unwrap();
    let (other, _) = open(in_memory.path());
    let records = append_each(&journal, 60, 300);
    append_each(&other, 60, 300);

    for after in 0..=60 {
        assert_eq!(read_all_after(&journal, after), records[after as usize..]);
        let piece = |journal: &Journal| journal.records_after(after, 1000).unwrap();
        assert_eq!(piece(&journal), piece(&other));
    }
}

#[test]
fn a_read_returns_at_most_the_bytes_asked_for_but_always_gets_on() {
    let journal = Journal::volatile();
    append_each(&journal, 10, 100);
    let lengths = |max| journal.records_after(0, max).unwrap().len();
    assert_eq!(
        (
            lengths(0),
            lengths(99),
            lengths(100),
            lengths(299),
            lengths(5000)
        ),
        (1, 1, 1, 2, 10)
    );
    assert!(journal.records_after(10, 100).unwrap().is_empty());
    assert!(journal.records_after(u64::MAX, 100).unwrap().is_empty());
}

#[test]
fn released_segments_are_deleted_and_the_rest_stays_readable() {
    let directory = tempdir().unwrap();
    let (journal, _) = Journal::open(directory.path(), without_memory()).unwrap();
    let records = append_each(&journal, 40, 900);
    let before = journal.statistics();
    journal.release(25).unwrap();
    let after = journal.statistics();

    assert!(after.segments < before.segments);
    assert_eq!(after.disk_bytes, after.segments as u64 * 8192);
    assert_eq!(read_all_after(&journal, 25), records[25..]);
    assert!(
        matches!(journal.records_after(0, 100), Err(JournalError::Released(last)) if last <= 25)
    );
}

#[test]
fn the_segment_that_is_written_on_is_never_deleted() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    append_each(&journal, 40, 900);
    journal.release(u64::MAX).unwrap();

    assert_eq!(journal.statistics().segments, 1);
    assert_eq!(journal.statistics().memory_bytes, 0);
    assert_eq!(append(&journal, payload(1, 10)), 41);
    drop(journal);
    let options = Options {
        applied_revision: 41,
        ..small_segments()
    };
    assert_eq!(
        Journal::open(directory.path(), options)
            .unwrap()
            .1
            .last_revision,
        41
    );
}

#[test]
fn a_volatile_journal_holds_records_until_they_are_released() {
    let journal = Journal::volatile();
    let records = append_each(&journal, 10, 100);
    journal.release(4).unwrap();
    assert_eq!(read_all_after(&journal, 4), records[4..]);
    assert!(matches!(
        journal.records_after(3, 100),
        Err(JournalError::Released(4))
    ));
    journal.release(u64::MAX).unwrap();
    assert!(matches!(
        journal.records_after(9, 100),
        Err(JournalError::Released(10))
    ));
}

/// The applier reads at the writer's heels, across segments that fill and go, and sees every record once and whole.
#[test]
fn a_reader_beside_the_writer_sees_every_record_once() {
    const COUNT: u64 = 400;
    let directory = tempdir().unwrap();
    let (journal, _) = Journal::open(directory.path(), without_memory()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| append_each(&journal, COUNT, 300));
        let mut seen = 0;
        while seen < COUNT {
            journal.wait(seen + 1, Some(PATIENCE)).unwrap();
            for record in journal.records_after(seen, 2000).unwrap() {
                assert_eq!(
                    record,
                    Record {
                        revision: seen + 1,
                        payload: payload(seen, 300)
                    }
                );
                seen += 1;
            }
            journal.release(seen.saturating_sub(50)).unwrap();
        }
    });
}

#[test]
fn damage_that_appears_while_open_is_reported_by_the_read() {
    let directory = tempdir().unwrap();
    let (journal, _) = Journal::open(directory.path(), without_memory()).unwrap();
    append_each(&journal, 40, 300);
    let first = directory.path().join("00000000000000000001.journal");
    let mut bytes = fs::read(&first).unwrap();
    bytes[5000] ^= 1;
    fs::write(&first, bytes).unwrap();

    let read = journal.records_after(0, usize::MAX);
    assert!(matches!(
        read,
        Err(JournalError::Damaged {
            offset: 4096..=5000,
            ..
        })
    ));
}
