//! Many threads: revisions without gaps, effects in their order, nothing published before it is accepted, no wake-up lost.

use std::sync::Mutex;
use std::thread;

use proptest::prelude::*;
use tempfile::tempdir;

use super::*;

const THREADS: u64 = 32;
const EACH: u64 = 40;

fn submit_from_many_threads(journal: &Journal) -> Vec<Record> {
    let accepted = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let accepted = &accepted;
            scope.spawn(move || {
                for count in 0..EACH {
                    let payload = payload(thread * EACH + count, (thread * 7 + count) as usize);
                    let note = |revision| {
                        assert!(journal.published() < revision);
                        accepted.lock().unwrap().push(Record {
                            revision,
                            payload: payload.clone(),
                        });
                    };
                    let revision = journal.submit_with(payload.clone(), note).unwrap();
                    assert_eq!(
                        journal.wait(revision, Some(PATIENCE)).unwrap(),
                        Waited::Published
                    );
                    assert!(journal.published() >= revision);
                }
            });
        }
    });
    accepted.into_inner().unwrap()
}

#[test]
fn effects_happen_in_the_order_of_revisions_and_records_read_back_in_it() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let accepted = submit_from_many_threads(&journal);

    let revisions: Vec<_> = accepted.iter().map(|record| record.revision).collect();
    assert_eq!(revisions, (1..=THREADS * EACH).collect::<Vec<_>>());
    assert_eq!(read_all_after(&journal, 0), accepted);
    drop(journal);
    assert_eq!(read_all_after(&open(directory.path()).0, 0), accepted);
}

#[test]
fn a_volatile_journal_keeps_the_same_order() {
    let journal = Journal::volatile();
    let accepted = submit_from_many_threads(&journal);
    assert_eq!(read_all_after(&journal, 0), accepted);
}

#[test]
fn concurrent_submits_share_batches() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    submit_from_many_threads(&journal);
    let done = journal.statistics();

    assert_eq!(
        (done.accepted, done.published, done.records),
        (1280, 1280, 1280)
    );
    assert!(done.batches < done.records);
    assert!(done.total_sync_micros >= done.last_sync_micros);
}

#[test]
fn a_panic_while_accepting_ends_the_journal_with_what_was_accepted_before() {
    let directory = tempdir().unwrap();
    for journal in [open(directory.path()).0, Journal::volatile()] {
        let before = journal.submit_with(payload(1, 1), |_| ()).unwrap();
        thread::scope(|scope| {
            let panicking = scope.spawn(|| journal.submit_with(payload(2, 2), |_| panic!("half")));
            assert!(panicking.join().is_err());
        });

        assert_eq!(journal.accepted(), before);
        assert_eq!(
            journal.wait(before, Some(PATIENCE)).unwrap(),
            Waited::Published
        );
        assert!(matches!(
            journal.submit_with(payload(3, 3), |_| ()),
            Err(JournalError::Failed(_))
        ));
        assert!(matches!(
            journal.wait(before + 1, Some(PATIENCE)),
            Err(JournalError::Failed(_))
        ));
        assert!(journal.close().is_err());
        assert!(matches!(journal.ended(), Some(JournalError::Failed(_))));
    }
}

#[test]
fn waiting_for_what_never_comes_ends_with_the_timeout() {
    let journal = Journal::volatile();
    assert_eq!(
        journal.wait(1, Some(Duration::from_millis(5))).unwrap(),
        Waited::TimedOut
    );
    assert_eq!(journal.wait(0, None).unwrap(), Waited::Published);
}

#[test]
fn a_wait_for_a_revision_not_yet_accepted_ends_when_it_is_published() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    thread::scope(|scope| {
        let watchers: Vec<_> = (0..200)
            .map(|ahead| (ahead % 5 + 1, &journal))
            .map(|(revision, journal)| scope.spawn(move || journal.wait(revision, Some(PATIENCE))))
            .collect();
        append_each(&journal, 5, 10);
        for watcher in watchers {
            assert_eq!(watcher.join().unwrap().unwrap(), Waited::Published);
        }
    });
}

#[test]
fn payloads_above_the_limit_are_refused() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    let refused = journal.submit_with(payload(1, 9000), |_| ()).unwrap_err();
    let JournalError::TooLarge { bytes: 9000, limit } = refused else {
        panic!("{refused}");
    };
    assert_eq!(append(&journal, payload(1, limit)), 1);
    assert!(journal.submit_with(payload(1, limit + 1), |_| ()).is_err());
    assert!(
        Journal::volatile()
            .submit_with(vec![0; (40 << 20) + 1], |_| ())
            .is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Sizes at and around every border: nothing, padding, a record that just fits or must go to the next segment.
    #[test]
    fn any_sizes_in_any_grouping_round_trip(groups in prop::collection::vec(prop::collection::vec(0_usize..4000, 1..6), 1..12)) {
        let directory = tempdir().unwrap();
        let (journal, _) = open(directory.path());
        let mut records = Vec::new();
        for group in &groups {
            for length in group {
                let payload = payload(records.len() as u64, *length);
                let revision = journal.submit_with(payload.clone(), |_| ()).unwrap();
                records.push(Record { revision, payload });
            }
            journal.wait(records.len() as u64, Some(PATIENCE)).unwrap();
        }
        prop_assert_eq!(&read_all_after(&journal, 0), &records);
        drop(journal);
        let (journal, recovery) = open(directory.path());
        prop_assert_eq!(recovery.last_revision, records.len() as u64);
        prop_assert_eq!(read_all_after(&journal, 0), records);
    }
}
