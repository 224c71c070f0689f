//! Records from their wire form to what readers see.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use remora_journal::JournalError;
use remora_wire::Between;
use remora_wire::{self as wire, Kind};

use crate::core::{CommitError, Committed, Core, Settings};
use crate::windows::{Bounds, Page, Selection, StoredConversation};

pub(super) const TENANT: &str = "acme";

fn volatile() -> Core {
    Core::open(None, &Settings::default()).unwrap()
}

pub(super) fn record(kinds: impl IntoIterator<Item = Kind>) -> wire::Record {
    let changes = kinds.into_iter().map(wire::Change::from);
    wire::Record {
        tenant_id: TENANT.to_owned(),
        changes: changes.collect(),
        ..wire::Record::default()
    }
}

pub(super) fn encoded(record: &wire::Record) -> Bytes {
    record.encode_to_vec().into()
}

pub(super) fn creation(id: &str) -> Kind {
    let row = wire::Conversation {
        id: id.to_owned(),
        user_id: "ann".to_owned(),
        storage_limit: None,
        short_term: None,
    };
    Kind::PutConversation(wire::PutConversation {
        conversation: row.encode_to_vec().into(),
        ..wire::PutConversation::default()
    })
}

pub(super) fn message(id: &str, uid: u64, sequence: u64) -> Kind {
    let body = wire::Message {
        role: "user".to_owned(),
        text: format!("text {sequence}"),
        ..wire::Message::default()
    };
    Kind::PutMessage(wire::PutMessage {
        conversation_uid: uid,
        conversation_id: id.to_owned(),
        user_id: "ann".to_owned(),
        id: format!("m{sequence}"),
        sequence,
        body: body.encode_to_vec().into(),
        ..wire::PutMessage::default()
    })
}

pub(super) fn commit(core: &Core, kinds: impl IntoIterator<Item = Kind>) -> u64 {
    match core.commit(encoded(&record(kinds)), None).unwrap() {
        Committed::New(revision) => revision,
        Committed::Known(known) => panic!("{known:?}"),
    }
}

pub(super) fn list(core: &Core, id: &str) -> Page {
    let selection = Selection {
        user: "ann".to_owned(),
        roles: Vec::new(),
        sent: Between::default(),
        received: Between::default(),
        after_sequence: None,
        before_sequence: None,
        window: (0, 0),
        newest: true,
        limit: usize::MAX,
        max_bytes: usize::MAX,
    };
    let published = || core.journal().published();
    core.windows()
        .list_messages(TENANT, id, &selection, published)
        .unwrap()
}

#[test]
fn a_committed_record_is_served() {
    let core = volatile();
    let revision = commit(&core, [creation("chat"), message("chat", 0, 1)]);

    let page = list(&core, "chat");
    let served = wire::Message::decode(page.bodies[0].clone()).unwrap();
    assert_eq!((page.uid, page.count), (revision, 1));
    assert_eq!(
        (served.text.as_str(), served.revision),
        ("text 1", revision)
    );
}

#[test]
fn changes_that_the_engine_does_not_follow_are_accepted() {
    let core = volatile();
    let unknown = Bytes::from_static(b"\x5a\x02\x7a\x00");
    assert_eq!(core.commit(unknown, None).unwrap(), Committed::New(1));
}

#[test]
fn an_invalid_record_leaves_nothing_behind() {
    let core = volatile();
    let refused = wire::Record {
        request_id: "r".to_owned(),
        fingerprint: Bytes::from_static(&[0; 16]),
        ..record([creation("chat"), message("chat", 0, 0)])
    };
    let outcome = core.commit(encoded(&refused), None);
    assert!(matches!(outcome, Err(CommitError::Invalid(_))));
    assert_eq!(core.journal().accepted(), 0);
    assert_eq!(core.windows().conversations(), 0);
    assert_eq!(core.find_request(TENANT, "r", [0; 16]), None);
}

