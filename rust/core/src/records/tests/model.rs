//! What records are: changes as the journal has them, applied to a map, one by one.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use remora_wire::{self as wire, Extent};

use crate::records::{ColumnType, Kind, Kinds, Value};

/// Of conversations, with a text and a number, ordered by the number, and by both.
pub(crate) const TURNS: u32 = 100;
/// Of users, without columns, ordered as written.
pub(crate) const NOTES: u32 = 101;

pub(crate) const TENANTS: [&str; 2] = ["acme", "beta"];
const USERS: [&str; 3] = ["ann", "bob", ""];
const PARTITIONS: [&[u8]; 3] = [b"a", b"ab", b""];
const KEYS: [&[u8]; 3] = [b"k", b"kk", b""];
/// A conversation that is older than the journal.
const OLD: u64 = u64::MAX;

pub(crate) fn kinds() -> Kinds {
    let turns = Kind {
        number: TURNS,
        columns: vec![ColumnType::Text, ColumnType::Integer],
        orders: vec![vec![1], vec![0, 1]],
        of_conversation: true,
        of_user: true,
        is_searched: false,
        holds_items: false,
    };
    let notes = Kind {
        number: NOTES,
        columns: Vec::new(),
        orders: vec![vec![]],
        of_conversation: false,
        of_user: true,
        is_searched: false,
        holds_items: false,
    };
    Kinds::new([turns, notes]).unwrap()
}

/// Where a record is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) kind: u32,
    pub(crate) tenant: String,
    pub(crate) uid: u64,
    pub(crate) partition: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) revision: u64,
    pub(crate) ordinal: u32,
    pub(crate) user: String,
    pub(crate) columns: Vec<Value>,
    pub(crate) expire_time: Option<i64>,
    pub(crate) upload_id: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) type State = BTreeMap<Id, Row>;

/// One change of a test, to be completed when what is there is known.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Create,
    Put(PutEdit),
    Remove(Spot),
    RemovePartition(Spot),
    RemovePrefix(Spot),
    Erase {
        user: usize,
        notes_only: bool,
    },
    /// Of a record that is there, or of an older one.
    Expire {
        pick: Index,
        expire_time: Option<i64>,
        is_old: bool,
    },
    ExpireAt(Spot, Option<i64>),
    End(Index),
}

#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) is_note: bool,
    pub(crate) conversation: Index,
    pub(crate) partition: usize,
    pub(crate) key: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct PutEdit {
    spot: Spot,
    user: usize,
    columns: (bool, i64),
    expire_time: Option<i64>,
    body: usize,
    is_upload: bool,
    /// Whether it says so where nothing is replaced.
    says_new: bool,
}

/// The first of so many more often than others.
pub(crate) fn first_of(count: usize) -> impl Strategy<Value = usize> {
    prop_oneof![2 => Just(0), 1 => 0..count]
}

pub(crate) fn spots() -> impl Strategy<Value = Spot> {
    (
        any::<bool>(),
        any::<Index>(),
        first_of(PARTITIONS.len()),
        first_of(KEYS.len()),
    )
        .prop_map(|(is_note, conversation, partition, key)| Spot {
            is_note,
            conversation,
            partition,
            key,
        })
}

pub(crate) fn expire_times() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![2 => Just(None), 1 => (0..4_i64).prop_map(Some)]
}

fn puts() -> impl Strategy<Value = PutEdit> {
    let put = (
        spots(),
        0..USERS.len(),
        (any::<bool>(), 0..3_i64),
        expire_times(),
        0..60_usize,
        prop::bool::weighted(0.1),
        any::<bool>(),
    );
    put.prop_map(
        |(spot, user, columns, expire_time, body, is_upload, says_new)| PutEdit {
            spot,
            user,
            columns,
            expire_time,
            body,
            is_upload,
            says_new,
        },
    )
}

fn expiries() -> impl Strategy<Value = Edit> {
    let is_old = prop::bool::weighted(0.2);
    (any::<Index>(), expire_times(), is_old).prop_map(|(pick, expire_time, is_old)| Edit::Expire {
        pick,
        expire_time,
        is_old,
    })
}

