//! What is in memory, and what leaves it.

use std::sync::Arc;

use bytes::Bytes;
use remora_wire as wire;

use super::model::{self, NOTES, TURNS};
use crate::records::*;

const TENANT: &str = "acme";

/// Records, and the revision of the last change; everything is published at once.
pub(super) struct Keeper {
    pub(super) records: Records,
    pub(super) revision: u64,
}

impl Keeper {
    pub(super) fn new(bound: usize) -> Self {
        Self {
            records: Records::new(model::kinds(), bound, 0),
            revision: 0,
        }
    }

    pub(super) fn commit(&mut self, change: wire::Kind) -> u64 {
        self.revision += 1;
        let change = Change::read(&change, self.records.kinds()).unwrap();
        let change = Prepared::new(change.unwrap(), 0);
        self.records
            .apply(TENANT, change, self.revision, self.revision - 1);
        self.revision
    }

    pub(super) fn place<'a>(&'a self, kind: u32, uid: u64, partition: &'a [u8]) -> Place<'a> {
        let kind: &Arc<Kind> = self.records.kinds().get(kind).unwrap();
        Place {
            kind,
            tenant: TENANT,
            conversation_uid: uid,
            partition,
        }
    }

    pub(super) fn get(&self, place: &Place<'_>, key: &[u8]) -> Result<Option<Found>, Cold> {
        let found = self.records.get(place, key, 0, || self.revision)?;
        Ok(found.0)
    }

    pub(super) fn mark_applied(&self) {
        self.records.mark_applied(self.revision, self.revision);
    }

    /// Uses other partitions, so that none is among the last uses.
    pub(super) fn look_elsewhere(&self) {
        for _ in 0..100 {
            let _ = self.get(&self.place(NOTES, 0, b"elsewhere"), b"");
        }
    }
}

pub(super) fn note(partition: &[u8], key: &[u8], body: usize) -> wire::Kind {
    wire::Kind::PutRecord(wire::PutRecord {
        kind: NOTES,
        partition: partition.to_vec().into(),
        key: key.to_vec().into(),
        body: vec![b'x'; body].into(),
        ..wire::PutRecord::default()
    })
}

pub(super) fn turn(uid: u64, partition: &[u8], key: &[u8], number: i64) -> wire::Kind {
    let columns = [
        wire::ValueKind::Text("text".to_owned()),
        wire::ValueKind::Integer(number),
    ];
    wire::Kind::PutRecord(wire::PutRecord {
        kind: TURNS,
        conversation_uid: uid,
        partition: partition.to_vec().into(),
        key: key.to_vec().into(),
        columns: columns.map(|kind| wire::Value { kind: Some(kind) }).into(),
        ..wire::PutRecord::default()
    })
}

fn creation() -> wire::Kind {
    wire::Kind::PutConversation(wire::PutConversation::default())
}

fn end(uid: u64) -> wire::Kind {
    wire::Kind::DeleteConversation(wire::DeleteConversation {
        conversation_uid: uid,
        ..wire::DeleteConversation::default()
    })
}

fn all() -> Selection {
    Selection {
        limit: usize::MAX,
        max_bytes: usize::MAX,
        ..Selection::default()
    }
}

#[test]
fn a_conversation_that_began_here_is_never_cold_until_something_of_it_left_memory() {
    let mut keeper = Keeper::new(1);
    let uid = keeper.commit(creation());
    let list = |keeper: &Keeper| {
        let place = keeper.place(TURNS, uid, b"a");
        let page = keeper.records.list(&place, &all(), || keeper.revision);
        page.map(|page| page.records.len())
    };
    assert_eq!(list(&keeper), Ok(0));
    assert_eq!(keeper.records.partitions(), 0);
    keeper.commit(turn(uid, b"a", b"k", 1));
    assert_eq!(list(&keeper), Ok(1));

    keeper.look_elsewhere();
    keeper.mark_applied();
    assert_eq!(keeper.records.partitions(), 0);
    assert_eq!(list(&keeper), Err(Cold { after: None }));
    assert!(keeper.get(&keeper.place(TURNS, uid, b"b"), b"k").is_err());
}

#[test]
fn what_is_only_read_takes_no_memory() {
    let keeper = Keeper::new(1 << 20);
    let place = keeper.place(NOTES, 0, b"ann");
    assert!(keeper.get(&place, b"").is_err());
    assert_eq!(keeper.records.partitions(), 0);
    assert_eq!(keeper.records.bytes(), 0);
}

#[test]
fn what_the_database_lacks_stays_whatever_the_bound() {
    let mut keeper = Keeper::new(1);
    keeper.commit(note(b"ann", b"k", 100));
    keeper.look_elsewhere();
    keeper.records.mark_applied(0, keeper.revision);
    let found = keeper.get(&keeper.place(NOTES, 0, b"ann"), b"k").unwrap();
    assert!(found.unwrap().held.body.is_some());
}

#[test]
fn bodies_go_before_keys_and_the_least_recently_used_first() {
    let mut keeper = Keeper::new(100_000);
    for number in 0..10_u8 {
        keeper.commit(note(b"ann", &[number], 15_000));
    }
    let place = |keeper: &Keeper, number: u8| {
        let place = keeper.place(NOTES, 0, b"ann");
        keeper.get(&place, &[number]).unwrap().unwrap().held.body
    };
    assert!(place(&keeper, 0).is_some());
    keeper.look_elsewhere();
    keeper.mark_applied();

    let held: Vec<_> = (0..10)
        .map(|number| place(&keeper, number).is_some())
        .collect();
    assert!(keeper.records.bytes() <= 100_000);
    assert_eq!(held.iter().filter(|held| **held).count(), 5);
    assert!(held[0], "it was used last");
}

