//! Records by key: of each declared kind, a partition of keys at a time is in memory, wholly or in part.
//!
//! Writers build on what is **accepted**, readers see what is **published**; both views live side by side until the later
//! one is published. Records that are not applied to the database are never dropped. Memory is kept to a bound in bytes:
//! bodies are dropped first, then partitions, the least recently used first.
//!
//! Locks. A shard's is taken first; while it is held, those of `removals` and `born` are taken, one by one. The list's of
//! unapplied keys is a leaf. `apply` is called under the journal's lock and takes them for microseconds; `upkeep` is taken
//! outside of the journal and before any of them. Nothing here waits for the disk.
//!
//! A panic within a change may leave half of it. The locks do not show that, but `is_torn` does, and `Core` stops then.

mod born;
mod change;
mod entry;
mod eviction;
mod kinds;
mod load;
mod order;
mod page;
mod partition;
mod place;
mod prepared;
mod refreshing;
mod removals;
mod shard;
#[cfg(test)]
pub(crate) mod tests;
mod torn;
mod value;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use remora_fingerprint::{Fingerprint, Fingerprints};

pub use change::InvalidChange;
pub(crate) use change::{Change, Put, Removed};
pub use entry::{Content, Held};
pub use kinds::{InvalidKinds, Kind, Kinds};
pub use load::{Extent, Loaded, LoadedRecord};
pub use order::Position;
pub use page::{Filters, Found, Page, Selection};
pub use partition::Cold;
pub use place::place;
pub(crate) use prepared::{Prepared, Searched};
pub use refreshing::RefreshedRecord;
pub use value::{ColumnType, Value};

use born::Born;
use order::Key;
use partition::{Partition, Size};
use prepared::{Spot, Step};
use removals::{PartitionName, Removals};
use shard::Shard;
use torn::Torn;

/// A power of two.
const SHARDS: usize = 64;

/// A partition by its name.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub kind: &'a Arc<Kind>,
    pub tenant: &'a str,
    /// 0 if the kind does not belong to conversations.
    pub conversation_uid: u64,
    pub partition: &'a [u8],
}

impl Place<'_> {
    fn name(&self) -> PartitionName {
        PartitionName {
            kind: Arc::clone(self.kind),
            tenant: self.tenant.into(),
            uid: self.conversation_uid,
            bytes: self.partition.into(),
        }
    }
}

/// The records in memory.
pub struct Records {
    kinds: Kinds,
    fingerprints: Fingerprints,
    shards: Box<[Mutex<Shard>]>,
    removals: Removals,
    born: Born,
    /// The newest revision that touched each kind.
    touched: Box<[AtomicU64]>,
    /// Which key was changed at which revision, in order.
    unapplied: Mutex<VecDeque<(u64, Fingerprint, Key)>>,
    /// Held by who drops things.
    upkeep: Mutex<()>,
    applied: AtomicU64,
    clock: AtomicU64,
    key_bytes: AtomicIsize,
    body_bytes: AtomicIsize,
    bound: usize,
    torn: Torn,
}

