//! The items of the store: search within a prefix of namespaces, by what their values say and by vectors; namespaces.
//!
//! A *part* (`remora_parts`) has all items of a tenant. Filters compare paths into the JSON values: each path that a filter
//! names becomes a column, which follows the items from then on (`paths.rs`). Vectors are compared by their codes first,
//! as in `remora_vectors`; an item counts as its nearest vector (`nearest.rs`).
//!
//! Locks, in the order in which they are taken: those of `remora_parts` up to a part's content; `Content::paths`, a leaf.
//!
//! Knows: `filter`, `kernels`, `parts`, `supervision`, `vectors`, `wire`. It must not know the journal or the database.

mod change;
mod content;
mod listing;
mod namespaces;
mod nearest;
mod paths;
mod tables;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use prost::Message as _;
use remora_kernels::Kernels;
use remora_parts as parts;
use remora_wire as wire;

pub use change::{Op, Put};
pub use listing::{Listing, Match};
pub use nearest::{Query, Similarity};
pub use parts::{Cold, Shown, Statistics};

use content::Content;

/// The items in memory. Shared between threads by reference.
pub struct Items {
    kernels: &'static Kernels,
    parts: parts::Parts<Content>,
}

/// Which items a search looks at, and how many it finds: after the first `skip`, at most `limit`.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// What the encoded namespaces begin with.
    pub prefix: &'a [u8],
    pub filter: Option<&'a remora_filter::Expression>,
    /// Without one, the newest items are found.
    pub query: Option<&'a Query>,
    pub skip: usize,
    pub limit: usize,
    /// What has expired by now is not seen.
    pub now: i64,
}

/// An item that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// How near it is; `None` in a search without a query.
    pub score: Option<f64>,
    pub namespace: Bytes,
    pub key: Bytes,
    /// Its encoded stored form.
    pub body: Bytes,
    pub revision: u64,
    pub expire_time: Option<i64>,
}

impl Hit {
    /// The item as replies have it. With `refreshed_at`, an item with a ttl lives for that long from then: until when.
    pub fn encoded(&self, refreshed_at: Option<i64>) -> (Vec<u8>, Option<i64>) {
        let mut item = wire::StoreItem::decode(self.body.clone()).unwrap_or_default();
        let ttl = item.ttl.map(wire::Duration::micros);
        let refreshed = refreshed_at.zip(ttl).map(|(now, ttl)| now + ttl);
        let expire_time = refreshed.or(self.expire_time);
        item.expire_time = expire_time.map(wire::Timestamp::from_micros);
        item.revision = self.revision;
        (item.encode_to_vec(), refreshed)
    }
}

/// The labels of a namespace, from the outermost.
pub type Labels = Vec<String>;

/// Where an item is: its encoded namespace and its key.
pub type Place = (Bytes, Bytes);

impl Items {
    /// Nothing in memory yet; more than `budget` bytes are held only for the part that was used last, and for loads.
    pub fn new(kernels: &'static Kernels, budget: usize) -> Self {
        Self {
            kernels,
            parts: parts::Parts::new(budget),
        }
    }

    /// Takes in a change. Changes are delivered in ascending order of revisions, by one caller at a time.
    pub fn deliver(&self, kind: u32, tenant: &str, op: Op, revision: u64) {
        self.parts.deliver(&name(kind, tenant), op, revision);
    }

    /// Takes in another expire time of an item, which the journal may lack.
    pub fn deliver_expiry(&self, kind: u32, tenant: &str, op: Op) {
        self.parts.deliver_behind(&name(kind, tenant), op);
    }

    /// Begins a load of a tenant's items: see `remora_parts::Parts::begin`.
    pub fn begin(&self, kind: u32, tenant: &str) -> Load {
        let empty = Content::new(self.kernels);
        Load(self.parts.begin(&name(kind, tenant), "", empty))
    }

    /// The items that a search finds. `published` is asked first.
    pub fn search(
        &self,
        (kind, tenant): (u32, &str),
        search: &Search<'_>,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<Vec<Hit>>, Cold> {
        self.parts.read(&name(kind, tenant), published, |content| {
            content.search(search)
        })
    }

    /// The labels of some namespaces, and whether more follow.
    pub fn namespaces(
        &self,
        (kind, tenant): (u32, &str),
        listing: &Listing<'_>,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<(Vec<Labels>, bool)>, Cold> {
        self.parts.read(&name(kind, tenant), published, |content| {
            content.namespaces(listing)
        })
    }

    /// When the items at some places were created; `None` where none is.
    pub fn created(
        &self,
        (kind, tenant): (u32, &str),
        places: &[Place],
        now: i64,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<Vec<Option<i64>>>, Cold> {
        self.parts.read(&name(kind, tenant), published, |content| {
            content.created(places, now)
        })
    }

    /// The items that have expired.
    pub fn expired(
        &self,
        (kind, tenant): (u32, &str),
        now: i64,
        published: impl FnOnce() -> u64,
    ) -> Result<Shown<Vec<Place>>, Cold> {
        self.parts.read(&name(kind, tenant), published, |content| {
            content.expired(now)
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

fn name(kind: u32, tenant: &str) -> parts::Name<'_> {
    parts::Name {
        kind,
        tenant,
        partition: b"",
    }
}

/// A load of a tenant's items, which is abandoned unless it is finished.
pub struct Load(parts::Load<Content>);

impl Load {
    /// Takes in items that the database has.
    pub fn fill(&self, rows: impl Iterator<Item = Put>) {
        self.0.fill(rows.map(Op::Put));
    }

    /// The memory that the items take so far.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Says that everything is there that the database has.
    pub fn finish(self) {
        self.0.finish();
    }
}
