//! The parts of records, messages and conversations that the engine reads, and messages as they are stored and served.
//!
//! The structs name the fields of `record.proto`, `message.proto` and `conversation.proto` that matter here; all others are
//! skipped when they are read. Times are microseconds since 1970, UTC. It knows no other crate of the engine.

mod legacy;
mod records;
mod times;

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use prost::{DecodeError, Message as _};

pub use legacy::{DeleteWorkingMemory, Legacy, PutStep, PutWorkingMemory, RemoveSteps};
pub use records::{
    Extent, PutRecord, RemoveRecords, RemoveUserRecords, SetExpiry, Value, ValueKind,
};
pub use times::Between;

const MICROS: i64 = 1_000_000;

/// One request's ordered changes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Record {
    #[prost(string, tag = "1")]
    pub tenant_id: String,
    #[prost(int64, tag = "2")]
    pub time: i64,
    #[prost(string, tag = "7")]
    pub request_id: String,
    #[prost(bytes = "bytes", tag = "8")]
    pub fingerprint: Bytes,
    /// An encoded `Outcome`, kept as it is.
    #[prost(bytes = "bytes", tag = "9")]
    pub outcome: Bytes,
    #[prost(message, repeated, tag = "11")]
    pub changes: Vec<Change>,
}

impl Record {
    /// Reads a record as it would be written today.
    pub fn read(encoded: Bytes) -> Result<Self, DecodeError> {
        let mut record = Self::decode(encoded)?;
        for change in &mut record.changes {
            if let Some(legacy) = change.legacy.take() {
                change.kind = Some(legacy.translate()?);
            }
        }
        Ok(record)
    }
}

/// One change; one of neither is one that this version does not know.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Change {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 10, 11, 12, 13, 14")]
    pub kind: Option<Kind>,
    #[prost(oneof = "Legacy", tags = "6, 7, 8, 9")]
    pub legacy: Option<Legacy>,
}