impl Records {
    /// Nothing is in memory, where `bound` bytes may be; what exists was last changed at `revision` or before.
    pub fn new(kinds: Kinds, bound: usize, revision: u64) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new(revision)));
        Self {
            fingerprints: Fingerprints::default(),
            shards: shards.collect(),
            removals: Removals::new(revision),
            born: Born::default(),
            touched: kinds.iter().map(|_| AtomicU64::new(0)).collect(),
            unapplied: Mutex::default(),
            upkeep: Mutex::default(),
            applied: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            key_bytes: AtomicIsize::new(0),
            body_bytes: AtomicIsize::new(0),
            bound,
            torn: Torn::default(),
            kinds,
        }
    }

    /// Whether a panic may have left half of a change.
    pub fn is_torn(&self) -> bool {
        self.torn.is_so()
    }

    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Applies a change, in the order of revisions. What readers see meanwhile, up to `published` or later, stays.
    pub(crate) fn apply(&self, tenant: &str, change: Prepared, revision: u64, published: u64) {
        match change.0 {
            Step::Put {
                spot,
                held,
                replaces,
            } => self.change(tenant, &spot, revision, |partition| {
                partition.put(&spot.key, revision, held, replaces, published);
            }),
            Step::Remove(spot) => self.change(tenant, &spot, revision, |partition| {
                partition.remove(&spot.key, revision, published);
            }),
            Step::Expire {
                spot,
                record_revision,
                expire_time,
            } => self.change(tenant, &spot, revision, |partition| {
                partition.expire(&spot.key, record_revision, expire_time, revision);
            }),
            Step::RemovePartition(spot) => {
                let name = spot_name(tenant, &spot, revision);
                self.remove([&spot.kind], revision, removals::Extent::Partition(name));
            }
            Step::RemovePrefix(spot) => {
                let name = spot_name(tenant, &spot, revision);
                self.remove([&spot.kind], revision, removals::Extent::Prefix(name));
            }
            Step::Erase { kinds, user } => {
                let extent = removals::Extent::User {
                    kinds: kinds.clone(),
                    tenant: tenant.into(),
                    user,
                };
                self.remove(&kinds, revision, extent);
            }
            Step::Create => self.born.add(revision),
            Step::End { uid } => {
                let uid = if uid == 0 { revision } else { uid };
                let kinds = self.kinds.iter().filter(|kind| kind.of_conversation);
                self.remove(kinds, revision, removals::Extent::Conversation(uid));
            }
        }
    }

    /// Changes the partition of a spot, which becomes resident.
    fn change(
        &self,
        tenant: &str,
        spot: &Spot,
        revision: u64,
        change: impl FnOnce(&mut Partition),
    ) {
        self.touch(&spot.kind, revision);
        let place = Place {
            kind: &spot.kind,
            tenant,
            conversation_uid: spot.kind.uid(spot.uid, revision),
            partition: &spot.partition,
        };
        let fingerprint = self.fingerprint(&place);
        let mut shard = self.shard(fingerprint);
        self.with_resident(&mut shard, fingerprint, &place, change);
        drop(shard);
        let mut unapplied = self.unapplied.lock();
        unapplied.push_back((revision, fingerprint, Arc::clone(&spot.key)));
    }

    fn remove<'a>(
        &self,
        kinds: impl IntoIterator<Item = &'a Arc<Kind>>,
        revision: u64,
        extent: removals::Extent,
    ) {
        kinds
            .into_iter()
            .for_each(|kind| self.touch(kind, revision));
        self.removals.add(revision, extent);
    }

    fn touch(&self, kind: &Kind, revision: u64) {
        if let Some(index) = self.kinds.index(kind.number) {
            self.touched[index].store(revision, Ordering::Release);
        }
    }

    /// The newest accepted revision that touched records of a kind, as far as this process knows.
    pub fn touched(&self, kind: &Kind) -> u64 {
        let index = self.kinds.index(kind.number);
        index.map_or(0, |index| self.touched[index].load(Ordering::Acquire))
    }

    /// Works on a partition that is resident or becomes so, up to date.
    fn with_resident<T>(
        &self,
        shard: &mut Shard,
        fingerprint: Fingerprint,
        place: &Place<'_>,
        work: impl FnOnce(&mut Partition) -> T,
    ) -> T {
        let _whole = self.torn.where_panicking();
        let mut before = Size::default();
        let partition = shard
            .residents
            .entry(fingerprint)
            .and_modify(|partition| before = partition.size())
            .or_insert_with(|| self.unknown(place));
        partition.catch_up(&self.removals);
        partition.use_at(self.tick());
        let done = work(partition);
        self.count(before, partition.size());
        if partition.has_unapplied_expiries() {
            shard.expiring.insert(fingerprint);
        }
        done
    }

    /// A partition of which nothing is in memory.
    fn unknown(&self, place: &Place<'_>) -> Partition {
        let is_empty = place.conversation_uid != 0 && self.born.has(place.conversation_uid);
        Partition::new(place.name(), is_empty, self.tick())
    }

    /// Reads a partition as it is; one that is not resident is as good as its name.
    fn read<T>(
        &self,
        place: &Place<'_>,
        published: impl FnOnce() -> u64,
        read: impl FnOnce(&Partition, u64, u64) -> T,
    ) -> T {
        let fingerprint = self.fingerprint(place);
        let tick = self.tick();
        let mut shard = self.shard(fingerprint);
        // Asked before the removals: they include those of every revision that was published by then.
        let published = published();
        let Some(partition) = shard.residents.get_mut(&fingerprint) else {
            let mut unknown = self.unknown(place);
            unknown.catch_up(&self.removals);
            return read(&unknown, published, tick);
        };
        self.change_resident(partition, |partition| partition.use_at(tick));
        read(partition, published, tick)
    }

    /// The record that writers build on, expired ones included.
    pub fn accepted(&self, place: &Place<'_>, key: &[u8]) -> Result<Option<Found>, Cold> {
        self.read(
            place,
            || u64::MAX,
            |partition, newest, tick| {
                let seen = partition.get(key, newest)?;
                Ok(seen.map(|seen| seen.found(tick)))
            },
        )
    }

    /// The record that readers see at a time, and the revision that this shows. `published` is asked while the partition
    /// cannot change.
    pub fn get(
        &self,
        place: &Place<'_>,
        key: &[u8],
        now: i64,
        published: impl FnOnce() -> u64,
    ) -> Result<(Option<Found>, u64), Cold> {
        self.read(place, published, |partition, published, tick| {
            let seen = partition.get(key, published)?;
            let alive = seen.filter(|seen| seen.held.is_alive(now));
            Ok((alive.map(|seen| seen.found(tick)), published))
        })
    }

    /// A page of what readers see. `published` is asked while the partition cannot change.
    pub fn list(
        &self,
        place: &Place<'_>,
        selection: &Selection,
        published: impl FnOnce() -> u64,
    ) -> Result<Page, Cold> {
        self.read(place, published, |partition, published, tick| {
            let page = page::select(partition, selection, published, tick)?;
            Ok(Page {
                revision: published,
                ..page
            })
        })
    }

    /// How many records pass that readers see at a time, and the revision that this shows.
    pub fn count_records(
        &self,
        place: &Place<'_>,
        filters: &Filters,
        now: i64,
        published: impl FnOnce() -> u64,
    ) -> Result<(usize, u64), Cold> {
        self.read(place, published, |partition, published, _| {
            let count = page::count(partition, filters, now, published)?;
            Ok((count, published))
        })
    }

    /// How many entries a list would have to look at, at most.
    pub fn resident_entries(&self, place: &Place<'_>) -> usize {
        let fingerprint = self.fingerprint(place);
        let shard = self.shard(fingerprint);
        shard.residents.get(&fingerprint).map_or(0, Partition::len)
    }

    /// Takes in what the database answered. False if it is too old: what left memory since it was asked is newer.
    pub fn load(&self, place: &Place<'_>, loaded: Loaded) -> bool {
        let name = place.name();
        let mut begun = None;
        let is_fresh = loaded
            .into_parts()
            .all(|part| self.load_part(place, &name, part, &mut begun));
        let _upkeep = self.upkeep.lock();
        self.evict();
        is_fresh
    }

    /// Takes in a part of what was loaded. `begun`: when the partition became resident that took in the parts before,
    /// which are gone where it is another one.
    fn load_part(
        &self,
        place: &Place<'_>,
        name: &PartitionName,
        part: Loaded,
        begun: &mut Option<u64>,
    ) -> bool {
        let fingerprint = self.fingerprint(place);
        let mut shard = self.shard(fingerprint);
        let resident = shard.residents.get(&fingerprint);
        let needed = resident.map_or(0, Partition::needed);
        let needed = needed.max(shard.absences.needed(fingerprint));
        let is_same = begun.is_none() || *begun == resident.map(Partition::begun);
        let later = self.removals.after(part.as_of, name);
        let Some(later) = later.filter(|_| is_same && part.as_of >= needed) else {
            return false;
        };
        self.with_resident(&mut shard, fingerprint, place, |partition| {
            partition.load(part, &later);
            *begun = Some(partition.begun());
        });
        true
    }

    /// Says that the database has everything up to `applied`, so that it may be dropped here.
    pub fn mark_applied(&self, applied: u64, published: u64) {
        let _upkeep = self.upkeep.lock();
        let applied = self
            .applied
            .fetch_max(applied, Ordering::Relaxed)
            .max(applied);
        for (fingerprint, key) in self.take_unapplied(applied) {
            let mut shard = self.shard(fingerprint);
            if let Some(partition) = shard.residents.get_mut(&fingerprint) {
                self.change_resident(partition, |partition| {
                    partition.settle_late(applied);
                    partition.settle(&key, applied, published);
                });
            }
        }
        self.settle_removals(applied, published);
        self.evict();
    }

    /// Has all partitions take in the removals that the database has, and releases those.
    fn settle_removals(&self, applied: u64, published: u64) {
        if !self.removals.has_applied(applied) {
            return;
        }
        for shard in &self.shards {
            for partition in shard.lock().residents.values_mut() {
                self.change_resident(partition, |partition| {
                    partition.settle_removals(applied, published);
                });
            }
        }
        self.removals.forget(applied);
    }

    /// Changes a partition that is resident, up to date.
    fn change_resident<T>(
        &self,
        partition: &mut Partition,
        change: impl FnOnce(&mut Partition) -> T,
    ) -> T {
        let _whole = self.torn.where_panicking();
        let before = partition.size();
        partition.catch_up(&self.removals);
        let changed = change(partition);
        self.count(before, partition.size());
        changed
    }

    /// The keys that were changed up to `applied`, each once.
    fn take_unapplied(&self, applied: u64) -> Vec<(Fingerprint, Key)> {
        let mut unapplied = self.unapplied.lock();
        let count = unapplied.partition_point(|(revision, ..)| *revision <= applied);
        let taken = unapplied.drain(..count);
        let mut taken: Vec<_> = taken.map(|(_, name, key)| (name, key)).collect();
        drop(unapplied);
        taken.sort_unstable();
        taken.dedup();
        taken
    }

    /// Resident partitions.
    pub fn partitions(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.lock().residents.len()).sum()
    }

    /// An estimate of the memory that the resident partitions hold.
    pub fn bytes(&self) -> usize {
        let bytes = [&self.key_bytes, &self.body_bytes];
        let bytes = bytes.map(|bytes| bytes.load(Ordering::Relaxed).max(0) as usize);
        bytes.iter().sum()
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    fn fingerprint(&self, place: &Place<'_>) -> Fingerprint {
        let Place {
            kind,
            tenant,
            conversation_uid,
            partition,
        } = *place;
        self.fingerprints
            .of_parts((kind.number, tenant, conversation_uid, partition))
    }

    /// The bits that choose a shard are not those by which its maps choose a bucket.
    fn shard(&self, partition: Fingerprint) -> MutexGuard<'_, Shard> {
        self.shards[(partition.half() >> 32) as usize % SHARDS].lock()
    }

    fn count(&self, before: Size, after: Size) {
        let change = |before: usize, after: usize| after as isize - before as isize;
        self.key_bytes
            .fetch_add(change(before.keys, after.keys), Ordering::Relaxed);
        self.body_bytes
            .fetch_add(change(before.bodies, after.bodies), Ordering::Relaxed);
    }
}

fn spot_name(tenant: &str, spot: &Spot, revision: u64) -> PartitionName {
    PartitionName {
        kind: Arc::clone(&spot.kind),
        tenant: tenant.into(),
        uid: spot.kind.uid(spot.uid, revision),
        bytes: Arc::clone(&spot.partition),
    }
}