#[test]
fn partitions_go_where_their_keys_take_more_than_half_of_the_bound() {
    let mut keeper = Keeper::new(100_000);
    for number in 0..1_000_u32 {
        keeper.commit(note(&number.to_be_bytes(), b"", 10));
    }
    keeper.look_elsewhere();
    keeper.mark_applied();
    let partitions = keeper.records.partitions();
    assert!(partitions > 10 && partitions < 500, "{partitions}");
    let newest = 999_u32.to_be_bytes();
    let newest = keeper.get(&keeper.place(NOTES, 0, &newest), b"");
    assert!(newest.unwrap().unwrap().held.body.is_some());
}

#[test]
fn who_loaded_something_finds_it() {
    let keeper = Keeper::new(1);
    for number in 0..100_u32 {
        let partition = number.to_be_bytes();
        let place = keeper.place(NOTES, 0, &partition);
        let loaded = Loaded {
            records: Vec::new(),
            absent: vec![Bytes::new().as_ref().into()],
            extent: Extent::Keys,
            as_of: 0,
        };
        assert!(keeper.records.load(&place, loaded));
        assert_eq!(keeper.get(&place, b""), Ok(None));
    }
    assert!(keeper.records.partitions() < 100);
}

#[test]
fn a_conversation_that_ended_is_known_to_be_empty() {
    let mut keeper = Keeper::new(1 << 20);
    keeper.commit(turn(7, b"a", b"k", 1));
    keeper.commit(end(7));
    let place = keeper.place(TURNS, 7, b"a");
    assert_eq!(keeper.get(&place, b"k"), Ok(None));
    assert_eq!(keeper.get(&place, b"other"), Ok(None));
    let page = keeper.records.list(&place, &all(), || keeper.revision);
    assert!(page.unwrap().records.is_empty());
    let of_others = keeper.place(TURNS, 8, b"a");
    assert!(keeper.get(&of_others, b"k").is_err());
}

#[test]
fn a_kind_was_touched_by_what_removes_many() {
    let mut keeper = Keeper::new(1 << 20);
    let touched = |keeper: &Keeper| {
        [TURNS, NOTES].map(|kind| {
            let kind = keeper.records.kinds().get(kind).unwrap();
            keeper.records.touched(kind)
        })
    };
    assert_eq!(touched(&keeper), [0, 0]);
    keeper.commit(note(b"ann", b"", 1));
    assert_eq!(touched(&keeper), [0, 1]);
    keeper.commit(end(7));
    assert_eq!(touched(&keeper), [2, 1]);
    keeper.commit(wire::Kind::RemoveUserRecords(wire::RemoveUserRecords {
        user_id: "ann".to_owned(),
        kinds: vec![TURNS, NOTES],
    }));
    assert_eq!(touched(&keeper), [3, 3]);
}

/// A key that is written again and again between two batches of the database.
#[test]
fn only_what_somebody_may_see_is_kept_of_a_key() {
    let mut keeper = Keeper::new(1 << 20);
    keeper.commit(note(b"ann", b"", 1_000));
    let once = keeper.records.bytes();
    for _ in 0..1_000 {
        keeper.commit(note(b"ann", b"", 1_000));
    }
    assert!(keeper.records.bytes() < 3 * once);
}

fn loaded(keys: u32, extent: Extent) -> Loaded {
    let record = |number: u32| LoadedRecord {
        key: number.to_be_bytes().as_slice().into(),
        revision: 1,
        content: Content {
            ordinal: number,
            user: "".into(),
            upload_id: "".into(),
            columns: Box::new([]),
        },
        expire_time: None,
        body: None,
    };
    Loaded {
        records: (0..keys).map(record).collect(),
        absent: vec![b"absent".as_slice().into()],
        extent,
        as_of: 1,
    }
}

#[test]
fn a_load_of_any_size_is_taken_in_whole() {
    for keys in [0, 1, 127, 128, 129, 1_000] {
        let keeper = Keeper::new(1 << 20);
        let place = keeper.place(NOTES, 0, b"ann");
        assert!(keeper.records.load(&place, loaded(keys, Extent::Whole)));
        let count = keeper.records.count_records(&place, &Vec::new(), 0, || 1);
        assert_eq!(count, Ok((keys as usize, 1)));
        assert_eq!(keeper.get(&place, b"absent"), Ok(None));
    }
}

/// Its parts are taken in one by one: what came before is lost where the partition left memory between two of them.
#[test]
fn a_load_whose_first_part_left_memory_is_refused() {
    let keeper = Keeper::new(1 << 20);
    let place = keeper.place(NOTES, 0, b"ann");
    let mut parts = loaded(200, Extent::Whole).into_parts();
    let mut begun = None;
    let mut load = |keeper: &Keeper| {
        let part = parts.next().unwrap();
        keeper
            .records
            .load_part(&place, &place.name(), part, &mut begun)
    };
    assert!(load(&keeper));
    let fingerprint = keeper.records.fingerprint(&place);
    keeper.records.shard(fingerprint).residents.clear();
    assert!(!load(&keeper));
    assert!(keeper.get(&place, b"absent").is_err());
}
