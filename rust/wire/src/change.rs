//! The changes that a record may hold.

use bytes::Bytes;

use super::records::{PutRecord, RemoveRecords, RemoveUserRecords, SetExpiry};

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
    /// The text's word pieces for late interaction; `None` if they were not made.
    #[prost(bytes = "bytes", optional, tag = "9")]
    pub pieces: Option<Bytes>,
}
