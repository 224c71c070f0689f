//! Items of the store.

use bytes::Bytes;

use super::times::{Duration, Timestamp};

/// A stored `remora.v1.StoreItem` without its vectors: what replies have of it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StoreItem {
    #[prost(string, repeated, tag = "1")]
    pub namespace: Vec<String>,
    #[prost(string, tag = "2")]
    pub key: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub value: Bytes,
    #[prost(string, tag = "4")]
    pub user_id: String,
    #[prost(message, optional, tag = "5")]
    pub ttl: Option<Duration>,
    #[prost(message, optional, tag = "6")]
    pub expire_time: Option<Timestamp>,
    #[prost(message, optional, tag = "7")]
    pub create_time: Option<Timestamp>,
    #[prost(message, optional, tag = "8")]
    pub update_time: Option<Timestamp>,
    #[prost(uint64, tag = "9")]
    pub revision: u64,
}

/// What an item is found by: the rest of a stored `remora.v1.StoreItem`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StoreItemIndex {
    #[prost(bytes = "bytes", tag = "3")]
    pub value: Bytes,
    #[prost(string, tag = "4")]
    pub user_id: String,
    #[prost(message, optional, tag = "7")]
    pub create_time: Option<Timestamp>,
    #[prost(message, optional, tag = "8")]
    pub update_time: Option<Timestamp>,
    #[prost(message, repeated, tag = "15")]
    pub vectors: Vec<ItemVector>,
}

/// A vector of an item. The values are a part of what is read.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ItemVector {
    #[prost(bytes = "bytes", tag = "2")]
    pub values: Bytes,
    #[prost(string, tag = "4")]
    pub model: String,
}
