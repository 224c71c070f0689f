//! The rows of records: written as the database is to write them, they make of any state the one that the model has.

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message as _;
use remora_wire as wire;

use crate::records::tests::model::{self, Edit, History, Id, Row, State};
use crate::records::{self, ColumnType, Kind, Kinds, Value};
use crate::rows::{Column, Rows, Table};

proptest! {
    #[test]
    fn a_run_of_records_makes_of_the_tables_what_its_changes_do_one_by_one(
        writes in prop::collection::vec(
            (0..model::TENANTS.len(), prop::collection::vec(model::edits(), 1..8)),
            1..12,
        ),
        runs in prop::collection::vec(1..5_usize, 12),
    ) {
        let history = history(&writes);
        let mut database = State::new();
        let mut runs = runs.into_iter();
        let mut first = 0;
        while first < history.journal.len() {
            let end = (first + runs.next().unwrap_or(1)).min(history.journal.len());
            let mut rows = Rows::new(model::kinds());
            for revision in first + 1..=end {
                rows.add(revision as u64, history.journal[revision - 1].clone()).unwrap();
            }
            write(&rows, &mut database);
            prop_assert_eq!(&database, history.at(end as u64));
            first = end;
        }
    }
}

fn history(writes: &[(usize, Vec<Edit>)]) -> History {
    let mut history = History::new();
    for (tenant, edits) in writes {
        history.write(*tenant, edits);
    }
    history
}

/// Writes the tables of all kinds.
fn write(rows: &Rows, database: &mut State) {
    let deleted = numbers(&rows.deleted().columns[0]);
    for kind in model::kinds().iter() {
        let table = |name: &str| rows.records(kind.number, name).unwrap();
        let gone = deletions(kind, &deleted, table);
        database.retain(|id, row| id.kind != kind.number || !gone(id, row));
        expire(kind, &table("expiry"), database);
        insert(kind, &table("records"), database);
    }
}

/// Whether a row of a kind goes.
fn deletions(
    kind: &Kind,
    deleted: &[u64],
    table: impl Fn(&str) -> Table,
) -> impl Fn(&Id, &Row) -> bool {
    let prefixes: Vec<_> = rows_of(&table("prefixes"), partition_at(0)).collect();
    let partitions: Vec<_> = rows_of(&table("partitions"), placed_partition).collect();
    let users = table("users");
    let users: Vec<_> = texts(&users.columns[0])
        .into_iter()
        .zip(texts(&users.columns[1]))
        .collect();
    let moved = table("moved");
    let keys = bytes(&moved.columns[4]);
    let moved: Vec<_> = rows_of(&moved, placed_partition).zip(keys).collect();
    let ended = if kind.of_conversation {
        deleted.to_vec()
    } else {
        Vec::new()
    };
    move |id, row| {
        let partition = (id.tenant.clone(), id.uid, id.partition.clone());
        ended.contains(&id.uid)
            || partitions.contains(&partition)
            || users.contains(&(id.tenant.clone(), row.user.clone()))
            || moved.contains(&(partition, id.key.clone()))
            || prefixes.iter().any(|(tenant, uid, prefix)| {
                (tenant, *uid) == (&id.tenant, id.uid) && id.partition.starts_with(prefix)
            })
    }
}

fn expire(kind: &Kind, expiry: &Table, database: &mut State) {
    let keys = bytes(&expiry.columns[4]);
    let revisions = numbers(&expiry.columns[5]);
    let expire_times = some_numbers(&expiry.columns[6]);
    let partitions = rows_of(expiry, placed_partition);
    for (index, (tenant, uid, partition)) in partitions.enumerate() {
        let id = Id {
            kind: kind.number,
            tenant,
            uid,
            partition,
            key: keys[index].clone(),
        };
        if let Some(row) = database.get_mut(&id)
            && row.revision == revisions[index]
        {
            row.expire_time = expire_times[index].map(|time| time as i64);
        }
    }
}

fn insert(kind: &Kind, rows: &Table, database: &mut State) {
    let places = numbers(&rows.columns[2]);
    let keys = bytes(&rows.columns[4]);
    let users = texts(&rows.columns[5]);
    let revisions = numbers(&rows.columns[6]);
    let ordinals = rows.columns[7].values.chunks_exact(4);
    let ordinals: Vec<_> = ordinals
        .map(|ordinal| u32::from_ne_bytes(ordinal.try_into().unwrap()))
        .collect();
    let expire_times = some_numbers(&rows.columns[8]);
    let uploads = texts(&rows.columns[9]);
    let bodies = bytes(&rows.columns[10 + kind.columns.len()]);
    let partitions = rows_of(rows, |table, row| partition_in(table, row, [0, 1, 3]));
    for (index, (tenant, uid, partition)) in partitions.enumerate() {
        assert_eq!(places[index], records::place(&tenant, uid, &partition));
        let columns = kind.columns.iter().enumerate();
        let columns = columns.map(|(column, of)| value(*of, &rows.columns[10 + column], index));
        let row = Row {
            revision: revisions[index],
            ordinal: ordinals[index],
            user: users[index].clone(),
            columns: columns.collect(),
            expire_time: expire_times[index].map(|time| time as i64),
            upload_id: uploads[index].clone(),
            body: bodies[index].clone(),
        };
        let id = Id {
            kind: kind.number,
            tenant,
            uid,
            partition,
            key: keys[index].clone(),
        };
        assert!(database.insert(id, row).is_none());
    }
}

