//! Loading: conversations that come back from the database.

use std::sync::Arc;

use bytes::Bytes;
use remora_fingerprint::Fingerprint;
use remora_supervision::failpoints::{self, Point};

use super::Windows;
use super::change::Run;
use super::conversation::Conversation;
use super::head::Head;
use super::incarnation::Incarnation;
use super::messages::NewMessage;
use super::shard::Admission;

/// What the database holds of one message, but for its body.
#[derive(Clone, Debug)]
pub struct LoadedMessage<'a> {
    pub sequence: u64,
    /// The revision that last wrote it.
    pub revision: u64,
    pub user: &'a str,
    pub id: &'a str,
    pub role: &'a str,
    pub create_time: i64,
    /// By the caller's clock; the create time where it says none.
    pub sent_time: i64,
    pub token_count: i32,
}

/// A conversation as the database holds it. Without a head it is known not to be there.
#[derive(Debug, Default)]
pub struct StoredConversation<'a> {
    pub head: Option<Head>,
    /// All of its messages, ascending.
    pub messages: &'a [LoadedMessage<'a>],
    /// Those of the newest of them, as they are served.
    pub bodies: Vec<Bytes>,
}

/// There are more bodies than messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bodies} bodies for {messages} messages")]
pub struct UnknownBodies {
    pub bodies: usize,
    pub messages: usize,
}

/// A conversation that memory may take in: see [`Windows::admit`].
#[must_use]
pub(crate) struct Loaded {
    key: Fingerprint,
    as_of: u64,
    exists: bool,
    conversation: Arc<Conversation>,
    bytes: isize,
    /// The last revision of what the database lacks.
    unapplied: Option<u64>,
}

impl Windows {
    /// Makes of what the database has of a conversation, and of the changes that it lacks, in the order of revisions, what
    /// memory may take in. Nothing in memory is changed.
    ///
    /// `as_of` is a revision up to which the two hold everything: what had been applied when the database was asked, and
    /// what was published when `later` was read.
    pub(crate) fn load(
        &self,
        tenant: &str,
        id: &str,
        as_of: u64,
        stored: StoredConversation<'_>,
        later: &[(u64, Run)],
    ) -> Result<Loaded, UnknownBodies> {
        let exists = stored.head.is_some() || !later.is_empty();
        let incarnation = self.incarnation(stored)?;
        failpoints::hit(Point::WindowsReading);
        let conversation = Arc::new(Conversation::new(as_of));
        let bytes = conversation.change(|state| {
            state.load(incarnation);
            for (revision, run) in later {
                for change in &run.changes {
                    state.apply(change, *revision);
                }
            }
            state.forget_heads(as_of);
        });
        Ok(Loaded {
            key: self.key(tenant, id),
            as_of,
            exists,
            conversation,
            bytes,
            unapplied: later.last().map(|(revision, _)| *revision),
        })
    }

    /// Makes a conversation resident. False if it changed since it was loaded, so that the database must be asked again. A
    /// conversation that is resident already stays as it is.
    pub(crate) fn admit(&self, loaded: Loaded) -> bool {
        let Loaded {
            key,
            as_of,
            exists,
            conversation,
            bytes,
            unapplied,
        } = loaded;
        self.use_now(&conversation);
        let mut shard = self.shard(key).lock();
        if exists {
            shard.know(key);
        }
        let admission = shard.admit(key, as_of, Arc::clone(&conversation));
        failpoints::hit(Point::WindowsLoading);
        drop(shard);
        if admission == Admission::Admitted {
            self.count(bytes);
            if let Some(revision) = unapplied {
                self.add_unapplied(revision, conversation);
            }
            let _upkeep = self.upkeep.lock();
            self.evict();
        }
        admission != Admission::Stale
    }

    fn incarnation(
        &self,
        stored: StoredConversation<'_>,
    ) -> Result<Option<Incarnation>, UnknownBodies> {
        let StoredConversation {
            head,
            messages,
            bodies,
        } = stored;
        let Some(head) = head else {
            return Ok(None);
        };
        let unknown = UnknownBodies {
            bodies: bodies.len(),
            messages: messages.len(),
        };
        let bodiless = messages.len().checked_sub(bodies.len()).ok_or(unknown)?;
        let absent = std::iter::repeat_n(None, bodiless);
        let bodies = absent.chain(bodies.into_iter().map(Some));
        let mut incarnation = Incarnation::new(head.uid, 0, Some(Arc::new(head)));
        for (message, body) in messages.iter().zip(bodies) {
            let fingerprint = self.fingerprints().of([message.user, message.id]);
            let loaded = new_message(message, fingerprint, body);
            incarnation.messages.load(loaded, message.revision);
        }
        incarnation.settle(u64::MAX, 0, &self.bounds);
        Ok(Some(incarnation))
    }
}

fn new_message<'a>(
    message: &LoadedMessage<'a>,
    id: Fingerprint,
    body: Option<Bytes>,
) -> NewMessage<'a> {
    NewMessage {
        sequence: message.sequence,
        id,
        user: message.user,
        role: message.role,
        create_time: message.create_time,
        sent_time: message.sent_time,
        token_count: message.token_count,
        may_use_tools: true, // most come without the body that would tell
        body,
    }
}