/// Edits of what is at a spot.
pub(crate) fn edits_of(spot: Spot) -> impl Strategy<Value = Edit> {
    let uid = spot.conversation;
    let at = move || Just(spot.clone());
    let put = (at(), puts()).prop_map(|(spot, put)| Edit::Put(PutEdit { spot, ..put }));
    prop_oneof![
        4 => put,
        2 => at().prop_map(Edit::Remove),
        2 => at().prop_map(Edit::RemovePartition),
        1 => at().prop_map(Edit::RemovePrefix),
        1 => (0..USERS.len() - 1, any::<bool>())
            .prop_map(|(user, notes_only)| Edit::Erase { user, notes_only }),
        3 => (at(), expire_times()).prop_map(|(spot, time)| Edit::ExpireAt(spot, time)),
        1 => Just(Edit::End(uid)),
    ]
}

pub(crate) fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        1 => Just(Edit::Create),
        20 => puts().prop_map(Edit::Put),
        6 => spots().prop_map(Edit::Remove),
        2 => spots().prop_map(Edit::RemovePartition),
        1 => spots().prop_map(Edit::RemovePrefix),
        1 => (0..USERS.len() - 1, any::<bool>())
            .prop_map(|(user, notes_only)| Edit::Erase { user, notes_only }),
        4 => expiries(),
        1 => any::<Index>().prop_map(Edit::End),
    ]
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// It got an expire time, if it is there.
    Expired(Id, u64, Option<i64>),
    /// It is not the newest of its key any more.
    Ended(Id, u64),
}

/// Every state that the records were in.
pub(crate) struct History {
    /// By revision.
    pub(crate) states: Vec<State>,
    /// The journal's records, from revision 1 on.
    pub(crate) journal: Vec<Bytes>,
    conversations: Vec<u64>,
    /// The newest revision that touched each kind.
    pub(crate) touched: BTreeMap<u32, u64>,
    /// What became of records that are named by where they are and their revision, in order.
    pub(crate) events: Vec<Event>,
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            states: vec![State::new()],
            journal: Vec::new(),
            conversations: vec![OLD],
            touched: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    pub(crate) fn at(&self, revision: u64) -> &State {
        &self.states[revision as usize]
    }

    /// The place of a spot.
    pub(crate) fn id(&self, tenant: usize, spot: &Spot) -> Id {
        let uid = match spot.is_note {
            true => 0,
            false => *spot.conversation.get(&self.conversations),
        };
        Id {
            kind: if spot.is_note { NOTES } else { TURNS },
            tenant: TENANTS[tenant].to_owned(),
            uid,
            partition: PARTITIONS[spot.partition].to_vec(),
            key: KEYS[spot.key].to_vec(),
        }
    }

    /// Every place that a record may be in.
    pub(crate) fn ids(&self) -> Vec<Id> {
        let mut ids = Vec::new();
        for tenant in TENANTS {
            let of_kinds = self.conversations.iter().map(|uid| (TURNS, *uid));
            for (kind, uid) in of_kinds.chain([(NOTES, 0)]) {
                for partition in PARTITIONS {
                    ids.extend(KEYS.map(|key| Id {
                        kind,
                        tenant: tenant.to_owned(),
                        uid,
                        partition: partition.to_vec(),
                        key: key.to_vec(),
                    }));
                }
            }
        }
        ids
    }

    /// Makes a record of edits. Returns it as the journal has it, and what the next revision is.
    pub(crate) fn write(&mut self, tenant: usize, edits: &[Edit]) -> (u64, Bytes) {
        let revision = self.accepted() + 1;
        let mut state = self.at(revision - 1).clone();
        let mut changes = Vec::new();
        for edit in edits {
            if let Some(change) = self.complete(tenant, edit, &state, revision) {
                let ordinal = changes.len() as u32;
                self.apply(&mut state, TENANTS[tenant], (revision, ordinal), &change);
                changes.push(wire::Change::from(change));
            }
        }
        self.push(tenant, changes, state)
    }

