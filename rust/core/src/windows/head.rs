//! A conversation's head: its row and its counters.

use std::sync::Arc;

use bytes::Bytes;
use prost::{DecodeError, Message as _};
use remora_wire::Conversation;

use super::change::{Counters, PutRow};

/// A conversation as it is after one record. Times in microseconds since 1970, UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The revision that created it.
    pub uid: u64,
    /// The owner.
    pub user_id: Arc<str>,
    /// An encoded `remora.v1.Conversation` with the fields that a caller sets.
    pub body: Bytes,
    pub create_time: i64,
    /// The newest sequence ever given.
    pub last_sequence: u64,
    /// How many messages it holds.
    pub message_count: i64,
    /// The create time of the newest message ever appended; 0 if there was none.
    pub last_time: i64,
    pub update_time: i64,
    /// The revision that last touched it.
    pub revision: u64,
}

impl Head {
    /// The head of a conversation that is created.
    pub(super) fn new(uid: u64, row: &PutRow, revision: u64) -> Self {
        Self {
            uid,
            user_id: row.user.as_str().into(),
            body: row.body.clone(),
            create_time: row.create_time,
            last_sequence: 0,
            message_count: 0,
            last_time: 0,
            update_time: row.create_time,
            revision,
        }
    }

    /// How many messages it may hold, as its row says.
    pub fn storage_limit(&self) -> Result<Option<i32>, DecodeError> {
        Ok(Conversation::decode(self.body.clone())?.storage_limit)
    }

    /// Whether its window has a policy, as its row says.
    pub fn has_short_term(&self) -> Result<bool, DecodeError> {
        Ok(Conversation::decode(self.body.clone())?
            .short_term
            .is_some())
    }

    pub(super) fn with_row(&self, row: &PutRow, revision: u64) -> Self {
        Self {
            body: row.body.clone(),
            revision,
            ..self.clone()
        }
    }

    pub(super) fn with_counters(&self, counters: &Counters, revision: u64) -> Self {
        Self {
            last_sequence: counters.last_sequence,
            message_count: counters.message_count,
            last_time: counters.last_time,
            update_time: counters.update_time,
            revision,
            ..self.clone()
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.user_id.len() + self.body.len()
    }
}
