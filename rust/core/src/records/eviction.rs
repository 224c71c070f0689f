//! Eviction: what leaves memory when it exceeds the bound.

use std::sync::atomic::Ordering;

use remora_fingerprint::Fingerprint;

use super::Records;
use super::partition::Size;

/// How many of the last uses are kept in memory, so that a caller finds what it has just loaded.
const RECENT_USES: u64 = 32;

impl Records {
    /// Drops what was used least recently and the database has, down to nine tenths of the bound: bodies, and partitions
    /// where they take more than half of the bound without bodies. Under `upkeep`.
    pub(super) fn evict(&self) {
        let bound = self.bound as isize;
        if self.held() <= bound {
            return;
        }
        let by_use = self.by_use();
        let recent = self
            .clock
            .load(Ordering::Relaxed)
            .saturating_sub(RECENT_USES);
        let mut old = by_use.iter().filter(|(used, _)| *used < recent);
        while self.key_bytes.load(Ordering::Relaxed) > bound / 2
            && let Some((used, partition)) = old.next()
        {
            self.evict_partition(*partition, *used);
        }
        for (_, partition) in &by_use {
            let excess = self.held() - bound / 10 * 9;
            if excess <= 0 {
                return;
            }
            self.drop_bodies(*partition, recent, excess as usize);
        }
    }

    fn held(&self) -> isize {
        self.key_bytes.load(Ordering::Relaxed) + self.body_bytes.load(Ordering::Relaxed)
    }

    /// The resident partitions, the least recently used first.
    fn by_use(&self) -> Vec<(u64, Fingerprint)> {
        let mut uses = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let residents = shard.residents.iter();
            uses.extend(residents.map(|(name, partition)| (partition.used(), *name)));
        }
        uses.sort_unstable();
        uses
    }

    fn evict_partition(&self, name: Fingerprint, used: u64) {
        let applied = self.applied.load(Ordering::Relaxed);
        let _whole = self.torn.where_panicking();
        let mut shard = self.shard(name);
        let Some(partition) = shard.evict(name, used, applied) else {
            return;
        };
        self.born.forget(partition.name().uid);
        self.count(partition.size(), Size::default());
        // What is freed may be large.
        drop(shard);
        drop(partition);
    }

    /// Drops about as many bytes of bodies of a partition, those that were used least recently first.
    fn drop_bodies(&self, name: Fingerprint, recent: u64, excess: usize) {
        let applied = self.applied.load(Ordering::Relaxed);
        let _whole = self.torn.where_panicking();
        let mut shard = self.shard(name);
        let Some(partition) = shard.residents.get_mut(&name) else {
            return;
        };
        let before = partition.size();
        let mut spare = partition.spare_bodies(applied);
        spare.sort_unstable();
        for (used, key) in spare {
            let dropped = before.bodies - partition.size().bodies;
            if dropped >= excess || used >= recent {
                break;
            }
            partition.drop_body(&key);
        }
        self.count(before, partition.size());
    }
}
