//! Recall: the messages of active users in memory, found by vectors and words.
//!
//! Messages are partitioned by tenant and user, and then by conversation: the messages that one user has in one conversation
//! are a *part*. The scope of a search is one part, all parts of a user, or all parts of a tenant. Changes are delivered in
//! the order of revisions and never wait for a search: each part has an inbox, which the next search drains up to the
//! published revision. Parts are loaded on demand (`loading`) and evicted by bytes (`eviction`).
//!
//! Locks, in the order in which they are taken: the registry (lookups only), a part's draining, its content, its inbox.
//! The registry is never asked for under any of the others.
//!
//! Knows: `filter`, `index`, `kernels`, `late`, `lexical`, `supervision`, `wire`. It must not know the journal, the
//! database or the encoder.

mod content;
mod memory;
mod rules;
mod scoring;
mod search;
#[cfg(test)]
mod tests;
mod text;
mod values;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use remora_kernels::Kernels;
use remora_lexical::Analyzer;

pub use memory::{Later, Op, Progress, Scope, StoredDocument, StoredDocuments};
pub use scoring::Component;
pub use search::{Background, Filter, Found, FoundMessage, Search};
pub use text::names::Names;
pub use values::{Profile, UnknownProfile, Vector, Weights};

use memory::Registry;
use scoring::Buffers;

/// How long a part is not evicted after a use: longer than the time from the end of a load to its search.
const GRACE: Duration = Duration::from_secs(1);

/// The messages of active users. Shared between threads by reference.
pub struct Recall {
    analyzer: Analyzer,
    kernels: &'static Kernels,
    budget: usize,
    grace: Duration,
    start: Instant,
    total: Arc<AtomicUsize>,
    registry: Mutex<Registry>,
    buffers: Buffers,
}

/// The name of a part.
#[derive(Debug, Clone, Copy)]
pub struct PartKey<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The user.
    pub user: &'a str,
    /// The conversation's uid.
    pub uid: u64,
}

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Parts in memory.
    pub parts: usize,
    /// An estimate of their memory, in bytes.
    pub bytes: usize,
}

impl Recall {
    /// Nothing in memory yet; more than `budget` bytes are held only for what is in use.
    pub fn new(kernels: &'static Kernels, budget: usize) -> Self {
        Self::with_grace(kernels, budget, GRACE)
    }

    fn with_grace(kernels: &'static Kernels, budget: usize, grace: Duration) -> Self {
        let total = Arc::new(AtomicUsize::new(0));
        Self {
            analyzer: Analyzer::new(),
            kernels,
            budget,
            grace,
            start: Instant::now(),
            registry: Mutex::new(Registry::new(kernels, Arc::clone(&total))),
            total,
            buffers: Buffers::default(),
        }
    }

    /// Takes in a change of a part. Changes are delivered in ascending order of revisions, by one caller at a time.
    pub fn deliver(&self, key: PartKey<'_>, conversation_id: &str, op: Op, revision: u64) {
        let mut registry = self.registry.lock();
        registry.revision = registry.revision.max(revision);
        let Some(part) = registry.receiver(key.tenant, key.user, key.uid) else {
            return;
        };
        part.name_conversation(conversation_id);
        part.push(revision, op);
        drop(registry);
        self.evict_idle(key.tenant, key.user, &part);
    }

    /// All messages of the conversation go.
    pub fn drop_conversation(&self, tenant: &str, uid: u64, revision: u64) {
        let mut registry = self.registry.lock();
        registry.revision = registry.revision.max(revision);
        for part in registry.receivers(tenant, uid) {
            part.push(revision, Op::RemoveAll);
        }
    }

    /// The highest revision delivered, kept in memory or not: what a load that began before must find in the store.
    pub fn revision(&self) -> u64 {
        self.registry.lock().revision
    }

    /// What is held.
    pub fn statistics(&self) -> Statistics {
        let registry = self.registry.lock();
        let parts = registry.users().map(|(_, user)| user.parts.len()).sum();
        Statistics {
            parts,
            bytes: self.bytes(),
        }
    }

    /// Microseconds since this was made.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
