//! What a run of records makes of the database's tables: rows that go, then rows that come, the last change of a row
//! winning. A `conversation_uid` of 0 in a record means the record's own revision.

mod column;
mod records;
mod stored;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use prost::DecodeError;
use prost::Message as _;
use remora_wire::{
    Kind, PutConversation, PutEmbedding, PutHead, PutMessage, Record, RemoveMessages,
};

pub use self::column::Column;
use self::records::RecordRows;
pub use self::records::unapplied_expiries;
use self::stored::{Conversation, Message};
pub use self::tables::Table;
use crate::records::{Change, InvalidChange, Kinds};

/// The field of a message that is a column of its own.
const TEXT_FIELD: u32 = 5;
/// Bytes of a vector's number.
const F32_BYTES: usize = size_of::<f32>();

/// A record that cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    #[error("record {0} cannot be decoded: {1}")]
    Malformed(u64, DecodeError),
    #[error("record {0} holds a change that this version does not know")]
    UnknownChange(u64),
    #[error("change {change} of record {revision}: {reason}")]
    Refused {
        revision: u64,
        change: usize,
        reason: InvalidChange,
    },
}

type Uid = u64;
/// A conversation and a sequence.
type MessageKey = (Uid, u64);
/// What a user has in a conversation.
type Part = (Uid, String);

struct ConversationRow {
    tenant: Arc<str>,
    put: PutConversation,
    fields: Conversation,
}

struct HeadRow {
    tenant: Arc<str>,
    put: PutHead,
    revision: u64,
}

struct MessageRow {
    tenant: Arc<str>,
    put: PutMessage,
    fields: Message,
    /// The encoded message without its text.
    body: Vec<u8>,
    revision: u64,
}

struct EmbeddingRow {
    tenant: Arc<str>,
    message_revision: u64,
    by_caller: bool,
    values: Bytes,
    pieces: Option<Bytes>,
}

struct RequestRow {
    fingerprint: Bytes,
    revision: u64,
    time: i64,
    outcome: Bytes,
}

/// The rows of a run of records: filled in order of revision, then read table by table.
pub struct Rows {
    deleted: BTreeSet<Uid>,
    conversations: BTreeMap<Uid, ConversationRow>,
    heads: BTreeMap<Uid, HeadRow>,
    messages: BTreeMap<MessageKey, MessageRow>,
    moved: BTreeSet<MessageKey>,
    cleared: BTreeSet<Part>,
    embeddings: BTreeMap<MessageKey, BTreeMap<String, EmbeddingRow>>,
    requests: BTreeMap<(Arc<str>, String), RequestRow>,
    records: RecordRows,
}

/// Where a change comes from.
struct Origin {
    tenant: Arc<str>,
    revision: u64,
}

impl Origin {
    /// The conversation that a change names; 0 is the one that its record creates.
    fn uid(&self, named: Uid) -> Uid {
        if named == 0 { self.revision } else { named }
    }
}

impl Rows {
    /// No rows, to be filled with records of these kinds.
    pub fn new(kinds: Kinds) -> Self {
        Self {
            deleted: BTreeSet::new(),
            conversations: BTreeMap::new(),
            heads: BTreeMap::new(),
            messages: BTreeMap::new(),
            moved: BTreeSet::new(),
            cleared: BTreeSet::new(),
            embeddings: BTreeMap::new(),
            requests: BTreeMap::new(),
            records: RecordRows::new(kinds),
        }
    }

    /// Takes in the next record. After an error what is there is of no use.
    pub fn add(&mut self, revision: u64, payload: Bytes) -> Result<(), RowsError> {
        let malformed = |error| RowsError::Malformed(revision, error);
        let record = Record::read(payload).map_err(malformed)?;
        let origin = Origin {
            tenant: record.tenant_id.into(),
            revision,
        };
        for (ordinal, change) in record.changes.into_iter().enumerate() {
            let kind = change.kind.ok_or(RowsError::UnknownChange(revision))?;
            let refused = |reason| RowsError::Refused {
                revision,
                change: ordinal,
                reason,
            };
            let read = Change::read(&kind, self.records.kinds()).map_err(refused)?;
            if let Some(change) = read {
                self.records.change(&origin, ordinal, change);
            }
            self.change(&origin, kind).map_err(malformed)?;
        }
        if !record.request_id.is_empty() {
            let row = RequestRow {
                fingerprint: record.fingerprint,
                revision,
                time: record.time,
                outcome: record.outcome,
            };
            self.requests
                .insert((origin.tenant, record.request_id), row);
        }
        Ok(())
    }

