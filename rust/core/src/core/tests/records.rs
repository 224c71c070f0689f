//! Records by key from their wire form to what is read, across a start.

use bytes::Bytes;
use remora_wire as wire;

use super::commits::{TENANT, commit, creation, encoded, record};
use crate::core::{CommitError, Core, Settings};
use crate::records::{Cold, Found, Kind, Kinds, Place, Selection};

const MEMORIES: u32 = 3;
const STEPS: u32 = 1;

fn settings() -> Settings {
    let kind = |number, of_conversation| Kind {
        number,
        columns: Vec::new(),
        orders: Vec::new(),
        of_conversation,
        of_user: true,
        is_searched: false,
        holds_items: false,
    };
    let kinds = Kinds::new([kind(STEPS, true), kind(MEMORIES, false)]);
    Settings {
        kinds: kinds.unwrap(),
        ..Settings::default()
    }
}

fn put(kind: u32, conversation_uid: u64, body: &'static [u8]) -> wire::Kind {
    wire::Kind::PutRecord(wire::PutRecord {
        kind,
        conversation_uid,
        partition: Bytes::from_static(b"ann"),
        body: Bytes::from_static(body),
        replaces: true,
        ..wire::PutRecord::default()
    })
}

fn with_place<T>(core: &Core, kind: u32, uid: u64, read: impl FnOnce(&Place<'_>) -> T) -> T {
    read(&Place {
        kind: core.records().kinds().get(kind).unwrap(),
        tenant: TENANT,
        conversation_uid: uid,
        partition: b"ann",
    })
}

fn body(core: &Core, kind: u32, uid: u64) -> Result<Option<Vec<u8>>, Cold> {
    let published = || core.journal().published();
    let found = with_place(core, kind, uid, |place| {
        core.records().get(place, b"", 0, published)
    })?;
    let body = |found: Found| found.held.body.unwrap().to_vec();
    Ok(found.0.map(body))
}

#[test]
fn a_record_is_read_when_it_is_published() {
    let core = Core::open(None, &settings()).unwrap();
    assert!(body(&core, MEMORIES, 0).is_err());
    commit(&core, [put(MEMORIES, 0, b"content")]);
    assert_eq!(body(&core, MEMORIES, 0), Ok(Some(b"content".to_vec())));
}

#[test]
fn a_record_that_creates_its_conversation_is_of_its_uid() {
    let core = Core::open(None, &settings()).unwrap();
    let uid = commit(&core, [creation("chat"), put(STEPS, 0, b"step")]);
    assert_eq!(body(&core, STEPS, uid), Ok(Some(b"step".to_vec())));
    let published = || core.journal().published();
    let page = with_place(&core, STEPS, uid, |place| {
        let all = Selection {
            limit: 10,
            max_bytes: usize::MAX,
            ..Selection::default()
        };
        core.records().list(place, &all, published)
    });
    assert_eq!(page.unwrap().records.len(), 1);
}

#[test]
fn a_record_of_an_unknown_kind_leaves_nothing_behind() {
    let core = Core::open(None, &settings()).unwrap();
    let refused = record([put(MEMORIES, 0, b"content"), put(77, 0, b"")]);
    let refused = core.commit(encoded(&refused), None);
    assert!(matches!(refused, Err(CommitError::Invalid(_))));
    assert_eq!(core.journal().accepted(), 0);
    assert_eq!(core.records().partitions(), 0);
}

#[test]
fn what_a_start_follows_is_read_and_what_it_does_not_is_cold() {
    let directory = tempfile::tempdir().unwrap();
    let core = Core::open(Some(directory.path()), &settings()).unwrap();
    commit(&core, [put(MEMORIES, 0, b"first")]);
    let last = commit(&core, [put(MEMORIES, 0, b"second")]);
    core.wait(last, None).unwrap();
    drop(core);

    let core = Core::open(Some(directory.path()), &settings()).unwrap();
    assert!(body(&core, MEMORIES, 0).is_err());
    core.follow_unapplied(0, 0).unwrap();
    assert_eq!(body(&core, MEMORIES, 0), Ok(Some(b"second".to_vec())));
    assert!(body(&core, STEPS, 7).is_err());
}

/// A journal that was written before records had kinds.
#[test]
fn old_changes_are_followed_as_records() {
    let core = Core::open(None, &settings()).unwrap();
    let put = wire::Legacy::PutWorkingMemory(wire::PutWorkingMemory {
        user_id: "ann".to_owned(),
        content: Bytes::from_static(b"content"),
        ..wire::PutWorkingMemory::default()
    });
    let change = wire::Change {
        kind: None,
        legacy: Some(put),
    };
    let old = wire::Record {
        changes: vec![change],
        ..record([])
    };
    core.commit(encoded(&old), None).unwrap();
    let place = Place {
        kind: core.records().kinds().get(MEMORIES).unwrap(),
        tenant: TENANT,
        conversation_uid: 0,
        partition: b"ann\0\x01",
    };
    let found = core.records().accepted(&place, b"").unwrap().unwrap();
    let body = found.held.body.unwrap();
    assert!(body.windows(7).any(|part| part == b"content"));
}

#[test]
fn memory_keeps_nothing_of_the_journal_for_a_record() {
    let core = Core::open(None, &settings()).unwrap();
    let record = encoded(&record([put(MEMORIES, 0, b"content")]));
    core.commit(record.clone(), None).unwrap();
    core.mark_applied(1);
    core.journal().release(1).unwrap();
    assert!(record.is_unique());
    assert_eq!(body(&core, MEMORIES, 0), Ok(Some(b"content".to_vec())));
}
