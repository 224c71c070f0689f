//! Messages as they are stored and served.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message as _;

use super::change::PutMessage;
use super::times::Timestamp;

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