    /// Makes a record that gives another one an expire time.
    pub(crate) fn write_expiry(
        &mut self,
        tenant: usize,
        id: &Id,
        record_revision: u64,
        expire_time: Option<i64>,
    ) -> (u64, Bytes) {
        let set = set_expiry(id, id.uid, record_revision, expire_time);
        let revision = self.accepted() + 1;
        let mut state = self.at(revision - 1).clone();
        self.apply(&mut state, TENANTS[tenant], (revision, 0), &set);
        self.push(tenant, vec![set.into()], state)
    }

    fn push(&mut self, tenant: usize, changes: Vec<wire::Change>, state: State) -> (u64, Bytes) {
        let record = wire::Record {
            tenant_id: TENANTS[tenant].to_owned(),
            changes,
            ..wire::Record::default()
        };
        let record = Bytes::from(prost::Message::encode_to_vec(&record));
        self.states.push(state);
        self.journal.push(record.clone());
        (self.accepted(), record)
    }

    fn complete(
        &mut self,
        tenant: usize,
        edit: &Edit,
        state: &State,
        revision: u64,
    ) -> Option<wire::Kind> {
        let named = |uid| if uid == revision { 0 } else { uid };
        let remove = |extent: Extent, id: Id| {
            let key = match extent {
                Extent::Record => id.key.into(),
                _ => Bytes::new(),
            };
            wire::Kind::RemoveRecords(wire::RemoveRecords {
                kind: id.kind,
                conversation_uid: named(id.uid),
                extent: extent.into(),
                partition: id.partition.into(),
                key,
            })
        };
        Some(match edit {
            Edit::Create => {
                self.conversations.push(revision);
                wire::Kind::PutConversation(wire::PutConversation::default())
            }
            Edit::Put(put) => self.complete_put(tenant, put, state, named),
            Edit::Remove(spot) => remove(Extent::Record, self.id(tenant, spot)),
            Edit::RemovePartition(spot) => remove(Extent::Partition, self.id(tenant, spot)),
            Edit::RemovePrefix(spot) => remove(Extent::Prefix, self.id(tenant, spot)),
            Edit::Erase { user, notes_only } => {
                let kinds = if *notes_only {
                    vec![NOTES]
                } else {
                    vec![NOTES, TURNS]
                };
                wire::Kind::RemoveUserRecords(wire::RemoveUserRecords {
                    user_id: USERS[*user].to_owned(),
                    kinds,
                })
            }
            Edit::Expire {
                pick,
                expire_time,
                is_old,
            } => {
                let here = state.iter().filter(|(id, _)| id.tenant == TENANTS[tenant]);
                let here: Vec<_> = here.collect();
                if here.is_empty() {
                    return None;
                }
                let (id, row) = pick.get(&here);
                let record_revision = row.revision - u64::from(*is_old);
                set_expiry(id, named(id.uid), record_revision, *expire_time)
            }
            Edit::ExpireAt(spot, expire_time) => {
                let id = self.id(tenant, spot);
                let row = state.get(&id)?;
                set_expiry(&id, named(id.uid), row.revision, *expire_time)
            }
            Edit::End(pick) => {
                let uid = *pick.get(&self.conversations);
                wire::Kind::DeleteConversation(wire::DeleteConversation {
                    conversation_uid: named(uid),
                    ..wire::DeleteConversation::default()
                })
            }
        })
    }

    fn complete_put(
        &self,
        tenant: usize,
        put: &PutEdit,
        state: &State,
        named: impl Fn(u64) -> u64,
    ) -> wire::Kind {
        let id = self.id(tenant, &put.spot);
        let (text, number) = put.columns;
        let columns = match id.kind {
            TURNS => vec![
                text.then(|| wire::ValueKind::Text("text".to_owned())),
                Some(wire::ValueKind::Integer(number)),
            ],
            _ => Vec::new(),
        };
        // Of an order of text and number, so never null.
        let columns = columns.into_iter().map(|kind| wire::Value {
            kind: kind.or(Some(wire::ValueKind::Text(String::new()))),
        });
        let upload_id = if put.is_upload { "upload" } else { "" };
        let body = if put.is_upload {
            Vec::new()
        } else {
            vec![b'x'; put.body]
        };
        wire::Kind::PutRecord(wire::PutRecord {
            kind: id.kind,
            conversation_uid: named(id.uid),
            columns: columns.collect(),
            user_id: USERS[put.user].to_owned(),
            expire_time: put.expire_time,
            body: body.into(),
            upload_id: upload_id.to_owned(),
            replaces: state.contains_key(&id) || !put.says_new,
            partition: id.partition.into(),
            key: id.key.into(),
        })
    }

