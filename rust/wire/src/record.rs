//! Records of the journal.

use bytes::Bytes;
use prost::{DecodeError, Message as _};

use super::change::Kind;
use super::legacy::Legacy;

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