#[test]
fn a_refused_request_is_not_remembered() {
    let core = volatile();
    core.journal().close().unwrap();
    let request = wire::Record {
        request_id: "r".to_owned(),
        fingerprint: Bytes::from_static(&[0; 16]),
        ..record([])
    };
    for _ in 0..2 {
        let outcome = core.commit(encoded(&request), None);
        assert!(matches!(
            outcome,
            Err(CommitError::Journal(JournalError::Closed))
        ));
    }
    assert_eq!(core.find_request(TENANT, "r", [0; 16]), None);
}

/// Two messages a record, in two conversations by turns: readers see both or none, and all that they saw before.
#[test]
fn readers_see_records_whole_and_in_order_while_they_are_written() {
    const RECORDS: u64 = 60;
    let directory = tempfile::tempdir().unwrap();
    let core = Core::open(Some(directory.path()), &Settings::default()).unwrap();
    let ids = ["left", "right"];
    let uids = ids.map(|id| commit(&core, [creation(id)]));
    core.wait(uids[1], None).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for id in ids {
            let (core, is_over) = (&core, &is_over);
            scope.spawn(move || {
                let mut seen = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let page = list(core, id);
                    assert_eq!(page.count % 2, 0);
                    assert!(page.count >= seen);
                    assert_eq!(page.last_sequence, page.count as u64);
                    seen = page.count;
                }
            });
        }
        for number in 0..RECORDS {
            for (id, uid) in ids.into_iter().zip(uids) {
                let pair = [1, 2].map(|of| message(id, uid, 2 * number + of));
                let revision = commit(&core, pair);
                if number % 10 == 0 {
                    core.wait(revision, None).unwrap();
                    assert_eq!(list(&core, id).count as u64, 2 * number + 2);
                    core.mark_applied(revision);
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Changes of a conversation that is not resident reach the journal only, and are applied before it is loaded.
#[test]
fn a_change_of_a_cold_conversation_makes_older_loads_stale() {
    let core = volatile();
    core.windows().know(TENANT, "chat");
    let revision = commit(&core, [message("chat", 1, 1)]);
    let load = |as_of| {
        let stored = StoredConversation::default();
        core.load_conversation(TENANT, "chat", as_of, stored, false)
            .unwrap()
    };
    assert!(!load(revision - 1));
    assert!(load(revision));
}

#[test]
fn a_conversation_that_is_only_written_is_evicted_when_the_database_has_it() {
    let settings = Settings {
        windows: Bounds {
            total_bytes: 64 << 10,
            ..Bounds::default()
        },
        ..Settings::default()
    };
    let core = Core::open(None, &settings).unwrap();
    for number in 0..1_000 {
        let id = format!("chat {number}");
        let revision = commit(&core, [creation(&id), message(&id, 0, 1)]);
        core.mark_applied(revision);
    }
    assert!(core.windows().bytes() <= settings.windows.total_bytes);
    assert!(core.windows().conversations() < 1_000);
}

#[test]
fn memory_keeps_nothing_of_a_record_that_is_applied() {
    let core = volatile();
    let record = encoded(&record([creation("chat"), message("chat", 0, 1)]));
    let revision = match core.commit(record.clone(), None).unwrap() {
        Committed::New(revision) => revision,
        Committed::Known(known) => panic!("{known:?}"),
    };
    assert!(!record.is_unique());
    core.mark_applied(revision);
    core.journal().release(revision).unwrap();
    assert_eq!(core.windows().conversations(), 1);
    assert!(record.is_unique());
}

#[test]
fn commits_are_refused_while_the_database_is_too_far_behind() {
    let settings = Settings {
        backlog_bytes: 1,
        ..Settings::default()
    };
    let core = Core::open(None, &settings).unwrap();
    let first = commit(&core, [creation("chat")]);
    assert!(core.is_behind());
    let second = encoded(&record([message("chat", first, 1)]));
    let refused = core.commit(second.clone(), Some(Duration::ZERO));
    assert!(matches!(refused, Err(CommitError::Behind)));
    assert_eq!(core.journal().accepted(), first);
    core.mark_applied(first);
    assert!(core.commit(second, Some(Duration::ZERO)).is_ok());
}