    fn apply(&mut self, state: &mut State, tenant: &str, at: (u64, u32), change: &wire::Kind) {
        let before = state.clone();
        self.change(state, tenant, at, change);
        let written = |row: &Row| (row.revision, row.ordinal);
        for (id, row) in before {
            if state.get(&id).map(written) != Some(written(&row)) {
                self.events.push(Event::Ended(id, row.revision));
            }
        }
    }

    fn change(&mut self, state: &mut State, tenant: &str, at: (u64, u32), change: &wire::Kind) {
        let (revision, ordinal) = at;
        let uid = |kind: u32, named: u64| match kind {
            TURNS if named == 0 => revision,
            _ => named,
        };
        let id = |kind, named, partition: &Bytes, key: &Bytes| Id {
            kind,
            tenant: tenant.to_owned(),
            uid: uid(kind, named),
            partition: partition.to_vec(),
            key: key.to_vec(),
        };
        match change {
            wire::Kind::PutRecord(put) => {
                self.touched.insert(put.kind, revision);
                let id = id(put.kind, put.conversation_uid, &put.partition, &put.key);
                let columns = put.columns.iter().cloned();
                let row = Row {
                    revision,
                    ordinal,
                    user: put.user_id.clone(),
                    columns: columns.map(Value::from).collect(),
                    expire_time: put.expire_time,
                    upload_id: put.upload_id.clone(),
                    body: put.body.to_vec(),
                };
                state.insert(id, row);
            }
            wire::Kind::RemoveRecords(gone) => {
                self.touched.insert(gone.kind, revision);
                let gone_id = id(gone.kind, gone.conversation_uid, &gone.partition, &gone.key);
                state.retain(|other, _| !is_taken(other, &gone_id, gone.extent()));
            }
            wire::Kind::RemoveUserRecords(gone) => {
                for kind in &gone.kinds {
                    self.touched.insert(*kind, revision);
                }
                state.retain(|id, row| {
                    id.tenant != tenant
                        || row.user != gone.user_id
                        || !gone.kinds.contains(&id.kind)
                });
            }
            wire::Kind::SetExpiry(set) => {
                self.touched.insert(set.kind, revision);
                let id = id(set.kind, set.conversation_uid, &set.partition, &set.key);
                if let Some(row) = state.get_mut(&id)
                    && row.revision == set.record_revision
                {
                    row.expire_time = set.expire_time;
                }
                self.events
                    .push(Event::Expired(id, set.record_revision, set.expire_time));
            }
            wire::Kind::DeleteConversation(gone) => {
                self.touched.insert(TURNS, revision);
                let uid = uid(TURNS, gone.conversation_uid);
                state.retain(|id, _| id.kind != TURNS || id.uid != uid);
            }
            _ => {}
        }
    }
}

fn set_expiry(
    id: &Id,
    conversation_uid: u64,
    record_revision: u64,
    expire_time: Option<i64>,
) -> wire::Kind {
    wire::Kind::SetExpiry(wire::SetExpiry {
        kind: id.kind,
        conversation_uid,
        partition: id.partition.clone().into(),
        key: id.key.clone().into(),
        record_revision,
        expire_time,
    })
}

fn is_taken(id: &Id, gone: &Id, extent: Extent) -> bool {
    let is_beside = (id.kind, &id.tenant, id.uid) == (gone.kind, &gone.tenant, gone.uid);
    is_beside
        && match extent {
            Extent::Record => (&id.partition, &id.key) == (&gone.partition, &gone.key),
            Extent::Partition => id.partition == gone.partition,
            Extent::Prefix => id.partition.starts_with(&gone.partition),
            Extent::Unspecified => false,
        }
}
