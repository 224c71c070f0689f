//! The parts of records that the database holds and the engine does not read. The structs name the fields of
//! `record.proto`, `message.proto` and `step.proto` that are columns; what is kept whole stays encoded.

use bytes::Bytes;

use crate::wire::{
    DeleteConversation, PutConversation, PutHead, PutMessage, RemoveMessages, Timestamp,
};

/// One request's ordered changes, and what it came to.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Record {
    #[prost(string, tag = "1")]
    pub(super) tenant_id: String,
    #[prost(int64, tag = "2")]
    pub(super) time: i64,
    #[prost(string, tag = "7")]
    pub(super) request_id: String,
    #[prost(bytes = "bytes", tag = "8")]
    pub(super) fingerprint: Bytes,
    /// An encoded `Outcome`.
    #[prost(bytes = "bytes", tag = "9")]
    pub(super) outcome: Bytes,
    #[prost(message, repeated, tag = "11")]
    pub(super) changes: Vec<Change>,
}

/// One change; `None` is one that this version does not know.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Change {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub(super) kind: Option<Kind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Kind {
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
    #[prost(message, tag = "6")]
    PutStep(PutStep),
    #[prost(message, tag = "7")]
    RemoveSteps(RemoveSteps),
    #[prost(message, tag = "8")]
    PutWorkingMemory(PutWorkingMemory),
    #[prost(message, tag = "9")]
    DeleteWorkingMemory(DeleteWorkingMemory),
    #[prost(message, tag = "10")]
    PutEmbedding(PutEmbedding),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PutStep {
    #[prost(uint64, tag = "1")]
    pub(super) conversation_uid: u64,
    /// An encoded `Step`.
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) step: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RemoveSteps {
    #[prost(uint64, tag = "1")]
    pub(super) conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub(super) user_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PutWorkingMemory {
    #[prost(uint64, tag = "1")]
    pub(super) conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub(super) user_id: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) content: Bytes,
    #[prost(int64, tag = "4")]
    pub(super) update_time: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DeleteWorkingMemory {
    #[prost(uint64, tag = "1")]
    pub(super) conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub(super) user_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PutEmbedding {
    #[prost(uint64, tag = "1")]
    pub(super) conversation_uid: u64,
    #[prost(uint64, tag = "3")]
    pub(super) sequence: u64,
    #[prost(uint64, tag = "4")]
    pub(super) message_revision: u64,
    #[prost(string, tag = "5")]
    pub(super) model: String,
    #[prost(bytes = "bytes", tag = "6")]
    pub(super) values: Bytes,
    #[prost(fixed64, tag = "8")]
    pub(super) text_digest: u64,
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub(super) pieces: Option<Bytes>,
}

/// The columns of a `remora.v1.Conversation`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Conversation {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(string, tag = "2")]
    pub(super) user_id: String,
    #[prost(string, tag = "3")]
    pub(super) resource_id: String,
    #[prost(string, tag = "4")]
    pub(super) title: String,
    #[prost(int32, optional, tag = "7")]
    pub(super) storage_limit: Option<i32>,
}

/// The columns of a `remora.v1.Message` as a caller sets it.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Message {
    #[prost(string, tag = "3")]
    pub(super) role: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "5")]
    pub(super) text: String,
    #[prost(message, optional, tag = "11")]
    pub(super) sent_time: Option<Timestamp>,
    #[prost(string, tag = "12")]
    pub(super) session_id: String,
}

/// The columns of a `remora.v1.Step`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Step {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(string, tag = "3")]
    pub(super) user_id: String,
    #[prost(string, tag = "6")]
    pub(super) operation_id: String,
    #[prost(int32, tag = "7")]
    pub(super) step_index: i32,
}
