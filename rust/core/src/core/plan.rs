//! Reads a record into changes that can be applied. All errors of a record are found here.

use bytes::Bytes;
use prost::Message as _;
use remora_fingerprint::Fingerprints;
use remora_late::Pieces;
use remora_wire::{self as wire, Kind, StoredDraft};

use super::requests::Request;
use crate::records::{self, InvalidChange, Kinds, Prepared};
use crate::windows::{Change, ChangeKind, Counters, Embed, PutMessage, PutRow, Run, Stored};

/// The record cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecord {
    #[error("the record cannot be read: {0}")]
    Unreadable(#[from] prost::DecodeError),
    #[error("change {change}: {reason}")]
    Change { change: usize, reason: &'static str },
    #[error("change {change}: {reason}")]
    Records {
        change: usize,
        reason: InvalidChange,
    },
    #[error("a request id needs a fingerprint of 16 bytes, not {0}")]
    Fingerprint(usize),
}

/// What a record does.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) tenant: String,
    /// When its record was made, in microseconds since 1970.
    pub(super) time: i64,
    pub(super) request: Option<Request>,
    pub(super) runs: Vec<Run>,
    /// The changes of records by key.
    pub(super) records: Vec<Prepared>,
}

impl Plan {
    /// Reads a record that comes at `now`, as requests count time.
    pub(super) fn read(
        record: Bytes,
        kinds: &Kinds,
        fingerprints: &Fingerprints,
        now: i64,
    ) -> Result<Self, InvalidRecord> {
        let record = wire::Record::read(record)?;
        let request = request(&record, fingerprints, now)?;
        let records = record_changes(&record.changes, kinds)?;
        let runs = runs(&record.tenant_id, record.changes, fingerprints)?;
        Ok(Self {
            tenant: record.tenant_id,
            time: record.time,
            request,
            runs,
            records,
        })
    }
}

/// The changes of records by key.
fn record_changes(changes: &[wire::Change], kinds: &Kinds) -> Result<Vec<Prepared>, InvalidRecord> {
    let mut found = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let Some(kind) = &change.kind else {
            continue;
        };
        let read = records::Change::read(kind, kinds);
        let read = read.map_err(|reason| InvalidRecord::Records {
            change: index,
            reason,
        })?;
        found.extend(read.map(|change| Prepared::new(change, index)));
    }
    Ok(found)
}

fn request(
    record: &wire::Record,
    fingerprints: &Fingerprints,
    now: i64,
) -> Result<Option<Request>, InvalidRecord> {
    if record.request_id.is_empty() {
        return Ok(None);
    }
    let fingerprint = record.fingerprint.as_ref().try_into();
    let length = record.fingerprint.len();
    Ok(Some(Request {
        key: fingerprints.of([&record.tenant_id, &record.request_id]),
        fingerprint: fingerprint.map_err(|_| InvalidRecord::Fingerprint(length))?,
        time: now,
    }))
}

/// The changes that the engine follows, consecutive ones of a conversation together.
fn runs(
    tenant: &str,
    changes: Vec<wire::Change>,
    fingerprints: &Fingerprints,
) -> Result<Vec<Run>, InvalidRecord> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, change) in changes.into_iter().enumerate() {
        let Some(kind) = change.kind else {
            continue;
        };
        let Some((conversation_id, change)) =
            read(kind, fingerprints).map_err(|wrong| wrong.at(index))?
        else {
            continue;
        };
        match runs.last_mut() {
            Some(run) if run.conversation_id == conversation_id => run.changes.push(change),
            _ => runs.push(Run {
                key: fingerprints.of([tenant, &conversation_id]),
                conversation_id,
                changes: vec![change],
            }),
        }
    }
    Ok(runs)
}

