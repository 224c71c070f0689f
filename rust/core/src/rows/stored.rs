//! The parts of stored messages that are columns of the database; what is kept whole stays encoded.

use remora_wire::Timestamp;

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
