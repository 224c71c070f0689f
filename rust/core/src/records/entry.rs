//! One key: what writers build on, and what readers see until a later revision is published.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::value::Value;

/// What is kept of a record for as long as it is not replaced.
#[derive(Debug, PartialEq)]
pub struct Content {
    /// Its number among the changes of its revision.
    pub ordinal: u32,
    pub user: Box<str>,
    /// Where set, the body is that of the parts uploaded under this id.
    pub upload_id: Box<str>,
    pub columns: Box<[Value]>,
}

/// A record in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub content: Arc<Content>,
    /// Microseconds since 1970, UTC.
    pub expire_time: Option<i64>,
    /// `None` if only the database has it.
    pub body: Option<Arc<[u8]>>,
}

impl Held {
    fn key_bytes(&self) -> usize {
        let content = &self.content;
        let texts = content.user.len() + content.upload_id.len();
        let columns = content.columns.iter().map(Value::bytes).sum::<usize>();
        size_of::<Content>() + texts + columns
    }

    fn body_bytes(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.len())
    }
}

/// What is there from a revision on; `None`: nothing.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) revision: u64,
    pub(super) held: Option<Held>,
}

/// The versions of a key.
#[derive(Debug)]
pub(super) struct Entry {
    newest: Version,
    /// Those that readers may still see, ascending.
    older: Vec<Version>,
    /// Whether it is known that nothing was there before the oldest version.
    is_rooted: bool,
    /// When it was last used, in ticks.
    used: AtomicU64,
}

impl Entry {
    /// An entry of one version; `is_rooted` where it is known that nothing was there before.
    pub(super) fn new(newest: Version, is_rooted: bool) -> Self {
        Self {
            newest,
            older: Vec::new(),
            is_rooted,
            used: AtomicU64::new(0),
        }
    }

    /// Nothing is there, and nothing was.
    pub(super) fn absent() -> Self {
        let nothing = Version {
            revision: 0,
            held: None,
        };
        Self::new(nothing, true)
    }

    /// What is accepted last.
    pub(super) fn newest(&self) -> &Version {
        &self.newest
    }

    pub(super) fn newest_mut(&mut self) -> &mut Version {
        &mut self.newest
    }

    pub(super) fn is_rooted(&self) -> bool {
        self.is_rooted
    }

    /// Says that nothing was there before the oldest version.
    pub(super) fn root(&mut self) {
        self.is_rooted = true;
    }

    pub(super) fn versions(&self) -> impl DoubleEndedIterator<Item = &Version> {
        self.older.iter().chain([&self.newest])
    }

    pub(super) fn version_mut(&mut self, revision: u64) -> Option<&mut Version> {
        let mut versions = self.older.iter_mut().chain([&mut self.newest]);
        versions.find(|version| version.revision == revision)
    }

    /// The revision of the oldest version.
    pub(super) fn oldest(&self) -> u64 {
        self.older.first().unwrap_or(&self.newest).revision
    }

    /// The record that is there at a revision, as far as its versions say.
    pub(super) fn at(&self, revision: u64) -> Option<(u64, &Held)> {
        let mut newest_first = self.versions().rev();
        let seen = newest_first.find(|version| version.revision <= revision)?;
        Some((seen.revision, seen.held.as_ref()?))
    }

    /// Whether its versions say what is there at a revision.
    pub(super) fn knows(&self, revision: u64) -> bool {
        self.is_rooted || self.oldest() <= revision
    }

    /// Adds a version. Returns the one of the same revision, which it replaces.
    pub(super) fn push(&mut self, version: Version) -> Option<Version> {
        let is_same = self.newest.revision == version.revision;
        let before = std::mem::replace(&mut self.newest, version);
        if is_same {
            return Some(before);
        }
        self.older.push(before);
        None
    }

    /// Puts a version before all others, after which nothing older is unknown.
    pub(super) fn push_oldest(&mut self, version: Version) {
        self.older.insert(0, version);
        self.is_rooted = true;
    }

    /// Drops the versions that nobody sees once this revision is published.
    pub(super) fn forget(&mut self, published: u64) -> Vec<Version> {
        let later = self.older.iter().position(|v| v.revision > published);
        let seen = match later {
            None if self.newest.revision <= published => self.older.len(),
            None => self.older.len().saturating_sub(1),
            Some(later) => later.saturating_sub(1),
        };
        self.is_rooted |= self.oldest() <= published;
        let gone = self.older.drain(..seen).collect();
        if self.older.is_empty() {
            self.older = Vec::new();
        }
        gone
    }

    /// Turns the end of a record that everybody sees into nothing that ever was.
    pub(super) fn forget_end(&mut self) {
        self.newest.revision = 0;
    }

    /// Whether everybody sees that nothing is there, once this revision is applied.
    pub(super) fn is_gone(&self, applied: u64) -> bool {
        self.older.is_empty() && self.newest.held.is_none() && self.newest.revision <= applied
    }

    /// Whether its body may be dropped: the database has it, and nobody sees another.
    pub(super) fn has_spare_body(&self, applied: u64) -> bool {
        let held = self.newest.held.as_ref();
        self.older.is_empty()
            && self.newest.revision <= applied
            && held.is_some_and(|held| held.body_bytes() > 0)
    }

    pub(super) fn use_at(&self, tick: u64) {
        self.used.store(tick, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// An estimate of the memory held, but for bodies and with `orders` further orders.
    pub(super) fn key_bytes(&self, orders: usize) -> usize {
        let held = self.versions().filter_map(|version| version.held.as_ref());
        let held = held.map(|held| held.key_bytes() * (1 + orders));
        size_of::<Self>() + self.older.capacity() * size_of::<Version>() + held.sum::<usize>()
    }

    pub(super) fn body_bytes(&self) -> usize {
        let held = self.versions().filter_map(|version| version.held.as_ref());
        held.map(Held::body_bytes).sum()
    }
}
