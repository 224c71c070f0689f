//! Expire times that are set in memory and journaled later.

use remora_wire as wire;

use super::model::NOTES;
use super::residency::{Keeper, note};
use crate::records::{Content, Extent, Loaded, LoadedRecord};

fn taken(keeper: &Keeper, older_than: i64) -> Vec<Option<i64>> {
    taken_at(keeper, older_than, older_than)
}

fn taken_at(keeper: &Keeper, older_than: i64, now: i64) -> Vec<Option<i64>> {
    let taken = keeper.records.take_refreshed(older_than, now);
    taken.into_iter().map(|record| record.expire_time).collect()
}

fn refresh(keeper: &Keeper, revision: u64, expire_time: i64, now: i64) -> bool {
    let place = keeper.place(NOTES, 0, b"ann");
    keeper
        .records
        .refresh(&place, b"k", revision, Some(expire_time), now)
}

fn expiry(record_revision: u64, expire_time: i64) -> wire::Kind {
    wire::Kind::SetExpiry(wire::SetExpiry {
        kind: NOTES,
        partition: b"ann".as_slice().into(),
        key: b"k".as_slice().into(),
        record_revision,
        expire_time: Some(expire_time),
        ..wire::SetExpiry::default()
    })
}

fn expire_time(keeper: &Keeper) -> Option<i64> {
    let place = keeper.place(NOTES, 0, b"ann");
    keeper.get(&place, b"k").unwrap().unwrap().held.expire_time
}

#[test]
fn an_expire_time_is_seen_at_once_and_taken_until_the_journal_has_it() {
    let mut keeper = Keeper::new(1 << 20);
    let revision = keeper.commit(note(b"ann", b"k", 1));
    assert!(refresh(&keeper, revision, 100, 5));
    assert!(refresh(&keeper, revision, 200, 6));
    assert_eq!(expire_time(&keeper), Some(200));

    assert_eq!(taken(&keeper, 4), []);
    assert_eq!(taken(&keeper, 5), [Some(200)]);
    assert_eq!(taken(&keeper, 5), [Some(200)], "its write may have failed");
    keeper.commit(expiry(revision, 200));
    assert_eq!(taken(&keeper, 9), []);
}

#[test]
fn an_expire_time_that_is_set_while_the_one_before_is_journaled_stays() {
    let mut keeper = Keeper::new(1 << 20);
    let revision = keeper.commit(note(b"ann", b"k", 1));
    assert!(refresh(&keeper, revision, 100, 5));
    assert_eq!(taken(&keeper, 5), [Some(100)]);
    assert!(refresh(&keeper, revision, 200, 6));
    keeper.commit(expiry(revision, 100));
    assert_eq!(expire_time(&keeper), Some(200));
    assert_eq!(taken(&keeper, 5), [Some(200)]);
}

#[test]
fn only_the_newest_record_of_a_key_is_refreshed() {
    let mut keeper = Keeper::new(1 << 20);
    let old = keeper.commit(note(b"ann", b"k", 1));
    assert!(refresh(&keeper, old, 100, 5));
    let new = keeper.commit(note(b"ann", b"k", 1));
    assert!(!refresh(&keeper, old, 200, 5));
    assert_eq!(taken(&keeper, 9), [], "the record is not there any more");
    assert_eq!(expire_time(&keeper), None);
    assert!(refresh(&keeper, new, 300, 5));
    assert_eq!(expire_time(&keeper), Some(300));
}

#[test]
fn what_is_refreshed_stays_until_the_journal_has_it() {
    let mut keeper = Keeper::new(1);
    let revision = keeper.commit(note(b"ann", b"k", 1));
    assert!(refresh(&keeper, revision, 100, 5));
    keeper.look_elsewhere();
    keeper.mark_applied();
    assert_eq!(expire_time(&keeper), Some(100));

    keeper.commit(expiry(revision, 100));
    keeper.look_elsewhere();
    keeper.mark_applied();
    assert_eq!(keeper.records.partitions(), 0);
}

/// The expire times that the database may lack.
fn unapplied(keeper: &Keeper) -> Vec<(u64, Option<i64>)> {
    let kind = keeper.records.kinds().get(NOTES).unwrap();
    let found = keeper.records.unapplied_expiries(kind, "acme");
    let found = found.into_iter();
    found
        .map(|record| (record.revision, record.expire_time))
        .collect()
}

