//! The rows of records by key: what goes, what changes and what comes of each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::tables::columns;
use super::{Column, Origin, Table, Uid};
use crate::records::{self, Change, ColumnType, Kind, Kinds, Put, RefreshedRecord, Removed, Value};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Partition {
    uid: Uid,
    tenant: Arc<str>,
    bytes: Bytes,
}

impl Partition {
    fn place(&self) -> u64 {
        records::place(&self.tenant, self.uid, &self.bytes)
    }
}

/// A partition and a key.
type Address = (Partition, Bytes);

struct Row {
    put: Put,
    revision: u64,
    ordinal: i32,
}

/// What a run of records makes of the tables of all kinds.
pub(super) struct RecordRows {
    kinds: Kinds,
    by_kind: BTreeMap<u32, KindRows>,
}

/// What a run of records makes of one kind's table, in this order: what was removed goes, what is left expires at other
/// times, and rows come.
#[derive(Default)]
struct KindRows {
    removed_prefixes: BTreeSet<Partition>,
    removed_partitions: BTreeSet<Partition>,
    removed_keys: BTreeSet<Address>,
    erased_users: BTreeSet<(Arc<str>, String)>,
    /// By address and the revision of the record.
    expiries: BTreeMap<(Address, u64), Option<i64>>,
    rows: BTreeMap<Address, Row>,
}

impl RecordRows {
    pub(super) fn new(kinds: Kinds) -> Self {
        Self {
            kinds,
            by_kind: BTreeMap::new(),
        }
    }

    pub(super) fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Takes in the change of a record that stands at `ordinal` there.
    pub(super) fn change(&mut self, origin: &Origin, ordinal: usize, change: Change) {
        match change {
            Change::Put(put) => {
                let row = Row {
                    revision: origin.revision,
                    ordinal: ordinal as i32,
                    put,
                };
                self.of(&row.put.kind.clone()).put(origin, row);
            }
            Change::Remove {
                kind,
                uid,
                partition,
                removed,
            } => {
                let partition = origin.partition(&kind, uid, partition);
                self.of(&kind).remove(partition, removed);
            }
            Change::Erase { kinds, user } => {
                for kind in kinds {
                    self.of(&kind).erase(&origin.tenant, &user);
                }
            }
            Change::Expire {
                kind,
                address,
                record_revision,
                expire_time,
            } => {
                let partition = origin.partition(&kind, address.uid, address.partition);
                self.of(&kind)
                    .expire((partition, address.key), record_revision, expire_time);
            }
            Change::Create => {}
            Change::End { uid } => self.end(origin.uid(uid)),
        }
    }

    fn of(&mut self, kind: &Kind) -> &mut KindRows {
        self.by_kind.entry(kind.number).or_default()
    }

    /// The records of a conversation go. Those that the database has go by the conversation's end itself.
    fn end(&mut self, uid: Uid) {
        for (number, rows) in &mut self.by_kind {
            if self
                .kinds
                .get(*number)
                .is_some_and(|kind| kind.of_conversation)
            {
                rows.rows.retain(|(partition, _), _| partition.uid != uid);
            }
        }
    }

    /// The table of a kind with this name; `None` if there is no such kind or table.
    pub(super) fn table(&self, kind: u32, name: &str) -> Option<Table> {
        let kind = self.kinds.get(kind)?;
        let nothing = KindRows::default();
        let rows = self.by_kind.get(&kind.number).unwrap_or(&nothing);
        Some(match name {
            "prefixes" => rows.removed_prefixes(),
            "partitions" => rows.removed_partitions(),
            "moved" => rows.removed_keys(),
            "users" => rows.erased_users(),
            "expiry" => rows.expiries(),
            "records" => rows.rows(kind),
            _ => return None,
        })
    }
}

impl Origin {
    fn partition(&self, kind: &Kind, uid: Uid, bytes: Bytes) -> Partition {
        Partition {
            uid: kind.uid(uid, self.revision),
            tenant: Arc::clone(&self.tenant),
            bytes,
        }
    }
}

impl KindRows {
    fn put(&mut self, origin: &Origin, row: Row) {
        let named = row.put.address.clone();
        let partition = origin.partition(&row.put.kind, named.uid, named.partition);
        let address = (partition, named.key);
        if row.put.replaces {
            self.removed_keys.insert(address.clone());
        }
        self.rows.insert(address, row);
    }

    fn remove(&mut self, partition: Partition, removed: Removed) {
        match removed {
            Removed::Record { key } => {
                let address = (partition, key);
                self.rows.remove(&address);
                self.removed_keys.insert(address);
            }
            Removed::Partition => {
                self.drop_rows(&partition, |other| *other == partition.bytes);
                self.removed_partitions.insert(partition);
            }
            Removed::Prefix => {
                self.drop_rows(&partition, |other| other.starts_with(&partition.bytes));
                self.removed_prefixes.insert(partition);
            }
        }
    }

    /// Drops the rows from a partition on for as long as theirs is among those that go.
    fn drop_rows(&mut self, first: &Partition, goes: impl Fn(&Bytes) -> bool) {
        let from = (first.clone(), Bytes::new());
        let dropped = self.rows.range(from..).map(|(address, _)| address);
        let dropped = dropped.take_while(|(other, _)| {
            (other.uid, &other.tenant) == (first.uid, &first.tenant) && goes(&other.bytes)
        });
        let dropped: Vec<_> = dropped.cloned().collect();
        for address in dropped {
            self.rows.remove(&address);
        }
    }

