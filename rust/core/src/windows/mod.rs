//! Windows: the conversations that are in memory, from which writers plan and readers are served.
//!
//! Writers build on what is **accepted**, readers see what is **published**; both views live side by side until the later
//! one is published. What is not applied to the database is never dropped. Conversations are kept up to a bound in bytes,
//! the least recently used go first; of long ones only the newest bodies are kept.
//!
//! Locks. A shard's, a conversation's and the list's of unapplied conversations are leaves: none is taken while another of
//! them is held. `apply` is called under the journal's lock and takes them one by one; `upkeep` is taken outside of the
//! journal and before any of them. Nothing here waits for the disk.

mod change;
mod conversation;
mod filtered;
mod head;
mod ids;
mod incarnation;
mod load;
mod messages;
mod names;
mod page;
mod shard;
#[cfg(test)]
mod tests;
mod weights;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

use parking_lot::Mutex;
use remora_fingerprint::{Fingerprint, Fingerprints};
use remora_supervision::failpoints::{self, Point};

pub(crate) use change::{Change, ChangeKind, Counters, Embed, PutMessage, PutRow, Run, Stored};
pub use filtered::passing;
pub use head::Head;
pub use load::{LoadedMessage, StoredConversation, UnknownBodies};
pub use page::{Page, Selection};
pub use weights::Weights;

use conversation::Conversation;
use messages::Messages;
use shard::Shard;

/// A power of two.
const SHARDS: usize = 64;

/// The last uses: their conversations stay, so that whoever loaded one finds it.
const RECENT_USES: u64 = 32;

/// How much stays in memory.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Of all conversations together, in bytes.
    pub total_bytes: usize,
    /// Of the bodies of one conversation.
    pub body_bytes: usize,
    /// How many bodies of one conversation.
    pub bodies: usize,
    /// How many removed messages of one conversation are left in their places, or a quarter of all where that is more.
    pub gaps: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            total_bytes: 64 << 20,
            body_bytes: 256 << 10,
            bodies: 256,
            gaps: 16,
        }
    }
}

/// Where a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// Nowhere.
    Absent,
    /// In the database, if it exists.
    Cold,
    /// In memory, or known to be nowhere.
    Resident,
}

/// The conversation is not in memory: load it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the conversation is not resident")]
pub struct Cold;

/// The resident conversations.
pub struct Windows {
    fingerprints: Fingerprints,
    shards: Box<[Mutex<Shard>]>,
    /// Who was changed at which revision, in order.
    unapplied: Mutex<VecDeque<(u64, Arc<Conversation>)>>,
    /// Held by who drops things, so that what is dropped is counted once.
    upkeep: Mutex<()>,
    applied: AtomicU64,
    clock: AtomicU64,
    bytes: AtomicIsize,
    bounds: Bounds,
}

