//! The vectors of collections: exact search by cosine, among those whose attributes pass a filter.
//!
//! A *part* is one partition of records. Changes are delivered in the order of revisions and never wait for a search:
//! each part has an inbox, which the next search drains up to the revision that is published. Parts are loaded on demand
//! and evicted by bytes, the least recently used first. They are derived from the store: one that is dropped, be it by a
//! panic within a change, is loaded again.
//!
//! A search compares codes of int8 first. Each row knows how far its code is from it, so that what the codes say bounds
//! the cosine from both sides; only rows that may be among the best are compared in full.
//!
//! Locks, in the order in which they are taken: the registry (lookups only), a part's content, its inbox. The registry is
//! never asked for under any of the others.
//!
//! It knows the encoding of vectors and filters: no journal, no database.

mod codes;
mod content;
mod inbox;
mod name;
mod part;
mod registry;
mod search;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use remora_filter::Expression;
use remora_kernels::Kernels;

pub use inbox::Op;
pub use name::Name;
pub use search::{Hit, Search};
pub use values::Query;

use part::Part;
use registry::Registry;

/// The vectors in memory. Shared between threads by reference.
pub struct Vectors {
    kernels: &'static Kernels,
    budget: usize,
    clock: AtomicU64,
    total: Arc<AtomicUsize>,
    registry: Mutex<Registry>,
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

impl Vectors {
    /// Nothing in memory yet; more than `budget` bytes are held only for the part that was used last, and for loads.
    pub fn new(kernels: &'static Kernels, budget: usize) -> Self {
        Self {
            kernels,
            budget,
            clock: AtomicU64::new(0),
            total: Arc::default(),
            registry: Mutex::default(),
        }
    }

    /// Takes in a change of a part. Changes are delivered in ascending order of revisions, by one caller at a time.
    pub fn deliver(&self, name: &Name<'_>, op: Op, revision: u64) {
        let mut registry = self.registry.lock();
        if let Some(part) = registry.find(name).cloned() {
            registry.push(&part, revision, op);
        }
    }

    /// All vectors go of the parts whose partition begins so.
    pub fn deliver_prefix(&self, prefix: &Name<'_>, revision: u64) {
        let mut registry = self.registry.lock();
        let parts: Vec<_> = registry.beginning_with(prefix).cloned().collect();
        for part in &parts {
            registry.push(part, revision, Op::RemoveAll);
        }
    }

    /// All vectors of a user go.
    pub fn deliver_user(&self, kind: u32, tenant: &str, user: &str, revision: u64) {
        let mut registry = self.registry.lock();
        let parts: Vec<_> = registry.of_user(kind, tenant, user).cloned().collect();
        for part in &parts {
            registry.push(part, revision, Op::RemoveAll);
        }
    }

    /// Begins a load of a part, which belongs to a user: from now on it takes in changes. The database must then hold
    /// what was delivered before, be read, and the load be filled and finished; otherwise it is abandoned.
    pub fn begin(&self, name: &Name<'_>, user: &str) -> Load {
        let total = Arc::clone(&self.total);
        let part = Arc::new(Part::new(name, user, self.kernels, self.tick(), total));
        self.registry.lock().put(name, Arc::clone(&part));
        Load(part)
    }

    /// The nearest vectors of a part. `published` is asked first.
    pub fn search(
        &self,
        name: &Name<'_>,
        search: &Search<'_>,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<Vec<Hit>>, Cold> {
        self.read(name, published, |content| search::hits(content, search))
    }

    /// How many vectors of a part pass a filter.
    pub fn count(
        &self,
        name: &Name<'_>,
        filter: Option<&Expression>,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<usize>, Cold> {
        self.read(name, published, |content| content.passing(filter).count())
    }

    /// The keys of the vectors of a part that pass a filter.
    pub fn keys(
        &self,
        name: &Name<'_>,
        filter: Option<&Expression>,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<Vec<Bytes>>, Cold> {
        self.read(name, published, |content| {
            let passing = content.passing(filter);
            let keys = passing.rows().map(|row| content.key(row).clone());
            keys.collect()
        })
    }

    /// Takes in what waits in the inboxes up to a revision, so that they stay short, and evicts what is too much.
    pub fn settle(&self, published: u64) {
        let waiting = self.registry.lock().take_waiting();
        for part in waiting {
            part.settle(published);
        }
        if self.total.load(Ordering::Relaxed) > self.budget {
            self.evict();
        }
    }

    /// What is held.
    pub fn statistics(&self) -> Statistics {
        let registry = self.registry.lock();
        Statistics {
            parts: registry.parts().count(),
            bytes: registry.parts().map(|part| part.bytes()).sum(),
        }
    }

    fn read<T>(
        &self,
        name: &Name<'_>,
        published: impl FnOnce() -> u64,
        read: impl FnOnce(&content::Content) -> T,
    ) -> Result<Shown<T>, Cold> {
        // Asked before the part: its inbox has every change that was published by then, also if it is evicted meanwhile.
        let published = published();
        let part = self.registry.lock().find(name).cloned().ok_or(Cold)?;
        part.use_at(self.tick());
        let (found, revision) = part.read(published, read)?;
        Ok(Shown { found, revision })
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
pub struct Load(Arc<Part>);

impl Load {
    /// Takes in vectors that the database has: their keys and bodies.
    pub fn fill(&self, rows: impl Iterator<Item = (Bytes, Bytes)>) {
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