type Partition = (String, u64, Vec<u8>);

fn rows_of<T>(table: &Table, read: impl Fn(&Table, usize) -> T) -> impl Iterator<Item = T> {
    let rows: Vec<_> = (0..table.rows).map(|row| read(table, row)).collect();
    rows.into_iter()
}

fn partition_in(table: &Table, row: usize, columns: [usize; 3]) -> Partition {
    let [tenant, uid, partition] = columns.map(|column| &table.columns[column]);
    (
        texts(tenant)[row].clone(),
        numbers(uid)[row],
        bytes(partition)[row].clone(),
    )
}

fn partition_at(first: usize) -> impl Fn(&Table, usize) -> Partition {
    move |table, row| partition_in(table, row, [first, first + 1, first + 2])
}

/// A partition behind its place, which must be the right one.
fn placed_partition(table: &Table, row: usize) -> Partition {
    let (tenant, uid, partition) = partition_at(1)(table, row);
    let place = numbers(&table.columns[0])[row];
    assert_eq!(place, records::place(&tenant, uid, &partition));
    (tenant, uid, partition)
}

fn value(of: ColumnType, column: &Column, row: usize) -> Value {
    if !is_there(column, row) {
        return Value::Null;
    }
    match of {
        ColumnType::Integer => Value::Integer(numbers(column)[row] as i64),
        ColumnType::Text => Value::Text(texts(column)[row].as_str().into()),
        _ => unreachable!("no kind of the model has such a column"),
    }
}

fn is_there(column: &Column, row: usize) -> bool {
    let validity = column.validity.as_ref();
    validity.is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 == 1)
}

fn numbers(column: &Column) -> Vec<u64> {
    super::numbers(column)
}

fn some_numbers(column: &Column) -> Vec<Option<u64>> {
    let numbers = numbers(column).into_iter().enumerate();
    numbers
        .map(|(row, number)| is_there(column, row).then_some(number))
        .collect()
}

fn texts(column: &Column) -> Vec<String> {
    let texts = bytes(column).into_iter();
    texts.map(|text| String::from_utf8(text).unwrap()).collect()
}

fn bytes(column: &Column) -> Vec<Vec<u8>> {
    let ends = column.offsets.as_ref().unwrap().chunks_exact(8);
    let ends: Vec<_> = ends
        .map(|end| i64::from_ne_bytes(end.try_into().unwrap()) as usize)
        .collect();
    ends.windows(2)
        .map(|ends| column.values[ends[0]..ends[1]].to_vec())
        .collect()
}

/// One column of each type, some null, and what the journal has of them.
#[test]
fn columns_of_every_type_are_laid_out_as_arrow_has_them() {
    let types = [
        ColumnType::Boolean,
        ColumnType::Integer,
        ColumnType::Number,
        ColumnType::Text,
        ColumnType::Data,
    ];
    let kind = Kind {
        number: 200,
        columns: types.to_vec(),
        orders: Vec::new(),
        of_conversation: false,
        of_user: false,
        is_searched: false,
        holds_items: false,
    };
    let filled = [
        wire::ValueKind::Boolean(true),
        wire::ValueKind::Integer(-7),
        wire::ValueKind::Number(-0.0),
        wire::ValueKind::Text("text".to_owned()),
        wire::ValueKind::Data(Bytes::from_static(b"data")),
    ];
    let put = |key: &'static [u8], columns| {
        wire::Kind::PutRecord(wire::PutRecord {
            kind: 200,
            key: Bytes::from_static(key),
            columns,
            ..wire::PutRecord::default()
        })
    };
    let value = |kind| wire::Value { kind };
    let put_filled = put(b"a", filled.map(|kind| value(Some(kind))).into());
    let put_null = put(b"b", vec![value(None); 5]);

    let mut rows = Rows::new(Kinds::new([kind]).unwrap());
    rows.add(1, super::record([put_filled, put_null])).unwrap();
    let table = rows.records(200, "records").unwrap();

    let columns = &table.columns[10..15];
    for column in columns {
        assert_eq!(column.validity, Some(vec![0b01]));
    }
    assert_eq!(columns[0].values, [0b01]);
    assert_eq!(columns[1].values[..8], (-7_i64).to_ne_bytes());
    assert_eq!(columns[2].values[..8], 0.0_f64.to_ne_bytes());
    assert_eq!(texts(&columns[3]), ["text", ""]);
    assert_eq!(bytes(&columns[4]), [&b"data"[..], b""]);
}