    fn change(&mut self, origin: &Origin, kind: Kind) -> Result<(), DecodeError> {
        match kind {
            Kind::PutConversation(put) => self.put_conversation(origin, put)?,
            Kind::PutHead(put) => self.put_head(origin, put),
            Kind::DeleteConversation(gone) => {
                self.delete_conversation(origin.uid(gone.conversation_uid));
            }
            Kind::PutMessage(put) => self.put_message(origin, put)?,
            Kind::RemoveMessages(gone) => self.remove_messages(gone),
            Kind::PutEmbedding(put) => self.put_embedding(origin, put),
            Kind::PutRecord(_)
            | Kind::RemoveRecords(_)
            | Kind::RemoveUserRecords(_)
            | Kind::SetExpiry(_) => {}
        }
        Ok(())
    }

    fn put_conversation(
        &mut self,
        origin: &Origin,
        put: PutConversation,
    ) -> Result<(), DecodeError> {
        let row = ConversationRow {
            tenant: Arc::clone(&origin.tenant),
            fields: Conversation::decode(put.conversation.clone())?,
            put,
        };
        self.conversations
            .insert(origin.uid(row.put.conversation_uid), row);
        Ok(())
    }

    fn put_head(&mut self, origin: &Origin, put: PutHead) {
        let row = HeadRow {
            tenant: Arc::clone(&origin.tenant),
            put,
            revision: origin.revision,
        };
        self.heads.insert(origin.uid(row.put.conversation_uid), row);
    }

    fn delete_conversation(&mut self, uid: Uid) {
        self.deleted.insert(uid);
        self.conversations.remove(&uid);
        self.heads.remove(&uid);
        self.messages.retain(|key, _| key.0 != uid);
        self.embeddings.retain(|key, _| key.0 != uid);
    }

    fn put_message(&mut self, origin: &Origin, put: PutMessage) -> Result<(), DecodeError> {
        let key = (origin.uid(put.conversation_uid), put.sequence);
        if put.replaces {
            self.moved.insert(key);
            self.embeddings.remove(&key);
        }
        if !put.embedding_model.is_empty() {
            let row = EmbeddingRow {
                tenant: Arc::clone(&origin.tenant),
                message_revision: origin.revision,
                by_caller: true,
                values: put.embedding.clone(),
                pieces: None,
            };
            self.embed(key, &put.embedding_model, row);
        }
        let (fields, body) = remora_wire::read_apart(&put.body, TEXT_FIELD)?;
        let row = MessageRow {
            tenant: Arc::clone(&origin.tenant),
            fields,
            body,
            put,
            revision: origin.revision,
        };
        self.messages.insert(key, row);
        Ok(())
    }

    fn remove_messages(&mut self, gone: RemoveMessages) {
        let uid = gone.conversation_uid;
        if gone.all {
            let all = self.messages.range((uid, 0)..=(uid, u64::MAX));
            let theirs = all.filter(|(_, row)| row.put.user_id == gone.user_id);
            let keys: Vec<_> = theirs.map(|(key, _)| *key).collect();
            self.drop_messages(&keys);
            self.cleared.insert((uid, gone.user_id));
        } else {
            let keys: Vec<_> = gone
                .sequences
                .iter()
                .map(|sequence| (uid, *sequence))
                .collect();
            self.drop_messages(&keys);
            self.moved.extend(keys);
        }
    }

    fn drop_messages(&mut self, keys: &[MessageKey]) {
        for key in keys {
            self.messages.remove(key);
            self.embeddings.remove(key);
        }
    }

    /// A table of a kind of records by its name; `None` if there is no such kind or table.
    pub fn records(&self, kind: u32, name: &str) -> Option<Table> {
        self.records.table(kind, name)
    }

    fn put_embedding(&mut self, origin: &Origin, put: PutEmbedding) {
        let row = EmbeddingRow {
            tenant: Arc::clone(&origin.tenant),
            message_revision: put.message_revision,
            by_caller: false,
            values: put.values,
            pieces: put.pieces,
        };
        self.embed((put.conversation_uid, put.sequence), &put.model, row);
    }

    /// Keeps the vector of the newest text; of two for one text the caller's.
    fn embed(&mut self, key: MessageKey, model: &str, row: EmbeddingRow) {
        let models = self.embeddings.entry(key).or_default();
        let rank = |row: &EmbeddingRow| (row.message_revision, row.by_caller);
        if models
            .get(model)
            .is_none_or(|before| rank(before) <= rank(&row))
        {
            models.insert(model.to_owned(), row);
        }
    }
}