impl Windows {
    /// No conversation is resident; what exists was last changed at `revision` or before.
    pub fn new(bounds: Bounds, revision: u64) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new(revision)));
        Self {
            fingerprints: Fingerprints::default(),
            shards: shards.collect(),
            unapplied: Mutex::default(),
            upkeep: Mutex::default(),
            applied: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            bytes: AtomicIsize::new(0),
            bounds,
        }
    }

    pub(crate) fn fingerprints(&self) -> &Fingerprints {
        &self.fingerprints
    }

    /// Says that a conversation is stored.
    pub fn know(&self, tenant: &str, id: &str) {
        let key = self.key(tenant, id);
        self.shard(key).lock().know(key);
    }

    /// Where a conversation is; it counts as a use.
    pub fn residency(&self, tenant: &str, id: &str) -> Residency {
        match self.resident(tenant, id) {
            Ok(Some(_)) => Residency::Resident,
            Ok(None) => Residency::Absent,
            Err(Cold) => Residency::Cold,
        }
    }

    /// Applies the changes of one record to a conversation, in the order of revisions. What readers see meanwhile, up to
    /// `published` or later, stays.
    pub(crate) fn apply(&self, run: &Run, revision: u64, published: u64) {
        if !run.touches_window() {
            return;
        }
        let touched = self.shard(run.key).lock().touch(run, revision);
        let Some(conversation) = touched else {
            return;
        };
        self.use_now(&conversation);
        self.count(conversation.change(|state| {
            for change in &run.changes {
                state.apply(change, revision);
            }
            state.forget_heads(published);
        }));
        self.add_unapplied(revision, conversation);
    }

    /// In the order of revisions: a load comes with earlier ones than were applied last.
    fn add_unapplied(&self, revision: u64, conversation: Arc<Conversation>) {
        let mut unapplied = self.unapplied.lock();
        let index = unapplied.partition_point(|(other, _)| *other <= revision);
        unapplied.insert(index, (revision, conversation));
    }

    /// Says that the database has everything up to `applied`, so that it may be dropped here.
    pub fn mark_applied(&self, applied: u64, published: u64) {
        let _upkeep = self.upkeep.lock();
        let applied = self
            .applied
            .fetch_max(applied, Ordering::Relaxed)
            .max(applied);
        for conversation in self.take_unapplied(applied) {
            let settled =
                conversation.change(|state| state.settle(applied, published, &self.bounds));
            self.count(settled);
        }
        self.evict();
    }

    /// The conversations that were changed up to `applied`, each once.
    fn take_unapplied(&self, applied: u64) -> Vec<Arc<Conversation>> {
        let mut unapplied = self.unapplied.lock();
        let count = unapplied.partition_point(|(revision, _)| *revision <= applied);
        let mut taken: Vec<_> = unapplied.drain(..count).map(|(_, c)| c).collect();
        drop(unapplied);
        taken.sort_unstable_by_key(Arc::as_ptr);
        taken.dedup_by(|left, right| Arc::ptr_eq(left, right));
        taken
    }

    /// Drops the least recently used conversations that the database has, down to nine tenths of the bound. Under `upkeep`.
    fn evict(&self) {
        let bound = self.bounds.total_bytes as isize;
        if self.bytes.load(Ordering::Relaxed) <= bound {
            return;
        }
        let applied = self.applied.load(Ordering::Relaxed);
        for (used, key) in self.by_use() {
            if self.bytes.load(Ordering::Relaxed) <= bound / 10 * 9 {
                return;
            }
            let freed = self.shard(key).lock().evict(key, used, applied);
            self.count(-(freed as isize));
        }
    }

    /// The resident conversations, the least recently used first, but for the last uses.
    fn by_use(&self) -> Vec<(u64, Fingerprint)> {
        let recent = self
            .clock
            .load(Ordering::Relaxed)
            .saturating_sub(RECENT_USES);
        let mut uses = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let residents = shard.residents.iter();
            uses.extend(residents.map(|(key, c)| (c.used.load(Ordering::Relaxed), *key)));
        }
        uses.retain(|(used, _)| *used < recent);
        uses.sort_unstable_by_key(|(used, _)| *used);
        uses
    }

    /// The head that writers build on; `None` if the conversation is not there.
    pub fn accepted_head(&self, tenant: &str, id: &str) -> Result<Option<Arc<Head>>, Cold> {
        let conversation = self.resident(tenant, id)?;
        Ok(conversation.and_then(|c| Some(Arc::clone(c.read().accepted()?.0))))
    }

    /// The head that readers see. `published` is asked while the conversation cannot change.
    pub fn published_head(
        &self,
        tenant: &str,
        id: &str,
        published: impl FnOnce() -> u64,
    ) -> Result<Option<Arc<Head>>, Cold> {
        let conversation = self.resident(tenant, id)?;
        Ok(conversation.and_then(|c| Some(Arc::clone(c.read().visible(published())?.0))))
    }

    /// The (sequence, create time) of a user's accepted messages, `None` for those that are not there.
    pub fn find_messages<S: AsRef<str>>(
        &self,
        tenant: &str,
        id: &str,
        user: &str,
        message_ids: &[S],
    ) -> Result<Vec<Option<(u64, i64)>>, Cold> {
        let fingerprint = |id: &S| self.fingerprints.of([user, id.as_ref()]);
        let wanted: Vec<_> = message_ids.iter().map(fingerprint).collect();
        let find = |messages: &Messages, id| {
            let entry = messages.find(id)?;
            Some((entry.sequence, entry.create_time))
        };
        let found = self.with_accepted(tenant, id, |messages| {
            wanted.iter().map(|id| find(messages, *id)).collect()
        })?;
        Ok(found.unwrap_or_else(|| vec![None; message_ids.len()]))
    }

    /// The sequences of a user's accepted messages, or of all users', ascending.
    pub fn live_sequences(
        &self,
        tenant: &str,
        id: &str,
        user: Option<&str>,
    ) -> Result<Vec<u64>, Cold> {
        let sequences = self.with_accepted(tenant, id, |messages| {
            let number = user.map(|user| messages.users.find(user));
            let live = messages.live();
            let live = live.filter(|entry| number.is_none_or(|user| user == Some(entry.user)));
            live.map(|entry| entry.sequence).collect()
        })?;
        Ok(sequences.unwrap_or_default())
    }

    /// The (sequence, user) of the oldest `count` accepted messages, ascending.
    pub fn oldest_messages(
        &self,
        tenant: &str,
        id: &str,
        count: usize,
    ) -> Result<Vec<(u64, Arc<str>)>, Cold> {
        let oldest = self.with_accepted(tenant, id, |messages| {
            let oldest = messages.live().take(count);
            let named = oldest.map(|entry| (entry.sequence, messages.users.name(entry.user)));
            named.collect()
        })?;
        Ok(oldest.unwrap_or_default())
    }

    /// A page of what readers see. `published` is asked before the conversation is looked for, and while it cannot change.
    pub fn list_messages(
        &self,
        tenant: &str,
        id: &str,
        selection: &Selection,
        published: impl Fn() -> u64,
    ) -> Result<Page, Cold> {
        failpoints::hit(Point::WindowsListing);
        let revision = published();
        let conversation = self.resident(tenant, id)?;
        let page = conversation.and_then(|conversation| {
            let state = conversation.read();
            let published = published();
            let (head, messages) = state.visible(published)?;
            let uid = head.uid;
            Some(Page {
                uid,
                ..page::select(messages, selection, published)
            })
        });
        Ok(Page {
            revision,
            ..page.unwrap_or_default()
        })
    }

    /// What a user's messages of a window weigh, without those of the roles `apart`. A window is as in [`Selection`].
    /// `published` is asked before the conversation is looked for, and while it cannot change.
    pub fn weigh(
        &self,
        tenant: &str,
        id: &str,
        user: &str,
        window: (u64, u64),
        apart: &[String],
        published: impl Fn() -> u64,
    ) -> Result<Weights, Cold> {
        let revision = published();
        let conversation = self.resident(tenant, id)?;
        let weights = conversation.and_then(|conversation| {
            let state = conversation.read();
            let published = published();
            let (head, messages) = state.visible(published)?;
            let uid = head.uid;
            Some(Weights {
                uid,
                ..weights::of(messages, user, window, apart, published)
            })
        });
        Ok(Weights {
            revision,
            ..weights.unwrap_or_default()
        })
    }

    /// How many messages a list would have to look at, at most; 0 if the conversation is not in memory.
    pub fn resident_messages(&self, tenant: &str, id: &str) -> usize {
        let conversation = self.resident(tenant, id).ok().flatten();
        conversation.map_or(0, |c| c.messages.load(Ordering::Relaxed))
    }

    /// Resident conversations.
    pub fn conversations(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.lock().residents.len()).sum()
    }

    /// An estimate of the memory that the resident conversations hold.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed).max(0) as usize
    }

    fn with_accepted<T>(
        &self,
        tenant: &str,
        id: &str,
        read: impl FnOnce(&Messages) -> T,
    ) -> Result<Option<T>, Cold> {
        let conversation = self.resident(tenant, id)?;
        Ok(conversation.and_then(|c| Some(read(c.read().accepted()?.1))))
    }

    /// The resident conversation; `None` if it is known that there is none.
    fn resident(&self, tenant: &str, id: &str) -> Result<Option<Arc<Conversation>>, Cold> {
        let key = self.key(tenant, id);
        let shard = self.shard(key).lock();
        let Some(conversation) = shard.residents.get(&key) else {
            return if shard.may_exist(key) {
                Err(Cold)
            } else {
                Ok(None)
            };
        };
        self.use_now(conversation);
        Ok(Some(Arc::clone(conversation)))
    }

    fn use_now(&self, conversation: &Conversation) {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        conversation.used.store(now, Ordering::Relaxed);
    }

    fn key(&self, tenant: &str, id: &str) -> Fingerprint {
        self.fingerprints.of([tenant, id])
    }

    /// The bits that choose a shard are not those by which its maps choose a bucket.
    fn shard(&self, key: Fingerprint) -> &Mutex<Shard> {
        &self.shards[(key.half() >> 32) as usize % SHARDS]
    }

    fn count(&self, change: isize) {
        self.bytes.fetch_add(change, Ordering::Relaxed);
    }
}
