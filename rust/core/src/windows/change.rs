//! Changes as the engine applies them: taken from a record, checked, and prepared so that applying them cannot fail.

use bytes::Bytes;
use remora_fingerprint::Fingerprint;
use remora_wire::StoredDraft;

/// Consecutive changes of one conversation.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) key: Fingerprint,
    pub(crate) conversation_id: String,
    pub(crate) changes: Vec<Change>,
}

/// One change of a conversation. A `uid` of 0 stands for the revision of the record until it is sealed.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) uid: u64,
    pub(crate) kind: ChangeKind,
}

#[derive(Debug)]
pub(crate) enum ChangeKind {
    Put(PutRow),
    Head(Counters),
    Delete,
    Message(Box<PutMessage>),
    Remove { user: String, sequences: Vec<u64> },
    RemoveAll { user: String },
    Embed(Embed),
}

/// A conversation's row.
#[derive(Debug)]
pub(crate) struct PutRow {
    pub(crate) user: String,
    pub(crate) body: Bytes,
    pub(crate) create_time: i64,
}

/// A conversation's counters.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) last_sequence: u64,
    pub(crate) message_count: i64,
    pub(crate) last_time: i64,
    pub(crate) update_time: i64,
}

#[derive(Debug)]
pub(crate) struct PutMessage {
    pub(crate) user: String,
    pub(crate) id: Fingerprint,
    pub(crate) role: String,
    pub(crate) sequence: u64,
    pub(crate) create_time: i64,
    /// By the caller's clock; the create time where it says none.
    pub(crate) sent_time: i64,
    pub(crate) token_count: i32,
    /// Whether it calls a tool or answers a call.
    pub(crate) uses_tools: bool,
    pub(crate) stored: Stored,
    /// Model and values of the caller's embedding.
    pub(crate) embedding: Option<(String, Bytes)>,
}

/// A message as it is served: complete once the revision is known.
#[derive(Debug)]
pub(crate) enum Stored {
    Draft(StoredDraft),
    Sealed(Bytes),
}

#[derive(Debug)]
pub(crate) struct Embed {
    pub(crate) user: String,
    pub(crate) sequence: u64,
    pub(crate) message_revision: u64,
    pub(crate) model: String,
    pub(crate) values: Bytes,
    /// The text's word pieces; empty if they were not made.
    pub(crate) pieces: Bytes,
}

impl Run {
    /// Whether it creates the conversation: a row whose uid is the revision of its record.
    pub(super) fn creates(&self, revision: u64) -> bool {
        self.changes
            .iter()
            .any(|change| change.uid == revision && matches!(change.kind, ChangeKind::Put(_)))
    }

    /// Whether it changes what windows hold.
    pub(super) fn touches_window(&self) -> bool {
        let in_index_only = |change: &Change| matches!(change.kind, ChangeKind::Embed(_));
        !self.changes.iter().all(in_index_only)
    }

    /// Completes the changes with the revision of their record.
    pub(crate) fn seal(&mut self, revision: u64) {
        for change in &mut self.changes {
            if change.uid == 0 {
                change.uid = revision;
            }
            if let ChangeKind::Message(message) = &mut change.kind {
                message.stored.seal(revision);
            }
        }
    }
}

impl Stored {
    fn seal(&mut self, revision: u64) {
        if let Self::Draft(draft) = self {
            *self = Self::Sealed(draft.seal(revision));
        }
    }

    /// The sealed message; empty before.
    pub(crate) fn encoded(&self) -> Bytes {
        match self {
            Self::Draft(_) => Bytes::new(),
            Self::Sealed(encoded) => encoded.clone(),
        }
    }
}
