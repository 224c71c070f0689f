//! Any bytes as records: each is refused or applied, never both, never with a panic.

use std::time::Duration;

use remora_core::records::{ColumnType, Kind, Kinds, Place};
use remora_core::rows::Rows;
use remora_core::windows::Selection;
use remora_core::{Committed, Core, Settings};
use remora_wire::Between;

use crate::input::Input;

const PATIENCE: Option<Duration> = Some(Duration::from_millis(100));

/// Kinds with the numbers that old journals need, and one of every type.
fn kinds() -> Kinds {
    let kind = |number, columns: &[ColumnType], orders: &[usize]| Kind {
        number,
        columns: columns.to_vec(),
        orders: orders.iter().map(|column| vec![*column]).collect(),
        of_conversation: number < 3,
        of_user: true,
        is_searched: false,
        holds_items: false,
    };
    let all = [
        ColumnType::Boolean,
        ColumnType::Integer,
        ColumnType::Number,
        ColumnType::Text,
        ColumnType::Data,
    ];
    let kinds = [
        kind(1, &[ColumnType::Text, ColumnType::Integer], &[1]),
        kind(2, &[], &[]),
        kind(3, &[], &[]),
        kind(4, &all, &[2, 4]),
    ];
    Kinds::new(kinds).expect("they differ")
}

/// Commits the records that the bytes hold, each behind its length in two bytes.
pub fn check(bytes: &[u8]) {
    let settings = Settings {
        kinds: kinds(),
        ..Settings::default()
    };
    let core = Core::open(None, &settings).expect("a journal in memory");
    let mut input = Input(bytes);
    let mut accepted = 0;
    while !input.is_empty() {
        let length = input.below(1 << 16);
        let record = input.bytes(length).to_vec();
        if let Ok(Committed::New(revision)) = core.commit(record.clone().into(), PATIENCE) {
            make_rows(revision, &record);
            accepted += 1;
            assert_eq!(revision, accepted);
        }
        assert_eq!(core.journal().published(), accepted);
    }
    read(&core);
    core.mark_applied(accepted);
    read(&core);
}

/// Reads the conversations whose names are one letter, which a fuzzer finds soon.
fn read(core: &Core) {
    let published = || core.journal().published();
    for id in ["a", "b", "c"] {
        for tenant in ["", "a"] {
            let _ = core.windows().published_head(tenant, id, published);
            let _ = core
                .windows()
                .list_messages(tenant, id, &everything(), published);
        }
    }
    for kind in core.records().kinds().iter() {
        for partition in [&b""[..], b"a", b"a\0\x01"] {
            let place = Place {
                kind,
                tenant: "",
                conversation_uid: u64::from(kind.of_conversation),
                partition,
            };
            let _ = core.records().get(&place, b"", 0, published);
            let _ = core.records().accepted(&place, b"a\0\x01");
        }
    }
    let _ = core.recall().statistics();
}

/// The rows of a record that was accepted.
fn make_rows(revision: u64, record: &[u8]) {
    let mut rows = Rows::new(kinds());
    if rows.add(revision, record.to_vec().into()).is_ok() {
        for kind in kinds().iter() {
            for table in [
                "prefixes",
                "partitions",
                "users",
                "moved",
                "expiry",
                "records",
            ] {
                let _ = rows.records(kind.number, table);
            }
        }
    }
}

fn everything() -> Selection {
    Selection {
        user: "a".to_owned(),
        roles: Vec::new(),
        sent: Between::default(),
        received: Between::default(),
        after_sequence: None,
        before_sequence: None,
        window: (0, 0),
        newest: true,
        limit: usize::MAX,
        max_bytes: usize::MAX,
    }
}
