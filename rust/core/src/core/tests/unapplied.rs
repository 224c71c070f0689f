//! A start whose database lacks what the journal holds.

use std::path::Path;

use bytes::Bytes;
use prost::Message as _;
use remora_journal::Options;
use remora_wire::{self as wire, Kind};

use super::commits::{TENANT, commit, creation, encoded, list, message, record};
use crate::core::{Committed, Core, Settings};
use crate::windows::{Cold, Head, LoadedMessage, Residency, StoredConversation};

const NOW: i64 = 1_000_000_000_000_000;

/// Opens a journal whose records up to `applied` the database has, and follows the others.
fn opened(directory: &Path, applied: u64) -> Core {
    let settings = Settings {
        journal: Options {
            applied_revision: applied,
            ..Options::default()
        },
        ..Settings::default()
    };
    let core = Core::open(Some(directory), &settings).unwrap();
    if applied > 0 {
        core.windows().know(TENANT, "chat");
    }
    let published = core.journal().published();
    let followed = core.follow_unapplied(applied, NOW).unwrap();
    assert_eq!(followed, published - applied);
    core
}

/// Commits records in a core of their own.
fn written(directory: &Path, write: impl FnOnce(&Core)) {
    let core = Core::open(Some(directory), &Settings::default()).unwrap();
    write(&core);
    core.journal().close().unwrap();
}

fn deletion(id: &str, uid: u64) -> Kind {
    Kind::DeleteConversation(wire::DeleteConversation {
        conversation_uid: uid,
        conversation_id: id.to_owned(),
    })
}

fn removal(id: &str, uid: u64, sequence: u64) -> Kind {
    Kind::RemoveMessages(wire::RemoveMessages {
        conversation_uid: uid,
        conversation_id: id.to_owned(),
        user_id: "ann".to_owned(),
        sequences: vec![sequence],
        ..wire::RemoveMessages::default()
    })
}

/// Loads "chat" as the database has it at revision 1: with one message.
fn load(core: &Core, with_journal: bool) -> bool {
    let head = Head {
        uid: 1,
        user_id: "ann".into(),
        body: Bytes::new(),
        create_time: 0,
        last_sequence: 1,
        message_count: 1,
        last_time: 0,
        update_time: 0,
        revision: 1,
    };
    let row = LoadedMessage {
        sequence: 1,
        revision: 1,
        user: "ann",
        id: "m1",
        role: "user",
        create_time: 0,
        sent_time: 0,
        token_count: 0,
    };
    let stored = StoredConversation {
        head: Some(head),
        messages: &[row],
        bodies: vec![Bytes::from_static(b"\x12\x00")],
    };
    core.load_conversation(TENANT, "chat", 1, stored, with_journal)
        .unwrap()
}

fn sequences(core: &Core, id: &str) -> Vec<u64> {
    let page = list(core, id);
    let decoded = page.bodies.iter();
    decoded
        .map(|body| wire::Message::decode(body.clone()).unwrap().sequence)
        .collect()
}

#[test]
fn what_the_database_never_had_is_served() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), |core| {
        commit(core, [creation("chat"), message("chat", 0, 1)]);
        commit(core, [message("chat", 1, 2)]);
        commit(core, [creation("gone")]);
        commit(core, [deletion("gone", 3)]);
    });

    let core = opened(directory.path(), 0);

    assert_eq!(sequences(&core, "chat"), [1, 2]);
    assert_eq!(core.windows().residency(TENANT, "other"), Residency::Absent);
    let published = || core.journal().published();
    let gone = core.windows().published_head(TENANT, "gone", published);
    assert!(gone.unwrap().is_none());
}

#[test]
fn what_the_database_has_in_part_is_made_whole_by_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), |core| {
        commit(core, [creation("chat"), message("chat", 0, 1)]);
        commit(core, [message("chat", 1, 2)]);
        commit(core, [message("chat", 1, 3), removal("chat", 1, 1)]);
    });

    let core = opened(directory.path(), 1);

    assert_eq!(core.windows().accepted_head(TENANT, "chat"), Err(Cold));
    assert!(!load(&core, false), "the database alone is not enough");
    assert!(load(&core, true));
    assert_eq!(sequences(&core, "chat"), [2, 3]);
    let found = core
        .windows()
        .find_messages(TENANT, "chat", "ann", &["m1", "m2"]);
    assert_eq!(found.unwrap(), [None, Some((2, 0))]);
    // Writers build on it, and it goes when the database has it.
    commit(&core, [message("chat", 1, 4)]);
    assert_eq!(core.windows().conversations(), 1);
    core.mark_applied(core.journal().accepted());
}

#[test]
fn a_conversation_that_was_deleted_and_made_anew_is_the_new_one() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), |core| {
        commit(core, [creation("chat"), message("chat", 0, 1)]);
        commit(core, [deletion("chat", 1)]);
        commit(core, [creation("chat"), message("chat", 0, 7)]);
    });

    let core = opened(directory.path(), 1);

    assert_eq!(list(&core, "chat").uid, 3);
    assert_eq!(sequences(&core, "chat"), [7]);
}

#[test]
fn requests_are_known_for_an_hour_after_they_were_made() {
    let directory = tempfile::tempdir().unwrap();
    let request = |id: &str, age_seconds: i64| wire::Record {
        request_id: id.to_owned(),
        fingerprint: Bytes::from_static(&[7; 16]),
        time: NOW - age_seconds * 1_000_000,
        ..record([])
    };
    written(directory.path(), |core| {
        for (id, age) in [("old", 4_000), ("young", 3_000)] {
            core.commit(encoded(&request(id, age)), None).unwrap();
        }
    });

    let core = opened(directory.path(), 0);

    let repeated = |id| core.commit(encoded(&request(id, 0)), None).unwrap();
    assert!(matches!(repeated("young"), Committed::Known(known) if known.revision == 2));
    assert_eq!(repeated("old"), Committed::New(3));
}

#[test]
fn what_is_followed_counts_as_behind() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), |core| {
        commit(core, [creation("chat")]);
    });
    let settings = Settings {
        backlog_bytes: 1,
        ..Settings::default()
    };
    let core = Core::open(Some(directory.path()), &settings).unwrap();
    assert!(!core.is_behind());

    core.follow_unapplied(0, NOW).unwrap();

    assert!(core.is_behind());
    core.mark_applied(1);
    assert!(!core.is_behind());
}

#[test]
fn parts_are_told_of_by_tenant_and_user() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), |core| {
        commit(core, [creation("chat"), message("chat", 0, 1)]);
        commit(core, [creation("other"), message("other", 0, 1)]);
    });

    let core = opened(directory.path(), 0);

    let found = core.unapplied(TENANT, 0).unwrap().unwrap();
    assert_eq!(found.users().into_iter().collect::<Vec<_>>(), ["ann"]);
    assert_eq!(found.parts("ann"), [(1, "chat"), (2, "other")]);
    assert!(found.parts("bob").is_empty());
    let later = core.unapplied(TENANT, 1).unwrap().unwrap();
    assert_eq!(later.parts("ann"), [(2, "other")]);
    let nobody = core.unapplied("another", 0).unwrap().unwrap();
    assert!(nobody.users().is_empty());
}