fn refusal(put: wire::PutRecord) -> String {
    let mut rows = Rows::new(model::kinds());
    let added = rows.add(1, super::record([wire::Kind::PutRecord(put)]));
    added.unwrap_err().to_string()
}

#[test]
fn records_that_do_not_fit_their_kind_are_refused() {
    let turn = wire::PutRecord {
        kind: model::TURNS,
        columns: vec![wire::Value::default(); 2],
        ..wire::PutRecord::default()
    };
    let of_kind = |kind| wire::PutRecord {
        kind,
        ..wire::PutRecord::default()
    };
    assert!(refusal(of_kind(77)).contains("kind 77 are not declared"));
    assert!(refusal(of_kind(model::TURNS)).contains("not as many columns"));
    assert!(refusal(turn.clone()).contains("no value by which it is ordered"));
    let text = wire::Value {
        kind: Some(wire::ValueKind::Text(String::new())),
    };
    let typed = wire::PutRecord {
        columns: vec![text; 2],
        ..turn
    };
    assert!(refusal(typed).contains("another type"));
    let note = wire::PutRecord {
        conversation_uid: 5,
        ..of_kind(model::NOTES)
    };
    assert!(refusal(note).contains("do not belong to conversations"));
    let twice = wire::PutRecord {
        body: Bytes::from_static(b"body"),
        upload_id: "upload".to_owned(),
        ..of_kind(model::NOTES)
    };
    assert!(refusal(twice).contains("names an upload"));
}

#[test]
fn removals_that_say_nothing_or_too_much_are_refused() {
    let removal = |extent: i32, key: &'static [u8]| {
        let removal = wire::RemoveRecords {
            kind: model::NOTES,
            extent,
            key: Bytes::from_static(key),
            ..wire::RemoveRecords::default()
        };
        let mut rows = Rows::new(model::kinds());
        rows.add(1, super::record([wire::Kind::RemoveRecords(removal)]))
    };
    assert!(removal(wire::Extent::Record.into(), b"key").is_ok());
    assert!(removal(wire::Extent::Partition.into(), b"").is_ok());
    assert!(removal(wire::Extent::Partition.into(), b"key").is_err());
    assert!(removal(wire::Extent::Prefix.into(), b"key").is_err());
    assert!(removal(wire::Extent::Unspecified.into(), b"").is_err());
    assert!(removal(9, b"").is_err());
    let nobody = wire::RemoveUserRecords {
        kinds: vec![model::NOTES],
        ..wire::RemoveUserRecords::default()
    };
    let mut rows = Rows::new(model::kinds());
    let added = rows.add(1, super::record([wire::Kind::RemoveUserRecords(nobody)]));
    assert!(added.is_err());
}

/// The changes of old journals are written by hand: nothing writes them any more.
#[test]
fn old_changes_are_rows_of_the_kinds_that_took_their_place() {
    let kind = |number, columns: &[ColumnType], of_conversation| Kind {
        number,
        columns: columns.to_vec(),
        orders: Vec::new(),
        of_conversation,
        of_user: true,
        is_searched: false,
        holds_items: false,
    };
    let kinds = Kinds::new([
        kind(1, &[ColumnType::Text, ColumnType::Integer], true),
        kind(2, &[], true),
        kind(3, &[], false),
    ]);
    let put = |user: &str| {
        wire::Legacy::PutWorkingMemory(wire::PutWorkingMemory {
            conversation_uid: if user.is_empty() { 7 } else { 0 },
            user_id: user.to_owned(),
            ..wire::PutWorkingMemory::default()
        })
    };
    // A step with the id "s" of the user "ann".
    let step = wire::Legacy::PutStep(wire::PutStep {
        conversation_uid: 7,
        step: Bytes::from_static(b"\x0a\x01s\x1a\x03ann"),
    });
    let gone = wire::Legacy::RemoveSteps(wire::RemoveSteps {
        conversation_uid: 7,
        user_id: "bob".to_owned(),
    });
    let changes = [step, put(""), put("ann"), gone].map(|legacy| wire::Change {
        kind: None,
        legacy: Some(legacy),
    });
    let record = wire::Record {
        changes: changes.into(),
        ..wire::Record::default()
    };

    let mut rows = Rows::new(kinds.unwrap());
    rows.add(3, record.encode_to_vec().into()).unwrap();

    let steps = rows.records(1, "records").unwrap();
    assert_eq!(bytes(&steps.columns[4]), [b"s\0\x01"]);
    assert_eq!(bytes(&steps.columns[12]), [b"\x0a\x01s\x1a\x03ann"]);
    let gone = rows.records(1, "partitions").unwrap();
    assert_eq!(bytes(&gone.columns[3]), [b"bob\0\x01"]);
    assert_eq!(
        numbers(&rows.records(2, "records").unwrap().columns[1]),
        [7]
    );
    let of_user = rows.records(3, "records").unwrap();
    assert_eq!(bytes(&of_user.columns[3]), [b"ann\0\x01"]);
    assert_eq!(texts(&of_user.columns[5]), ["ann"]);
}
