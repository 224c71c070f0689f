//! The vectors of collections: exact search by cosine, among vectors with attributes that pass a filter. For some kinds, the
//! texts of the vectors are searched by their words, too.
//!
//! A *part* (`remora_parts`) is one partition of records.
//!
//! A search compares int8 codes first. Each row knows how far its code is from its vector, so that the codes bound the
//! cosine from both sides. Only rows that may be among the best are compared in full.
//!
//! Knows: `filter`, `kernels`, `lexical`, `parts`, `wire`. It must not know the journal or the database.

mod change;
mod codes;
mod content;
mod hybrid;
mod search;
#[cfg(test)]
mod tests;
mod values;
mod words;

use std::sync::Arc;

use bytes::Bytes;
use remora_filter::Expression;
use remora_kernels::Kernels;
use remora_lexical::Analyzer;
use remora_parts as parts;

pub use change::Op;
pub use codes::{Bounds, Codes, GROUP, QueryCode};
pub use hybrid::TextSearch;
pub use parts::{Cold, Name, Shown, Statistics};
pub use search::{Hit, Search};
pub use values::{Query, floats, norm};

use content::Content;
use words::Words;

/// The vectors in memory. Shared between threads by reference.
pub struct Vectors {
    kernels: &'static Kernels,
    analyzer: Arc<Analyzer>,
    parts: parts::Parts<Content>,
}

impl Vectors {
    /// Nothing in memory yet; more than `budget` bytes are held only for the part that was used last, and for loads.
    pub fn new(kernels: &'static Kernels, budget: usize) -> Self {
        Self {
            kernels,
            analyzer: Arc::new(Analyzer::new()),
            parts: parts::Parts::new(budget),
        }
    }

    /// Takes in a change of a part. Changes are delivered in ascending order of revisions, by one caller at a time.
    pub fn deliver(&self, name: &Name<'_>, op: Op, revision: u64) {
        self.parts.deliver(name, op, revision);
    }

    /// All vectors go of the parts whose partition begins so.
    pub fn deliver_prefix(&self, prefix: &Name<'_>, revision: u64) {
        self.parts
            .deliver_prefix(prefix, || Op::RemoveAll, revision);
    }

    /// All vectors of a user go.
    pub fn deliver_user(&self, kind: u32, tenant: &str, user: &str, revision: u64) {
        let whose = (kind, tenant, user);
        self.parts.deliver_user(whose, || Op::RemoveAll, revision);
    }

    /// Begins a load of a part, which belongs to a user: see `remora_parts::Parts::begin`. `by_words`: the texts are searched,
    /// too.
    pub fn begin(&self, name: &Name<'_>, user: &str, by_words: bool) -> Load {
        let words = by_words.then(|| Words::new(Arc::clone(&self.analyzer)));
        let content = Content::new(self.kernels, words);
        Load(self.parts.begin(name, user, content))
    }

    /// The nearest vectors of a part. `published` is asked first.
    pub fn search(
        &self,
        name: &Name<'_>,
        search: &Search<'_>,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<Vec<Hit>>, Cold> {
        self.parts
            .read(name, published, |content| search::hits(content, search))
    }

    /// What of a part answers a text best, by vectors and words. `published` is asked first.
    pub fn search_text(
        &self,
        name: &Name<'_>,
        search: &TextSearch<'_>,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<Vec<Hit>>, Cold> {
        self.parts
            .read(name, published, |content| hybrid::hits(content, search))
    }

    /// How many vectors of a part pass a filter.
    pub fn count(
        &self,
        name: &Name<'_>,
        filter: Option<&Expression>,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<usize>, Cold> {
        self.parts
            .read(name, published, |content| content.passing(filter).count())
    }

    /// The keys of the vectors of a part that pass a filter.
    pub fn keys(
        &self,
        name: &Name<'_>,
        filter: Option<&Expression>,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<Vec<Bytes>>, Cold> {
        self.parts.read(name, published, |content| {
            let passing = content.passing(filter);
            let keys = passing.rows().map(|row| content.key(row).clone());
            keys.collect()
        })
    }

    /// Takes in what waits in the inboxes up to a revision, so that they stay short, and evicts what is too much.
    pub fn settle(&self, published: u64) {
        self.parts.settle(published);
    }

    /// What is held.
    pub fn statistics(&self) -> Statistics {
        self.parts.statistics()
    }

    /// Evicts until the budget is kept, or only the part that was used last is left. What is loaded stays.
    pub fn evict(&self) {
        self.parts.evict();
    }
}

/// A load of a part, which is abandoned unless it is finished.
pub struct Load(parts::Load<Content>);

impl Load {
    /// Takes in vectors that the database has: their keys and bodies.
    pub fn fill(&self, rows: impl Iterator<Item = (Bytes, Bytes)>) {
        self.0.fill(rows.map(|(key, body)| Op::Put { key, body }));
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
