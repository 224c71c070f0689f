//! The changes of a part.

use bytes::Bytes;
use remora_parts::Change;

/// One change of a part.
#[derive(Debug, Clone)]
pub enum Op {
    /// A vector is added or replaced: its key and its encoded stored form.
    Put { key: Bytes, body: Bytes },
    /// The vector with this key goes.
    Remove { key: Bytes },
    /// All vectors go.
    RemoveAll,
}

impl Change for Op {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Put { key, body } => key.len() + body.len(),
            Self::Remove { key } => key.len(),
            Self::RemoveAll => 0,
        }
    }
}
