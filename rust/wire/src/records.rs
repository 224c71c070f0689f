//! The changes of records by key, as `record.proto` has them.

use bytes::Bytes;

/// One typed value of a column; without a kind it is null.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Value {
    #[prost(oneof = "ValueKind", tags = "1, 2, 3, 4, 5")]
    pub kind: Option<ValueKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ValueKind {
    #[prost(bool, tag = "1")]
    Boolean(bool),
    #[prost(sint64, tag = "2")]
    Integer(i64),
    #[prost(double, tag = "3")]
    Number(f64),
    #[prost(string, tag = "4")]
    Text(String),
    #[prost(bytes = "bytes", tag = "5")]
    Data(Bytes),
}

/// A record in its place.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PutRecord {
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    #[prost(uint64, tag = "2")]
    pub conversation_uid: u64,
    #[prost(bytes = "bytes", tag = "3")]
    pub partition: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub key: Bytes,
    #[prost(string, tag = "5")]
    pub user_id: String,
    #[prost(message, repeated, tag = "6")]
    pub columns: Vec<Value>,
    #[prost(int64, optional, tag = "7")]
    pub expire_time: Option<i64>,
    #[prost(bytes = "bytes", tag = "8")]
    pub body: Bytes,
    #[prost(bool, tag = "9")]
    pub replaces: bool,
    #[prost(string, tag = "10")]
    pub upload_id: String,
}

/// What a `RemoveRecords` removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum Extent {
    Unspecified = 0,
    /// The record with this partition and key.
    Record = 1,
    /// All records of this partition.
    Partition = 2,
    /// All records of every partition that begins with these bytes.
    Prefix = 3,
}

/// Records that go.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RemoveRecords {
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    #[prost(uint64, tag = "2")]
    pub conversation_uid: u64,
    #[prost(enumeration = "Extent", tag = "3")]
    pub extent: i32,
    #[prost(bytes = "bytes", tag = "4")]
    pub partition: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub key: Bytes,
}

/// A user's records that go.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RemoveUserRecords {
    #[prost(string, tag = "1")]
    pub user_id: String,
    #[prost(uint32, repeated, tag = "2")]
    pub kinds: Vec<u32>,
}

/// Another expire time of a record; of one with another revision it changes nothing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SetExpiry {
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    #[prost(uint64, tag = "2")]
    pub conversation_uid: u64,
    #[prost(bytes = "bytes", tag = "3")]
    pub partition: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub key: Bytes,
    #[prost(uint64, tag = "5")]
    pub record_revision: u64,
    #[prost(int64, optional, tag = "6")]
    pub expire_time: Option<i64>,
}