#[test]
fn a_key_that_is_refreshed_all_the_time_is_taken_once_an_interval() {
    const INTERVAL: i64 = 60;
    let mut keeper = Keeper::new(1 << 20);
    let revision = keeper.commit(note(b"ann", b"k", 1));
    let mut takes = 0;
    for now in 0..5 * INTERVAL {
        assert!(refresh(&keeper, revision, 1_000 + now, now));
        for expire_time in taken_at(&keeper, now - INTERVAL, now) {
            takes += 1;
            // Every other time it is refreshed again before the journal has it.
            let is_newer = takes % 2 == 0 && refresh(&keeper, revision, 2_000 + now, now);
            keeper.commit(expiry(revision, expire_time.unwrap()));
            assert_eq!(expire_time, Some(1_000 + now), "newer: {is_newer}");
        }
        assert_eq!(unapplied(&keeper).len(), 1);
    }
    assert_eq!(takes, 4);
}

#[test]
fn an_expire_time_is_found_until_the_database_has_it() {
    let mut keeper = Keeper::new(1 << 20);
    let revision = keeper.commit(note(b"ann", b"k", 1));
    keeper.mark_applied();
    assert!(refresh(&keeper, revision, 100, 5));
    let kind = keeper.records.kinds().get(NOTES).unwrap();
    assert!(keeper.records.unapplied_expiries(kind, "beta").is_empty());
    assert_eq!(unapplied(&keeper), [(revision, Some(100))]);
    keeper.commit(expiry(revision, 100));
    assert_eq!(unapplied(&keeper), [(revision, Some(100))]);

    keeper.mark_applied();
    assert_eq!(unapplied(&keeper), []);
}

#[test]
fn the_expire_time_of_a_record_is_found_while_another_takes_its_place() {
    let mut keeper = Keeper::new(1 << 20);
    let revision = keeper.commit(note(b"ann", b"k", 1));
    assert!(refresh(&keeper, revision, 100, 5));
    let newer = keeper.commit(note(b"ann", b"k", 2));
    assert_eq!(taken(&keeper, 9), [], "the journal needs it no more");
    assert!(refresh(&keeper, newer, 200, 9));
    assert_eq!(
        unapplied(&keeper),
        [(revision, Some(100)), (newer, Some(200))]
    );

    keeper.mark_applied();
    assert_eq!(unapplied(&keeper), [(newer, Some(200))]);
}

#[test]
fn what_expired_is_there_for_writers_only() {
    let mut keeper = Keeper::new(1 << 20);
    let revision = keeper.commit(note(b"ann", b"k", 1));
    keeper.commit(expiry(revision, 100));
    let place = keeper.place(NOTES, 0, b"ann");
    let get = |now| {
        let found = keeper.records.get(&place, b"k", now, || keeper.revision);
        found.unwrap().0.is_some()
    };
    assert!(get(99));
    assert!(!get(100));
    assert!(keeper.records.accepted(&place, b"k").unwrap().is_some());
}

/// Answers as the database did while a record had no expire time.
fn load(keeper: &Keeper, revision: u64, as_of: u64) -> bool {
    let record = LoadedRecord {
        key: b"k".as_slice().into(),
        revision,
        content: Content {
            ordinal: 0,
            user: "".into(),
            upload_id: "".into(),
            columns: Box::new([]),
        },
        expire_time: None,
        body: None,
    };
    let loaded = Loaded {
        records: vec![record],
        absent: Vec::new(),
        extent: Extent::Keys,
        as_of,
    };
    let place = keeper.place(NOTES, 0, b"ann");
    keeper.records.load(&place, loaded)
}

/// A keeper whose one record left memory, and gets an expire time now.
fn expiring() -> (Keeper, u64) {
    let mut keeper = Keeper::new(1);
    let revision = keeper.commit(note(b"ann", b"k", 1));
    keeper.look_elsewhere();
    keeper.mark_applied();
    assert_eq!(keeper.records.partitions(), 0);
    keeper.commit(expiry(revision, 100));
    (keeper, revision)
}

#[test]
fn a_record_that_is_loaded_gets_the_expire_time_that_the_database_lacks() {
    let (keeper, revision) = expiring();
    assert!(load(&keeper, revision, revision));
    assert_eq!(expire_time(&keeper), Some(100));
}

#[test]
fn a_load_that_was_asked_before_an_expire_time_was_applied_is_stale() {
    let (keeper, revision) = expiring();
    keeper.mark_applied();
    assert!(!load(&keeper, revision, revision));
    assert!(load(&keeper, revision, keeper.revision));
}
