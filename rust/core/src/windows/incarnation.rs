//! One conversation from its creation to its deletion. An id that is deleted and created again is another.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Bounds;
use super::change::{Change, ChangeKind, PutMessage};
use super::head::Head;
use super::messages::{Messages, NewMessage};

/// The head from a revision on; `None`: the conversation is deleted.
struct Version {
    begin: u64,
    head: Option<Arc<Head>>,
}

/// Never without a version; the last is the accepted one.
pub(super) struct Incarnation {
    uid: u64,
    versions: VecDeque<Version>,
    pub(super) messages: Messages,
}

impl Incarnation {
    pub(super) fn new(uid: u64, begin: u64, head: Option<Arc<Head>>) -> Self {
        Self {
            uid,
            versions: VecDeque::from([Version { begin, head }]),
            messages: Messages::default(),
        }
    }

    /// The accepted head.
    pub(super) fn head(&self) -> Option<&Arc<Head>> {
        self.versions.back()?.head.as_ref()
    }

    /// What a reader sees: nothing yet, or the head of a version, or that it is deleted.
    pub(super) fn head_at(&self, published: u64) -> Option<Option<&Arc<Head>>> {
        let seen = |version: &&Version| version.begin <= published;
        let version = self.versions.iter().rev().find(seen)?;
        Some(version.head.as_ref())
    }

    pub(super) fn uid(&self) -> u64 {
        self.uid
    }

    /// Applies a change; one that comes after the end has no effect.
    pub(super) fn apply(&mut self, change: &Change, revision: u64) {
        let Some(head) = self.head().cloned() else {
            return;
        };
        match &change.kind {
            ChangeKind::Put(row) => self.push(revision, Some(head.with_row(row, revision))),
            ChangeKind::Head(counters) => {
                self.push(revision, Some(head.with_counters(counters, revision)));
            }
            ChangeKind::Delete => self.push(revision, None),
            ChangeKind::Message(message) => self.messages.put(new_message(message), revision),
            ChangeKind::Remove { sequences, .. } => {
                for sequence in sequences {
                    self.messages.remove(*sequence, revision);
                }
            }
            ChangeKind::RemoveAll { user } => self.messages.remove_all(user, revision),
            ChangeKind::Embed(_) => {}
        }
    }

    fn push(&mut self, begin: u64, head: Option<Head>) {
        let head = head.map(Arc::new);
        match self.versions.back_mut() {
            Some(last) if last.begin == begin => last.head = head,
            _ => self.versions.push_back(Version { begin, head }),
        }
    }

    /// Drops what no reader sees any more, and what the database has by now.
    pub(super) fn settle(&mut self, applied: u64, published: u64, bounds: &Bounds) {
        self.forget_heads(published);
        if self.head_at(published) == Some(None) {
            self.messages = Messages::default();
        }
        self.messages.settle(applied, published, bounds);
    }

    pub(super) fn forget_heads(&mut self, published: u64) {
        while let Some(next) = self.versions.get(1)
            && next.begin <= published
        {
            self.versions.pop_front();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let heads = self.versions.iter().filter_map(|v| v.head.as_deref());
        size_of::<Self>() + heads.map(Head::bytes).sum::<usize>() + self.messages.bytes()
    }
}

fn new_message(message: &PutMessage) -> NewMessage<'_> {
    NewMessage {
        sequence: message.sequence,
        id: message.id,
        user: &message.user,
        role: &message.role,
        create_time: message.create_time,
        sent_time: message.sent_time,
        token_count: message.token_count,
        may_use_tools: message.uses_tools,
        body: Some(message.stored.encoded()),
    }
}
