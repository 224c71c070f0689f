//! The parts that searches hold in memory: loads on demand, changes that wait, eviction by bytes.
//!
//! A part has all records of a partition, or of a tenant. Changes are delivered in the order of revisions and never wait
//! for a search: each part has an inbox, which the next search drains up to the revision that is published. Parts are
//! loaded on demand and evicted by bytes, the least recently used first. They are derived from the store: a part that is
//! dropped, also because of a panic within a change, is loaded again.
//!
//! Locks, in the order in which they are taken: the registry (lookups only), a part's content, its inbox. The registry is
//! never asked for under any of the others.
//!
//! Knows: `supervision`. It must not know the content of a part.

mod inbox;
mod name;
mod part;
mod registry;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use remora_supervision::caught;

pub use inbox::Change;
pub use name::Name;
pub use part::Content;

use part::Part;
use registry::Registry;

/// Parts in memory. Shared between threads by reference.
pub struct Parts<C: Content> {
    budget: usize,
    clock: AtomicU64,
    total: Arc<AtomicUsize>,
    registry: Mutex<Registry<C>>,
}

/// The part is not in memory: it is to be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cold;

/// What was found, and the revision that this shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown<T> {
    pub found: T,
    pub revision: u64,
}

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Parts in memory.
    pub parts: usize,
    /// An estimate of their memory, in bytes.
    pub bytes: usize,
}

impl<C: Content> Parts<C> {
    /// Nothing in memory yet; more than `budget` bytes are held only for the part that was used last, and for loads.
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            clock: AtomicU64::new(0),
            total: Arc::default(),
            registry: Mutex::default(),
        }
    }

    /// Takes in a change of a part. Changes are delivered in ascending order of revisions, by one caller at a time.
    pub fn deliver(&self, name: &Name<'_>, change: C::Change, revision: u64) {
        self.push(name, change, Some(revision));
    }

    /// Takes in a change that has no revision: it follows all that wait.
    pub fn deliver_behind(&self, name: &Name<'_>, change: C::Change) {
        self.push(name, change, None);
    }

    fn push(&self, name: &Name<'_>, change: C::Change, revision: Option<u64>) {
        let mut registry = self.registry.lock();
        if let Some(part) = registry.find(name).cloned() {
            registry.push(&part, revision, change);
        }
    }

    /// Takes in a change of each part whose partition begins so.
    pub fn deliver_prefix(&self, prefix: &Name<'_>, change: impl Fn() -> C::Change, revision: u64) {
        let mut registry = self.registry.lock();
        let parts: Vec<_> = registry.beginning_with(prefix).cloned().collect();
        for part in &parts {
            registry.push(part, Some(revision), change());
        }
    }

    /// Takes in a change of each part of a user.
    pub fn deliver_user(
        &self,
        (kind, tenant, user): (u32, &str, &str),
        change: impl Fn() -> C::Change,
        revision: u64,
    ) {
        let mut registry = self.registry.lock();
        let parts: Vec<_> = registry.of_user(kind, tenant, user).cloned().collect();
        for part in &parts {
            registry.push(part, Some(revision), change());
        }
    }

    /// Begins a load of a part, which belongs to a user: from now on it takes in changes. The database must then hold
    /// what was delivered before, be read, and the load be filled and finished; otherwise it is abandoned.
    pub fn begin(&self, name: &Name<'_>, user: &str, empty: C) -> Load<C> {
        let total = Arc::clone(&self.total);
        let part = Arc::new(Part::new(name, user, empty, self.tick(), total));
        self.registry.lock().put(name, Arc::clone(&part));
        Load(part)
    }

    /// Reads a part. `published` is asked first.
    pub fn read<T>(
        &self,
        name: &Name<'_>,
        published: impl FnOnce() -> u64,
        read: impl FnOnce(&C) -> T,
    ) -> Result<Shown<T>, Cold> {
        // Asked before the part: its inbox has every change that was published by then, also if it is evicted meanwhile.
        let published = published();
        let part = self.registry.lock().find(name).cloned().ok_or(Cold)?;
        part.use_at(self.tick());
        let (found, revision) = part.read(published, read)?;
        Ok(Shown { found, revision })
    }

    /// Takes in what waits in the inboxes up to a revision, so that they stay short, and evicts what is too much. A part
    /// where that panics is loaded again by its next reader.
    pub fn settle(&self, published: u64) {
        let waiting = self.registry.lock().take_waiting();
        for part in waiting {
            // Half of the change is never shown, because the part is not whole.
            let _ = caught(|| part.settle(published));
        }
        if self.counted() > self.budget {
            // What it did not come to stays until the next time.
            let _ = caught(|| self.evict());
        }
    }

    /// The bytes that are held, as they were when each part was last looked at.
    pub fn counted(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// What is held.
    pub fn statistics(&self) -> Statistics {
        let registry = self.registry.lock();
        Statistics {
            parts: registry.parts().count(),
            bytes: registry.parts().map(|part| part.bytes()).sum(),
        }
    }

    /// Evicts until the budget is kept, or only the part that was used last is left. What is loaded stays.
    pub fn evict(&self) {
        let evicted = self.registry.lock().evict(self.budget);
        // What is freed may be large.
        drop(evicted);
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A load of a part, which is abandoned unless it is finished.
pub struct Load<C: Content>(Arc<Part<C>>);

impl<C: Content> Load<C> {
    /// Takes in what the database has.
    pub fn fill(&self, rows: impl Iterator<Item = C::Change>) {
        self.0.fill(rows);
    }

    /// The memory that the part takes so far.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Says that the part has everything that the database has.
    pub fn finish(self) {
        self.0.finish();
    }
}