    fn erase(&mut self, tenant: &Arc<str>, user: &str) {
        self.rows
            .retain(|(partition, _), row| partition.tenant != *tenant || row.put.user != user);
        self.erased_users
            .insert((Arc::clone(tenant), user.to_owned()));
    }

    fn expire(&mut self, address: Address, record_revision: u64, expire_time: Option<i64>) {
        match self.rows.get_mut(&address) {
            Some(row) if row.revision == record_revision => row.put.expire_time = expire_time,
            Some(_) => {}
            None => {
                self.expiries
                    .insert((address, record_revision), expire_time);
            }
        }
    }

    /// tenant_id, conversation_uid, the partition's beginning.
    fn removed_prefixes(&self) -> Table {
        columns!(self.removed_prefixes.iter();
            bytes(partition => partition.tenant.as_bytes()),
            numbers(partition => partition.uid.to_ne_bytes()),
            bytes(partition => &partition.bytes[..]),
        )
    }

    /// place, tenant_id, conversation_uid, partition.
    fn removed_partitions(&self) -> Table {
        columns!(self.removed_partitions.iter();
            numbers(partition => partition.place().to_ne_bytes()),
            bytes(partition => partition.tenant.as_bytes()),
            numbers(partition => partition.uid.to_ne_bytes()),
            bytes(partition => &partition.bytes[..]),
        )
    }

    /// place, tenant_id, conversation_uid, partition, key.
    fn removed_keys(&self) -> Table {
        columns!(self.removed_keys.iter();
            numbers((partition, _) => partition.place().to_ne_bytes()),
            bytes((partition, _) => partition.tenant.as_bytes()),
            numbers((partition, _) => partition.uid.to_ne_bytes()),
            bytes((partition, _) => &partition.bytes[..]),
            bytes((_, key) => &key[..]),
        )
    }

    /// tenant_id, user_id.
    fn erased_users(&self) -> Table {
        columns!(self.erased_users.iter();
            bytes((tenant, _) => tenant.as_bytes()),
            bytes((_, user) => user.as_bytes()),
        )
    }

    /// place, tenant_id, conversation_uid, partition, key, revision, expire_time.
    fn expiries(&self) -> Table {
        columns!(self.expiries.iter();
            numbers((((partition, _), _), _) => partition.place().to_ne_bytes()),
            bytes((((partition, _), _), _) => partition.tenant.as_bytes()),
            numbers((((partition, _), _), _) => partition.uid.to_ne_bytes()),
            bytes((((partition, _), _), _) => &partition.bytes[..]),
            bytes((((_, key), _), _) => &key[..]),
            numbers(((_, revision), _) => revision.to_ne_bytes()),
            some_numbers((_, expire_time) => expire_time.map(i64::to_ne_bytes)),
        )
    }

    /// tenant_id, conversation_uid, place, partition, key, user_id, revision, ordinal, expire_time, upload_id, the columns
    /// of the kind, body.
    fn rows(&self, kind: &Kind) -> Table {
        let mut table = columns!(self.rows.iter();
            bytes(((partition, _), _) => partition.tenant.as_bytes()),
            numbers(((partition, _), _) => partition.uid.to_ne_bytes()),
            numbers(((partition, _), _) => partition.place().to_ne_bytes()),
            bytes(((partition, _), _) => &partition.bytes[..]),
            bytes(((_, key), _) => &key[..]),
            bytes((_, row) => row.put.user.as_bytes()),
            numbers((_, row) => row.revision.to_ne_bytes()),
            numbers((_, row) => row.ordinal.to_ne_bytes()),
            some_numbers((_, row) => row.put.expire_time.map(i64::to_ne_bytes)),
            bytes((_, row) => row.put.upload_id.as_bytes()),
        );
        for (index, column) in kind.columns.iter().enumerate() {
            let values = self.rows.values().map(|row| &row.put.columns[index]);
            table.columns.push(typed(*column, values));
        }
        let bodies = self.rows.values().map(|row| &row.put.body[..]);
        table.columns.push(Column::bytes(bodies));
        table
    }
}

/// Expire times that the database may lack: place, tenant_id, conversation_uid, partition, key, revision, expire_time.
pub fn unapplied_expiries(records: &[RefreshedRecord]) -> Table {
    columns!(records.iter();
        numbers(row => records::place(&row.tenant, row.conversation_uid, &row.partition).to_ne_bytes()),
        bytes(row => row.tenant.as_bytes()),
        numbers(row => row.conversation_uid.to_ne_bytes()),
        bytes(row => &row.partition[..]),
        bytes(row => &row.key[..]),
        numbers(row => row.revision.to_ne_bytes()),
        some_numbers(row => row.expire_time.map(i64::to_ne_bytes)),
    )
}

/// Values of one type, which are null where they have another.
fn typed<'a>(column: ColumnType, values: impl Iterator<Item = &'a Value>) -> Column {
    match column {
        ColumnType::Boolean => Column::some_truths(values.map(|value| match value {
            Value::Boolean(truth) => Some(*truth),
            _ => None,
        })),
        ColumnType::Integer => Column::some_numbers(values.map(|value| match value {
            Value::Integer(integer) => Some(integer.to_ne_bytes()),
            _ => None,
        })),
        ColumnType::Number => Column::some_numbers(values.map(|value| match value {
            Value::Number(number) => Some(number.to_ne_bytes()),
            _ => None,
        })),
        ColumnType::Text => Column::some_bytes(values.map(|value| match value {
            Value::Text(text) => Some(text.as_bytes()),
            _ => None,
        })),
        ColumnType::Data => Column::some_bytes(values.map(|value| match value {
            Value::Data(data) => Some(&data[..]),
            _ => None,
        })),
    }
}
