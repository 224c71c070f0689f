//! A share of all partitions: those that are in memory, and how fresh a load of another must be.

use std::collections::VecDeque;

use remora_fingerprint::{Fingerprint, FingerprintMap};

use super::order::Key;
use super::partition::Partition;
use crate::absences::Absences;

/// An expire time that was set in memory.
pub(super) struct Refreshed {
    /// When it was, on the caller's clock.
    pub(super) since: i64,
    pub(super) partition: Fingerprint,
    pub(super) key: Key,
    /// Of the record.
    pub(super) revision: u64,
}

pub(super) struct Shard {
    pub(super) residents: FingerprintMap<Fingerprint, Partition>,
    pub(super) absences: Absences,
    /// The oldest first; some are in the journal by now.
    pub(super) refreshed: VecDeque<Refreshed>,
}

impl Shard {
    /// A shard whose partitions were last changed at `revision` or before.
    pub(super) fn new(revision: u64) -> Self {
        Self {
            residents: FingerprintMap::default(),
            absences: Absences::new(revision),
            refreshed: VecDeque::new(),
        }
    }

    /// Drops a partition that was not used since and that the database has.
    pub(super) fn evict(
        &mut self,
        partition: Fingerprint,
        used: u64,
        applied: u64,
    ) -> Option<Partition> {
        let found = self.residents.get(&partition)?;
        if found.used() != used || !found.is_spare(applied) {
            return None;
        }
        let dropped = self.residents.remove(&partition)?;
        let needed = dropped.touched().max(dropped.needed());
        self.absences.note(partition, needed);
        Some(dropped)
    }

    /// The refreshed expire time of an entry of the list, where the journal lacks it.
    pub(super) fn expire_time(&self, refreshed: &Refreshed) -> Option<(&Partition, Option<i64>)> {
        let partition = self.residents.get(&refreshed.partition)?;
        let expire_time = partition.refreshed(&refreshed.key, refreshed.revision)?;
        Some((partition, expire_time))
    }
}
