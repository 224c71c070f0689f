//! Conversations and messages.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::times::Timestamp;

/// What the engine reads of a `remora.v1.Conversation`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Conversation {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub user_id: String,
    #[prost(int32, optional, tag = "7")]
    pub storage_limit: Option<i32>,
    /// The policy of its window, of which only its being there matters here.
    #[prost(message, optional, tag = "15")]
    pub short_term: Option<()>,
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

/// What a filter reads of a stored `remora.v1.Message`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FilteredMessage {
    #[prost(btree_map = "string, message", tag = "8")]
    pub attributes: BTreeMap<String, Scalar>,
    #[prost(uint64, tag = "15")]
    pub sequence: u64,
}

/// What the engine reads of a stored `remora.v1.Vector`. The values are a part of what is read.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Vector {
    #[prost(bytes = "bytes", tag = "4")]
    pub values: Bytes,
    #[prost(btree_map = "string, message", tag = "7")]
    pub attributes: BTreeMap<String, Scalar>,
}

/// The text of a stored `remora.v1.Vector` or `remora.v1.MemoryItem`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VectorText {
    #[prost(string, tag = "5")]
    pub text: String,
}

/// What windows hold of a message as its caller sets it, and what else is checked before it is stored. The text is not
/// copied: whoever reads it checks that it is UTF-8.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CallerMessage {
    #[prost(string, tag = "3")]
    pub role: String,
    #[prost(string, tag = "4")]
    pub name: String,
    #[prost(bytes = "bytes", tag = "5")]
    pub text: Bytes,
    #[prost(btree_map = "string, message", tag = "8")]
    pub attributes: BTreeMap<String, Scalar>,
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub tool_calls: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "10")]
    pub tool_result_ids: Vec<Bytes>,
    #[prost(message, optional, tag = "11")]
    pub sent_time: Option<Timestamp>,
    #[prost(string, tag = "12")]
    pub session_id: String,
}

impl CallerMessage {
    /// Whether it calls a tool or answers a call.
    pub fn uses_tools(&self) -> bool {
        !self.tool_calls.is_empty() || !self.tool_result_ids.is_empty()
    }
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
