//! Opening: an empty directory, a second time, a wrong store, a journal that does not join what was applied.

use std::fs;

use tempfile::tempdir;

use super::*;

#[test]
fn a_new_journal_is_empty_and_starts_at_revision_one() {
    let directory = tempdir().unwrap();
    let (journal, recovery) = open(directory.path());

    assert_eq!((recovery.first_revision, recovery.last_revision), (1, 0));
    assert_eq!(recovery.cut, None);
    assert_eq!(journal.published(), 0);
    assert_eq!(append(&journal, payload(1, 10)), 1);
}

#[test]
fn a_reopened_journal_holds_what_was_published_and_goes_on() {
    let directory = tempdir().unwrap();
    let (journal, begun) = open(directory.path());
    let mut records = append_each(&journal, 40, 700);
    journal.close().unwrap();
    drop(journal);

    let (journal, recovery) = open(directory.path());
    let revision = append(&journal, payload(99, 5));
    records.push(Record {
        revision,
        payload: payload(99, 5),
    });

    assert_eq!((recovery.first_revision, recovery.last_revision), (1, 40));
    assert_eq!((recovery.store_id, recovery.cut), (begun.store_id, None));
    assert_eq!(read_all_after(&journal, 0), records);
}

#[test]
fn closing_writes_what_is_queued() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    for seed in 0..20 {
        journal.submit_with(payload(seed, 100), |_| ()).unwrap();
    }
    journal.close().unwrap();
    assert_eq!(journal.published(), 20);
    assert!(matches!(
        journal.submit_with(payload(1, 1), |_| ()),
        Err(JournalError::Closed)
    ));
    assert!(matches!(journal.wait(21, None), Err(JournalError::Closed)));
    drop(journal);

    assert_eq!(open(directory.path()).1.last_revision, 20);
}

#[test]
fn a_directory_is_open_once_at_a_time() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    assert!(matches!(
        refusal(directory.path(), small_segments()),
        JournalError::Locked(_)
    ));
    drop(journal);
    open(directory.path());
}

#[test]
fn a_journal_of_another_store_is_refused() {
    let directory = tempdir().unwrap();
    let of_store = |id| Options {
        store_id: Some([id; 16]),
        ..small_segments()
    };
    let (_, recovery) = Journal::open(directory.path(), of_store(1)).unwrap();
    assert_eq!(recovery.store_id, [1; 16]);

    let refused = refusal(directory.path(), of_store(2));
    assert!(refused.to_string().contains(&"01".repeat(16)), "{refused}");
    assert!(matches!(refused, JournalError::ForeignStore { found, .. } if found == [1; 16]));
}

#[test]
fn segments_of_two_stores_in_one_directory_are_refused() {
    let (directory, other) = (tempdir().unwrap(), tempdir().unwrap());
    for at in [&directory, &other] {
        append_each(&open(at.path()).0, 20, 900);
    }
    let name = second_segment(other.path());
    fs::copy(other.path().join(&name), directory.path().join(&name)).unwrap();

    assert!(
        matches!(refusal(directory.path(), small_segments()), JournalError::ForeignStore { segment, .. } if segment == name)
    );
}

#[test]
fn a_journal_behind_what_was_applied_is_refused() {
    let directory = tempdir().unwrap();
    let applied = |applied_revision| Options {
        applied_revision,
        ..small_segments()
    };
    assert!(matches!(
        refusal(directory.path(), applied(7)),
        JournalError::Behind {
            last: 0,
            applied: 7
        }
    ));

    append_each(&open(directory.path()).0, 5, 10);
    assert!(matches!(
        refusal(directory.path(), applied(6)),
        JournalError::Damaged { .. }
    ));
    assert!(Journal::open(directory.path(), applied(5)).is_ok());
}

#[test]
fn a_journal_that_begins_after_what_was_applied_is_refused() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    append_each(&journal, 30, 900);
    journal.release(20).unwrap();
    drop(journal);

    let applied = |applied_revision| Options {
        applied_revision,
        ..small_segments()
    };
    let refused = refusal(directory.path(), applied(0));
    let JournalError::Gap { first, applied: 0 } = refused else {
        panic!("{refused}");
    };
    assert!((2..=21).contains(&first));
    let (_, recovery) = Journal::open(directory.path(), applied(20)).unwrap();
    assert_eq!(recovery.first_revision, first);
}

#[test]
fn an_empty_directory_may_start_after_a_restored_revision() {
    let directory = tempdir().unwrap();
    let restored = |start_after| Options {
        applied_revision: 41,
        start_after: Some(start_after),
        ..small_segments()
    };
    assert!(matches!(
        refusal(directory.path(), restored(40)),
        JournalError::Behind { .. }
    ));
    assert!(matches!(
        refusal(directory.path(), restored(42)),
        JournalError::Gap { .. }
    ));

    let (journal, recovery) = Journal::open(directory.path(), restored(41)).unwrap();
    assert_eq!((recovery.first_revision, recovery.last_revision), (42, 41));
    assert_eq!(append(&journal, payload(1, 1)), 42);
}

#[test]
fn options_without_room_for_a_record_are_refused() {
    let directory = tempdir().unwrap();
    let tiny = Options {
        segment_bytes: 4096,
        ..Options::default()
    };
    assert!(matches!(
        refusal(directory.path(), tiny),
        JournalError::InvalidOptions(_)
    ));
}

fn second_segment(directory: &Path) -> String {
    let files = fs::read_dir(directory)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut segments: Vec<_> = files.filter(|name| name.ends_with(".journal")).collect();
    segments.sort();
    segments.swap_remove(1)
}
