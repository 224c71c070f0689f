//! One user's part of one conversation: what it holds, and the changes that wait for it.
//!
//! Writers only push to the inbox, under a lock that is held for a push or a take. Readers first drain: one at a time takes
//! the changes up to the published revision, reads and analyses them, and applies them under the write lock of the
//! content. A change that has been taken counts as waiting until it is applied, so that no reader overtakes it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use remora_kernels::Kernels;
use remora_lexical::Analyzer;
use remora_supervision::caught;
use remora_supervision::failpoints::{self, Point};

use super::account::Account;
use super::inbox::{Inbox, Later, Op};
use crate::content::{Content, Reading};
use crate::values::{ModelVector, Vector};

/// What a part costs besides its content, in bytes: itself, its entries in tables, empty tables of its own.
pub(crate) const PART_BYTES: usize = 1024;

pub(crate) struct Part {
    uid: u64,
    conversation_id: OnceLock<Box<str>>,
    /// Whether the content is complete; until then changes only gather.
    ready: AtomicBool,
    /// The newest revision that was delivered before changes began to gather: a load needs a store that holds it.
    since: u64,
    /// The sequence through which a load that goes on has filled it.
    loaded: AtomicU64,
    /// Callers that have begun to load it and have neither filled nor abandoned it; changed under the registry's lock.
    loaders: AtomicUsize,
    /// Whether a panic may have left half of a change in it.
    torn: AtomicBool,
    /// When it was last searched or loaded, on the clock of its owner.
    used: AtomicU64,
    inbox: Mutex<Inbox>,
    /// Changes that are not applied yet.
    waiting: AtomicUsize,
    /// Held by who takes changes and applies them.
    draining: Mutex<()>,
    content: RwLock<Content>,
    account: Account,
}

/// A message as the store holds it, with its vectors.
#[derive(Debug, Clone)]
pub struct StoredDocument {
    /// The encoded stored message.
    pub encoded: Bytes,
    /// Its vectors, one a model.
    pub vectors: Vec<Vector>,
    /// Whether one of them came from the caller, so that the server's model is not to embed it.
    pub own_vector: bool,
}

/// What the store holds of a part, or a chunk of that.
#[derive(Debug, Clone, Default)]
pub struct StoredDocuments {
    /// In the order of their sequences, from behind what was loaded before.
    pub documents: Vec<StoredDocument>,
    /// The sequence through which all are here; `None` if no more follow.
    pub through: Option<u64>,
}

/// How far the load of a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The revision that the store must hold before it is read.
    pub since: u64,
    /// The sequence through which the part is loaded; 0 if nothing is.
    pub loaded: u64,
}

impl Part {
    pub(crate) fn new(
        uid: u64,
        since: u64,
        ready: bool,
        kernels: &'static Kernels,
        account: Account,
    ) -> Self {
        let content = Content::new(kernels);
        account.add(content.bytes());
        Self {
            uid,
            conversation_id: OnceLock::new(),
            ready: AtomicBool::new(ready),
            since,
            loaded: AtomicU64::new(0),
            torn: AtomicBool::new(false),
            loaders: AtomicUsize::new(0),
            used: AtomicU64::new(0),
            inbox: Mutex::default(),
            waiting: AtomicUsize::new(0),
            draining: Mutex::default(),
            content: RwLock::new(content),
            account,
        }
    }

    pub(crate) fn uid(&self) -> u64 {
        self.uid
    }

    /// The conversation's id; empty until a message or the store has named it.
    pub(crate) fn conversation_id(&self) -> &str {
        self.conversation_id.get().map_or("", |id| id)
    }

