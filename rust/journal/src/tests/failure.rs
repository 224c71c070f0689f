//! Failures: a failed write or sync stops the journal, a full disk refuses and recovers, a full queue pushes back.

use std::time::Instant;

use tempfile::tempdir;

use super::super::failpoints::{Action, Point, arm, disarm};
use super::*;

fn stops_at(point: Point) {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    append_each(&journal, 3, 10);
    arm(directory.path(), point, 0, Action::Error);
    let revision = journal.submit_with(payload(9, 10), |_| ()).unwrap();

    assert!(matches!(
        journal.wait(revision, Some(PATIENCE)),
        Err(JournalError::Failed(_))
    ));
    disarm(directory.path());
    assert!(matches!(
        journal.submit_with(payload(9, 10), |_| ()),
        Err(JournalError::Failed(_))
    ));
    assert!(matches!(journal.ended(), Some(JournalError::Failed(_))));
    assert_eq!(
        (
            journal.published(),
            journal.records_after(0, 1000).unwrap().len()
        ),
        (3, 3)
    );
    assert!(journal.close().is_err());
    drop(journal);
    assert!(open(directory.path()).1.last_revision >= 3);
}

#[test]
fn a_failed_write_stops_the_journal() {
    stops_at(Point::BeforeWrite);
}

#[test]
fn a_failed_sync_stops_the_journal() {
    stops_at(Point::BeforeSync);
}

#[test]
fn a_failure_to_begin_a_segment_stops_the_journal_and_loses_nothing_published() {
    for point in [Point::SegmentNamed, Point::SegmentSealed] {
        let directory = tempdir().unwrap();
        let (journal, _) = open(directory.path());
        arm(directory.path(), point, 0, Action::Error);
        while let Ok(revision) = journal.submit_with(payload(1, 900), |_| ()) {
            let _ = journal.wait(revision, Some(PATIENCE));
        }
        let published = journal.published();
        disarm(directory.path());
        drop(journal);

        assert_eq!(open(directory.path()).1.last_revision, published);
    }
}

/// Submits until the journal is full; how many were accepted.
fn fill(journal: &Journal) -> u64 {
    loop {
        match journal.submit_with(payload(1, 900), |_| ()) {
            Ok(_) => continue,
            Err(JournalError::Full { .. }) => return journal.accepted(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_full_disk_refuses_before_accepting_and_accepts_again_when_space_returns() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    arm(directory.path(), Point::SegmentPrepared, 1, Action::NoSpace);
    let accepted = fill(&journal);

    assert_eq!(
        journal.wait(accepted, Some(PATIENCE)).unwrap(),
        Waited::Published
    );
    assert!(journal.ended().is_none());
    assert!(journal.statistics().refusing.is_some());
    disarm(directory.path());
    let deadline = Instant::now() + PATIENCE;
    while journal.submit_with(payload(2, 900), |_| ()).is_err() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(journal.statistics().refusing.is_none());
    journal.close().unwrap();
    assert_eq!(journal.published(), accepted + 1);
    drop(journal);
    assert_eq!(open(directory.path()).1.last_revision, accepted + 1);
}

#[test]
fn a_disk_that_is_full_from_the_start_is_told_when_opening() {
    let directory = tempdir().unwrap();
    arm(directory.path(), Point::SegmentPrepared, 0, Action::NoSpace);
    assert!(matches!(
        refusal(directory.path(), small_segments()),
        JournalError::Io { .. }
    ));
    disarm(directory.path());
    open(directory.path());
}

#[test]
fn a_full_queue_holds_submitters_back_until_it_is_written() {
    let directory = tempdir().unwrap();
    let options = Options {
        queue_bytes: 100,
        ..small_segments()
    };
    let (journal, _) = Journal::open(directory.path(), options).unwrap();
    for seed in 0..50 {
        journal.submit_with(payload(seed, 90), |_| ()).unwrap();
        assert!(journal.statistics().queued_bytes <= 112);
    }
    journal.close().unwrap();
    assert_eq!(journal.published(), 50);
}

#[test]
fn every_submitter_that_is_held_back_learns_of_the_failure() {
    let directory = tempdir().unwrap();
    let options = Options {
        queue_bytes: 100,
        ..small_segments()
    };
    let (journal, _) = Journal::open(directory.path(), options).unwrap();
    arm(directory.path(), Point::AfterWrite, 0, Action::Error);
    std::thread::scope(|scope| {
        for seed in 0..16 {
            let journal = &journal;
            scope.spawn(move || {
                let outcome = journal
                    .submit_with(payload(seed, 90), |_| ())
                    .and_then(|revision| journal.wait(revision, Some(PATIENCE)));
                assert!(matches!(outcome, Err(JournalError::Failed(_))));
            });
        }
    });
    disarm(directory.path());
    assert_eq!(journal.published(), 0);
}
