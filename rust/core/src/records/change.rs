//! The changes of records: taken from the journal's form and checked, so that applying them cannot fail.

use std::sync::Arc;

use bytes::Bytes;
use remora_wire::{self as wire, Extent};

use super::kinds::{Kind, Kinds};
use super::value::Value;

/// A change of records cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidChange {
    #[error("records of kind {0} are not declared")]
    UnknownKind(u32),
    #[error("records of kind {0} do not belong to conversations")]
    NoConversations(u32),
    #[error("a record of kind {0} {1}")]
    Columns(u32, &'static str),
    #[error("the record has a body and names an upload")]
    TwoBodies,
    #[error("the removal's extent {0} is not known")]
    UnknownExtent(i32),
    #[error("the removal of more than one record has a key")]
    KeyOfMany,
    #[error("the user whose records go has no id")]
    NoUser,
}

/// Where a record is, within its tenant and kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    /// The conversation; 0 if the kind has none. Of a record that creates its conversation it is 0 until the
    /// revision is known.
    pub(crate) uid: u64,
    pub(crate) partition: Bytes,
    pub(crate) key: Bytes,
}

/// A record to put.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) kind: Arc<Kind>,
    pub(crate) address: Address,
    pub(crate) user: String,
    pub(crate) columns: Box<[Value]>,
    pub(crate) expire_time: Option<i64>,
    pub(crate) upload_id: String,
    pub(crate) body: Bytes,
    /// Whether one may be there in its place.
    pub(crate) replaces: bool,
}

/// Records of a kind that go.
#[derive(Clone, Debug)]
pub(crate) enum Removed {
    Record {
        key: Bytes,
    },
    Partition,
    /// Every partition that begins as the one that is named.
    Prefix,
}

/// One change of records.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put(Put),
    Remove {
        kind: Arc<Kind>,
        uid: u64,
        partition: Bytes,
        removed: Removed,
    },
    /// The records of these kinds that are a user's.
    Erase {
        kinds: Vec<Arc<Kind>>,
        user: String,
    },
    /// Another expire time for the record with this revision.
    Expire {
        kind: Arc<Kind>,
        address: Address,
        record_revision: u64,
        expire_time: Option<i64>,
    },
    /// A conversation begins; its uid is the revision.
    Create,
    /// A conversation ends.
    End {
        uid: u64,
    },
}

impl Change {
    /// What a change of the journal means to records; what is wrong with it where it cannot be applied.
    pub(crate) fn read(change: &wire::Kind, kinds: &Kinds) -> Result<Option<Self>, InvalidChange> {
        Ok(Some(match change {
            wire::Kind::PutRecord(put) => Self::Put(read_put(put, kinds)?),
            wire::Kind::RemoveRecords(remove) => read_removal(remove, kinds)?,
            wire::Kind::RemoveUserRecords(remove) => read_erasure(remove, kinds)?,
            wire::Kind::SetExpiry(set) => read_expiry(set, kinds)?,
            wire::Kind::PutConversation(put) if put.conversation_uid == 0 => Self::Create,
            wire::Kind::DeleteConversation(delete) => Self::End {
                uid: delete.conversation_uid,
            },
            _ => return Ok(None),
        }))
    }
}

fn read_put(put: &wire::PutRecord, kinds: &Kinds) -> Result<Put, InvalidChange> {
    let kind = known(put.kind, put.conversation_uid, kinds)?;
    let columns: Box<[_]> = put.columns.iter().cloned().map(Value::from).collect();
    kind.check(&columns)
        .map_err(|reason| InvalidChange::Columns(kind.number, reason))?;
    if !put.upload_id.is_empty() && !put.body.is_empty() {
        return Err(InvalidChange::TwoBodies);
    }
    Ok(Put {
        kind,
        address: Address {
            uid: put.conversation_uid,
            partition: put.partition.clone(),
            key: put.key.clone(),
        },
        user: put.user_id.clone(),
        columns,
        expire_time: put.expire_time,
        upload_id: put.upload_id.clone(),
        body: put.body.clone(),
        replaces: put.replaces,
    })
}

fn read_removal(remove: &wire::RemoveRecords, kinds: &Kinds) -> Result<Change, InvalidChange> {
    let kind = known(remove.kind, remove.conversation_uid, kinds)?;
    let removed = match Extent::try_from(remove.extent) {
        Ok(Extent::Record) => Removed::Record {
            key: remove.key.clone(),
        },
        Ok(Extent::Partition) => Removed::Partition,
        Ok(Extent::Prefix) => Removed::Prefix,
        Ok(Extent::Unspecified) | Err(_) => {
            return Err(InvalidChange::UnknownExtent(remove.extent));
        }
    };
    if !remove.key.is_empty() && !matches!(removed, Removed::Record { .. }) {
        return Err(InvalidChange::KeyOfMany);
    }
    Ok(Change::Remove {
        kind,
        uid: remove.conversation_uid,
        partition: remove.partition.clone(),
        removed,
    })
}

fn read_erasure(remove: &wire::RemoveUserRecords, kinds: &Kinds) -> Result<Change, InvalidChange> {
    if remove.user_id.is_empty() {
        return Err(InvalidChange::NoUser);
    }
    let kinds = remove.kinds.iter().map(|number| find(*number, kinds));
    Ok(Change::Erase {
        kinds: kinds.collect::<Result<_, _>>()?,
        user: remove.user_id.clone(),
    })
}

fn read_expiry(set: &wire::SetExpiry, kinds: &Kinds) -> Result<Change, InvalidChange> {
    Ok(Change::Expire {
        kind: known(set.kind, set.conversation_uid, kinds)?,
        address: Address {
            uid: set.conversation_uid,
            partition: set.partition.clone(),
            key: set.key.clone(),
        },
        record_revision: set.record_revision,
        expire_time: set.expire_time,
    })
}

/// The kind of a record, which must belong to a conversation where the record does.
fn known(number: u32, uid: u64, kinds: &Kinds) -> Result<Arc<Kind>, InvalidChange> {
    let kind = find(number, kinds)?;
    if uid != 0 && !kind.of_conversation {
        return Err(InvalidChange::NoConversations(number));
    }
    Ok(kind)
}

fn find(number: u32, kinds: &Kinds) -> Result<Arc<Kind>, InvalidChange> {
    let kind = kinds.get(number).cloned();
    kind.ok_or(InvalidChange::UnknownKind(number))
}

impl Kind {
    /// The conversation of a record that names one; 0 is the one that the record's revision created.
    pub(crate) fn uid(&self, named: u64, revision: u64) -> u64 {
        if named == 0 && self.of_conversation {
            revision
        } else {
            named
        }
    }
}