    pub(crate) fn name_conversation(&self, id: &str) {
        self.conversation_id.get_or_init(|| id.into());
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// How far it is loaded, of which a load that goes on needs no more.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            since: self.since,
            loaded: self.loaded.load(Ordering::Acquire),
        }
    }

    /// Whether a load that ended early has left something here to go on with.
    pub(crate) fn is_partial(&self) -> bool {
        !self.is_ready() && !self.is_torn() && self.progress().loaded > 0
    }

    /// Declares that content and inbox hold all that the part ever held.
    pub(crate) fn settle(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Whether a panic may have left half of a change in it: then it must be loaded anew.
    pub(crate) fn is_torn(&self) -> bool {
        self.torn.load(Ordering::Acquire)
    }

    pub(crate) fn loaders(&self) -> usize {
        self.loaders.load(Ordering::Relaxed)
    }

    pub(crate) fn add_loader(&self) {
        self.loaders.fetch_add(1, Ordering::Relaxed);
    }

    /// One loader less; none stays none.
    pub(crate) fn end_loader(&self) {
        let fewer = |loaders: usize| loaders.checked_sub(1);
        let _ = self
            .loaders
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn touch(&self, now: u64) {
        self.used.fetch_max(now, Ordering::Relaxed);
    }

    /// Leaves a change for the next reader.
    pub(crate) fn push(&self, revision: u64, op: Op) {
        let mut inbox = self.inbox.lock();
        self.account.add(inbox.push(revision, op));
        self.waiting.fetch_add(1, Ordering::Release);
    }

    /// Applies the changes up to `published`; changes of a part that is not ready keep waiting.
    pub(crate) fn drain(&self, published: u64, analyzer: &Analyzer) {
        if !self.is_ready() || self.waiting.load(Ordering::Acquire) == 0 {
            return;
        }
        let _draining = self.draining.lock();
        let (ops, bytes) = self.inbox.lock().take_up_to(published);
        if ops.is_empty() {
            return;
        }
        let _whole = TornWherePanicked(&self.torn);
        let count = ops.len();
        let changes: Vec<_> = ops
            .into_iter()
            .filter_map(|(revision, op)| Change::prepare(revision, op, analyzer))
            .collect();
        self.change(|content| changes.into_iter().for_each(|change| change.apply(content)));
        self.account.subtract(bytes);
        self.waiting.fetch_sub(count, Ordering::Release);
    }

    /// Takes what the store holds from where the load is through a sequence, and then all changes that the store lacks,
    /// unless the part is ready already; it is once there is no such sequence.
    ///
    /// The store may be read anew for every chunk: a document that is older than what is there changes nothing, and what
    /// went since is removed by the changes that gather.
    pub(crate) fn fill(
        &self,
        conversation_id: &str,
        stored: StoredDocuments,
        later: Later,
        analyzer: &Analyzer,
    ) {
        let _draining = self.draining.lock();
        if self.is_ready() {
            return;
        }
        self.name_conversation(conversation_id);
        let through = stored.through;
        let stored = stored
            .documents
            .into_iter()
            .filter_map(|document| Change::read(document, analyzer));
        let later = later
            .into_ops()
            .filter_map(|(revision, op)| Change::prepare(revision, op, analyzer));
        let prepared: Vec<_> = stored.chain(later).collect();
        self.change(|content| {
            prepared
                .into_iter()
                .for_each(|change| change.apply(content));
        });
        match through {
            Some(sequence) => {
                self.loaded.fetch_max(sequence, Ordering::AcqRel);
            }
            None => self.settle(),
        }
    }

    /// The memory that it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.account.bytes()
    }

    /// Whether it holds nothing and nothing waits for it; false if that cannot be seen at once. Changes are pushed
    /// under the registry's lock, so that it stays so for as long as the caller holds that.
    pub(crate) fn is_spent(&self) -> bool {
        let nothing_waits = self.waiting.load(Ordering::Acquire) == 0;
        nothing_waits
            && self
                .content
                .try_read()
                .is_some_and(|content| content.is_empty())
    }

    /// The content, for as long as the guard lives. Who holds several takes them in ascending (uid, user) order: a
    /// waiting writer holds up new readers.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Content> {
        self.content.read()
    }

    fn change(&self, apply: impl FnOnce(&mut Content)) {
        let mut content = self.content.write();
        let before = content.bytes();
        let _whole = TornWherePanicked(&self.torn);
        apply(&mut content);
        self.account.add(content.bytes());
        self.account.subtract(before);
    }
}

/// Says that a part is torn where it is dropped by a panic.
struct TornWherePanicked<'a>(&'a AtomicBool);

impl Drop for TornWherePanicked<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Release);
        }
    }
}

/// A change that has been read and analysed.
enum Change {
    Put {
        reading: Reading,
        vectors: Vec<ModelVector>,
        own_vector: bool,
    },
    Remove {
        sequences: Box<[u64]>,
        revision: u64,
    },
    RemoveAll {
        revision: u64,
    },
    Embed {
        sequence: u64,
        message_revision: u64,
        vector: ModelVector,
    },
}

impl Change {
    /// As `stored`; `None` also for a text that reading panics with: no search finds it, and all find the others.
    fn read(document: StoredDocument, analyzer: &Analyzer) -> Option<Self> {
        caught(|| Self::stored(document, analyzer)).ok().flatten()
    }

    /// `None` for what cannot be read, which no search could find.
    fn prepare(revision: u64, op: Op, analyzer: &Analyzer) -> Option<Self> {
        Some(match op {
            Op::Put { encoded, vector } => Self::Put {
                reading: Reading::of(encoded, analyzer)?,
                own_vector: vector.is_some(),
                vectors: vector.and_then(Vector::parsed).into_iter().collect(),
            },
            Op::Remove { sequences } => Self::Remove {
                sequences,
                revision,
            },
            Op::RemoveAll => Self::RemoveAll { revision },
            Op::Embed {
                sequence,
                message_revision,
                vector,
            } => Self::Embed {
                sequence,
                message_revision,
                vector: vector.parsed()?,
            },
        })
    }

    fn stored(document: StoredDocument, analyzer: &Analyzer) -> Option<Self> {
        Some(Self::Put {
            reading: Reading::of(document.encoded, analyzer)?,
            vectors: document
                .vectors
                .into_iter()
                .filter_map(Vector::parsed)
                .collect(),
            own_vector: document.own_vector,
        })
    }

    fn apply(self, content: &mut Content) {
        failpoints::hit(Point::RecallDraining);
        match self {
            Self::Put {
                reading,
                vectors,
                own_vector,
            } => {
                let (sequence, revision) = (reading.sequence, reading.revision);
                content.put(reading, !own_vector);
                for vector in vectors {
                    content.embed(sequence, revision, vector);
                }
            }
            Self::Remove {
                sequences,
                revision,
            } => content.remove(&sequences, revision),
            Self::RemoveAll { revision } => content.remove_all(revision),
            Self::Embed {
                sequence,
                message_revision,
                vector,
            } => content.embed(sequence, message_revision, vector),
        }
    }
}
