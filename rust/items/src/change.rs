//! The changes of a tenant's items.

use bytes::Bytes;
use remora_parts::Change;

/// An item that is added or replaced.
#[derive(Debug, Clone)]
pub struct Put {
    /// The encoded namespace.
    pub namespace: Bytes,
    pub key: Bytes,
    /// Its encoded stored form.
    pub body: Bytes,
    pub revision: u64,
    pub expire_time: Option<i64>,
}

/// One change of a tenant's items.
#[derive(Debug, Clone)]
pub enum Op {
    Put(Put),
    /// The item with this key goes.
    Remove {
        namespace: Bytes,
        key: Bytes,
    },
    /// All items of this namespace go.
    RemoveNamespace {
        namespace: Bytes,
    },
    /// All items go whose encoded namespace begins so.
    RemovePrefix {
        prefix: Bytes,
    },
    /// All items of a user go.
    RemoveUser {
        user: String,
    },
    /// The item of a revision gets another expire time.
    Expire {
        namespace: Bytes,
        key: Bytes,
        revision: u64,
        expire_time: Option<i64>,
    },
}

impl Change for Op {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Put(put) => put.namespace.len() + put.key.len() + put.body.len(),
            Self::Remove { namespace, key } | Self::Expire { namespace, key, .. } => {
                namespace.len() + key.len()
            }
            Self::RemoveNamespace { namespace: bytes } | Self::RemovePrefix { prefix: bytes } => {
                bytes.len()
            }
            Self::RemoveUser { user } => user.len(),
        }
    }
}