impl From<Kind> for Change {
    fn from(kind: Kind) -> Self {
        Self {
            kind: Some(kind),
            legacy: None,
        }
    }
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Kind {
    #[prost(message, tag = "1")]
    PutConversation(PutConversation),
    #[prost(message, tag = "2")]
    PutHead(PutHead),
    #[prost(message, tag = "3")]
    DeleteConversation(DeleteConversation),
    #[prost(message, tag = "4")]
    PutMessage(PutMessage),
    #[prost(message, tag = "5")]
    RemoveMessages(RemoveMessages),
    #[prost(message, tag = "10")]
    PutEmbedding(PutEmbedding),
    #[prost(message, tag = "11")]
    PutRecord(PutRecord),
    #[prost(message, tag = "12")]
    RemoveRecords(RemoveRecords),
    #[prost(message, tag = "13")]
    RemoveUserRecords(RemoveUserRecords),
    #[prost(message, tag = "14")]
    SetExpiry(SetExpiry),
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PutConversation {
    #[prost(uint64, tag = "1")]
    pub conversation_uid: u64,
    /// An encoded `Conversation`, kept as it is.
    #[prost(bytes = "bytes", tag = "2")]
    pub conversation: Bytes,
    #[prost(int64, tag = "3")]
    pub create_time: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PutHead {
    #[prost(uint64, tag = "1")]
    pub conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub conversation_id: String,
    #[prost(uint64, tag = "3")]
    pub last_sequence: u64,
    #[prost(int64, tag = "4")]
    pub message_count: i64,
    #[prost(int64, tag = "5")]
    pub last_time: i64,
    #[prost(int64, tag = "6")]
    pub update_time: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DeleteConversation {
    #[prost(uint64, tag = "1")]
    pub conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub conversation_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PutMessage {
    #[prost(uint64, tag = "1")]
    pub conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub conversation_id: String,
    #[prost(string, tag = "3")]
    pub user_id: String,
    #[prost(string, tag = "4")]
    pub id: String,
    #[prost(uint64, tag = "5")]
    pub sequence: u64,
    #[prost(int64, tag = "6")]
    pub create_time: i64,
    #[prost(int64, tag = "7")]
    pub update_time: i64,
    #[prost(int32, tag = "8")]
    pub token_count: i32,
    /// An encoded `Message` with the caller's fields.
    #[prost(bytes = "bytes", tag = "9")]
    pub body: Bytes,
    #[prost(string, tag = "10")]
    pub embedding_model: String,
    #[prost(bytes = "bytes", tag = "11")]
    pub embedding: Bytes,
    #[prost(bool, tag = "12")]
    pub replaces: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct RemoveMessages {
    #[prost(uint64, tag = "1")]
    pub conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub conversation_id: String,
    #[prost(uint64, repeated, tag = "3")]
    pub sequences: Vec<u64>,
    #[prost(string, tag = "4")]
    pub user_id: String,
    #[prost(bool, tag = "5")]
    pub all: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PutEmbedding {
    #[prost(uint64, tag = "1")]
    pub conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub conversation_id: String,
    #[prost(uint64, tag = "3")]
    pub sequence: u64,
    #[prost(uint64, tag = "4")]
    pub message_revision: u64,
    #[prost(string, tag = "5")]
    pub model: String,
    #[prost(bytes = "bytes", tag = "6")]
    pub values: Bytes,
    #[prost(string, tag = "7")]
    pub user_id: String,
    /// A digest of the text that was embedded, where names were taken out of it.
    #[prost(fixed64, tag = "8")]
    pub text_digest: u64,
    /// The text's word pieces for late interaction; `None` where they were not made.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub pieces: Option<Bytes>,
}

/// What the engine reads of a `remora.v1.Conversation`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Conversation {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub user_id: String,
    #[prost(int32, optional, tag = "7")]
    pub storage_limit: Option<i32>,
}

/// What the engine reads of a stored `remora.v1.Message`; opaque payloads are skipped.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Message {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub user_id: String,
    #[prost(string, tag = "3")]
    pub role: String,
    #[prost(string, tag = "4")]
    pub name: String,
    #[prost(string, tag = "5")]
    pub text: String,
    #[prost(btree_map = "string, message", tag = "8")]
    pub attributes: BTreeMap<String, Scalar>,
    #[prost(message, optional, tag = "11")]
    pub sent_time: Option<Timestamp>,
    #[prost(string, tag = "12")]
    pub session_id: String,
    #[prost(uint64, tag = "15")]
    pub sequence: u64,
    #[prost(uint64, tag = "16")]
    pub revision: u64,
    #[prost(message, optional, tag = "17")]
    pub create_time: Option<Timestamp>,
    #[prost(message, optional, tag = "18")]
    pub update_time: Option<Timestamp>,
    #[prost(int32, tag = "19")]
    pub token_count: i32,
}

/// One typed value of an attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Scalar {
    #[prost(oneof = "ScalarKind", tags = "1, 2, 3, 4, 5")]
    pub kind: Option<ScalarKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ScalarKind {
    #[prost(int32, tag = "1")]
    Null(i32),
    #[prost(bool, tag = "2")]
    Boolean(bool),
    #[prost(int64, tag = "3")]
    Integer(i64),
    #[prost(double, tag = "4")]
    Number(f64),
    #[prost(string, tag = "5")]
    Text(String),
}

/// A `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Timestamp {
    pub fn from_micros(micros: i64) -> Self {
        Self {
            seconds: micros.div_euclid(MICROS),
            nanos: (micros.rem_euclid(MICROS) * 1_000) as i32,
        }
    }

    /// Microseconds since 1970; at the ends of the range for times beyond it.
    pub fn micros(self) -> i64 {
        self.seconds
            .saturating_mul(MICROS)
            .saturating_add(i64::from(self.nanos) / 1_000)
    }
}

/// The server's fields of a `remora.v1.Message`, but for its revision.
#[derive(Clone, PartialEq, prost::Message)]
struct ServerFields {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    user_id: String,
    #[prost(uint64, tag = "15")]
    sequence: u64,
    #[prost(message, optional, tag = "17")]
    create_time: Option<Timestamp>,
    #[prost(message, optional, tag = "18")]
    update_time: Option<Timestamp>,
    #[prost(int32, tag = "19")]
    token_count: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RevisionField {
    #[prost(uint64, tag = "16")]
    revision: u64,
}

/// Room for a tag of two bytes and the longest varint.
const REVISION_BYTES: usize = 12;

/// A message as it is stored and served, still without its revision.
///
/// That is the caller's fields followed by the server's: protobuf reads concatenated messages as one, the later field
/// before the earlier.
#[derive(Debug)]
pub struct StoredDraft(BytesMut);

impl StoredDraft {
    pub fn new(put: &PutMessage) -> Self {
        let fields = ServerFields {
            id: put.id.clone(),
            user_id: put.user_id.clone(),
            sequence: put.sequence,
            create_time: Some(Timestamp::from_micros(put.create_time)),
            update_time: Some(Timestamp::from_micros(put.update_time)),
            token_count: put.token_count,
        };
        let bytes = put.body.len() + fields.encoded_len() + REVISION_BYTES;
        let mut encoded = BytesMut::with_capacity(bytes);
        encoded.put_slice(&put.body);
        fields.encode_raw(&mut encoded);
        Self(encoded)
    }

    /// The message, complete; what is left is empty.
    pub fn seal(&mut self, revision: u64) -> Bytes {
        RevisionField { revision }.encode_raw(&mut self.0);
        self.0.split().freeze()
    }
}

/// The tag of field 1 with a length: where a list of messages holds one.
const ENTRY_TAG: u8 = 1 << 3 | 2;

/// Bytes of a message in a list: tag, length and itself.
pub fn entry_len(message: &[u8]) -> usize {
    1 + prost::length_delimiter_len(message.len()) + message.len()
}

/// Writes a message as an entry of a list of messages that is field 1 of a reply.
pub fn put_entry(message: &[u8], buffer: &mut impl BufMut) {
    buffer.put_u8(ENTRY_TAG);
    prost::encoding::encode_varint(message.len() as u64, buffer);
    buffer.put_slice(message);
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use proptest::prelude::*;

    use super::*;

    /// A list of messages as clients read it.
    #[derive(Clone, PartialEq, prost::Message)]
    struct Listed {
        #[prost(message, repeated, tag = "1")]
        messages: Vec<Message>,
    }

    fn scalars() -> impl Strategy<Value = Scalar> {
        let kinds = prop_oneof![
            Just(ScalarKind::Null(0)),
            any::<bool>().prop_map(ScalarKind::Boolean),
            any::<i64>().prop_map(ScalarKind::Integer),
            any::<i32>().prop_map(|number| ScalarKind::Number(number.into())),
            ".*".prop_map(ScalarKind::Text),
        ];
        kinds.prop_map(|kind| Scalar { kind: Some(kind) })
    }

    /// Messages with the fields that a caller sets.
    fn callers() -> impl Strategy<Value = Message> {
        let attributes = prop::collection::btree_map(".{0,4}", scalars(), 0..4);
        let sent_time = prop::option::of(any::<i32>());
        (".*", ".*", ".*", attributes, sent_time).prop_map(
            |(role, name, text, attributes, time)| Message {
                role,
                name,
                text,
                attributes,
                sent_time: time.map(|time| Timestamp::from_micros(time.into())),
                ..Message::default()
            },
        )
    }

    proptest! {
        #[test]
        fn a_stored_message_reads_as_the_fields_of_both(
            caller in callers(),
            id in ".*",
            sequence in any::<u64>(),
            revision in any::<u64>(),
            time in -(1_i64 << 62)..1 << 62,
            token_count in any::<i32>(),
        ) {
            let put = PutMessage {
                user_id: format!("user of {id}"),
                id,
                sequence,
                create_time: time,
                update_time: time / 2,
                token_count,
                body: caller.encode_to_vec().into(),
                ..PutMessage::default()
            };
            let stored = Message::decode(StoredDraft::new(&put).seal(revision)).unwrap();
            prop_assert_eq!(stored, Message {
                id: put.id,
                user_id: put.user_id,
                sequence,
                revision,
                create_time: Some(Timestamp::from_micros(time)),
                update_time: Some(Timestamp::from_micros(time / 2)),
                token_count,
                ..caller
            });
        }

        #[test]
        fn entries_read_as_a_list_of_messages(messages in prop::collection::vec(callers(), 0..5)) {
            let mut list = Vec::new();
            let mut length = 0;
            for message in &messages {
                let encoded = message.encode_to_vec();
                put_entry(&encoded, &mut list);
                length += entry_len(&encoded);
            }
            prop_assert_eq!(list.len(), length);
            prop_assert_eq!(Listed::decode(list.as_slice()).unwrap().messages, messages);
        }

        #[test]
        fn times_come_back_to_the_microsecond(micros in -(1_i64 << 62)..1 << 62) {
            let time = Timestamp::from_micros(micros);
            prop_assert!((0..1_000_000_000).contains(&time.nanos));
            prop_assert_eq!(time.micros(), micros);
        }
    }
}
