//! The parts of records, messages and conversations that the engine reads, and messages as they are stored and served.
//!
//! The structs name the fields of `record.proto`, `message.proto` and `conversation.proto` that matter here; all others are
//! skipped when they are read. Times are microseconds since 1970, UTC.
//!
//! Knows no other crate.

mod change;
mod entries;
mod legacy;
mod message;
mod record;
mod records;
mod store_item;
mod stored;
#[cfg(test)]
mod tests;
mod times;

pub use change::{
    DeleteConversation, Kind, PutConversation, PutEmbedding, PutHead, PutMessage, RemoveMessages,
};
pub use entries::{Entries, Limits, entries_len, put_entries, read_apart};
pub use legacy::{DeleteWorkingMemory, Legacy, PutStep, PutWorkingMemory, RemoveSteps};
pub use message::{
    CallerMessage, Conversation, FilteredMessage, Message, Scalar, ScalarKind, Vector, VectorText,
};
pub use record::{Change, Record};
pub use records::{
    Extent, PutRecord, RemoveRecords, RemoveUserRecords, SetExpiry, Value, ValueKind,
};
pub use store_item::{ItemVector, StoreItem, StoreItemIndex};
pub use stored::StoredDraft;
pub use times::{Between, Duration, Timestamp};