/// What is wrong with a change.
enum Wrong {
    Unreadable(prost::DecodeError),
    Refused(&'static str),
}

impl Wrong {
    fn at(self, change: usize) -> InvalidRecord {
        match self {
            Self::Unreadable(error) => error.into(),
            Self::Refused(reason) => InvalidRecord::Change { change, reason },
        }
    }
}

impl From<prost::DecodeError> for Wrong {
    fn from(error: prost::DecodeError) -> Self {
        Self::Unreadable(error)
    }
}

/// A change of a conversation, and the conversation's id; `None` if it changes records by key.
fn read(kind: Kind, fingerprints: &Fingerprints) -> Result<Option<(String, Change)>, Wrong> {
    let (conversation_id, uid, kind) = match kind {
        Kind::PutConversation(put) => {
            let conversation = wire::Conversation::decode(put.conversation.clone())?;
            let row = PutRow {
                user: conversation.user_id,
                // A copy: a part of the record would keep all of it in memory for as long as the conversation is there.
                body: Bytes::copy_from_slice(&put.conversation),
                create_time: put.create_time,
            };
            (conversation.id, put.conversation_uid, ChangeKind::Put(row))
        }
        Kind::PutHead(put) => {
            let counters = counters(&put);
            (
                put.conversation_id,
                put.conversation_uid,
                ChangeKind::Head(counters),
            )
        }
        Kind::DeleteConversation(delete) => (
            delete.conversation_id,
            delete.conversation_uid,
            ChangeKind::Delete,
        ),
        Kind::PutMessage(put) => read_message(put, fingerprints)?,
        Kind::RemoveMessages(remove) => read_removal(remove),
        Kind::PutEmbedding(put) => read_embedding(put)?,
        Kind::PutRecord(_)
        | Kind::RemoveRecords(_)
        | Kind::RemoveUserRecords(_)
        | Kind::SetExpiry(_) => return Ok(None),
    };
    if conversation_id.is_empty() {
        return Err(Wrong::Refused("the conversation has no id"));
    }
    Ok(Some((conversation_id, Change { uid, kind })))
}

type Read = (String, u64, ChangeKind);

fn counters(put: &wire::PutHead) -> Counters {
    Counters {
        last_sequence: put.last_sequence,
        message_count: put.message_count,
        last_time: put.last_time,
        update_time: put.update_time,
    }
}

fn read_message(put: wire::PutMessage, fingerprints: &Fingerprints) -> Result<Read, Wrong> {
    if put.sequence == 0 || put.sequence == u64::MAX {
        return Err(Wrong::Refused("the message has no sequence"));
    }
    let message = wire::CallerMessage::decode(put.body.clone())?;
    if str::from_utf8(&message.text).is_err() {
        return Err(Wrong::Refused("the message's text is not UTF-8"));
    }
    let change = PutMessage {
        id: fingerprints.of([&put.user_id, &put.id]),
        uses_tools: message.uses_tools(),
        stored: Stored::Draft(StoredDraft::new(&put)),
        user: put.user_id,
        role: message.role,
        sequence: put.sequence,
        create_time: put.create_time,
        sent_time: message
            .sent_time
            .map_or(put.create_time, wire::Timestamp::micros),
        token_count: put.token_count,
        embedding: read_values(put.embedding_model, put.embedding)?,
    };
    let kind = ChangeKind::Message(Box::new(change));
    Ok((put.conversation_id, put.conversation_uid, kind))
}

fn read_removal(remove: wire::RemoveMessages) -> Read {
    let user = remove.user_id;
    let kind = if remove.all {
        ChangeKind::RemoveAll { user }
    } else {
        let sequences = remove.sequences;
        ChangeKind::Remove { user, sequences }
    };
    (remove.conversation_id, remove.conversation_uid, kind)
}

fn read_embedding(put: wire::PutEmbedding) -> Result<Read, Wrong> {
    let Some((model, values)) = read_values(put.model, put.values)? else {
        return Err(Wrong::Refused("the embedding names no model"));
    };
    let pieces = put.pieces.unwrap_or_default();
    if Pieces::count(pieces.len()).is_none() {
        return Err(Wrong::Refused(
            "an embedding's bytes do not divide into pieces",
        ));
    }
    let embed = Embed {
        user: put.user_id,
        sequence: put.sequence,
        message_revision: put.message_revision,
        model,
        values,
        pieces,
    };
    Ok((
        put.conversation_id,
        put.conversation_uid,
        ChangeKind::Embed(embed),
    ))
}

/// An embedding's model and values, where it names a model.
fn read_values(model: String, values: Bytes) -> Result<Option<(String, Bytes)>, Wrong> {
    if !values.len().is_multiple_of(size_of::<f32>()) {
        return Err(Wrong::Refused(
            "an embedding's bytes do not divide into values of 4",
        ));
    }
    Ok((!model.is_empty()).then_some((model, values)))
}
