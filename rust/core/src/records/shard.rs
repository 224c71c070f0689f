//! A share of all partitions: those that are in memory, and how fresh a load of another must be.

use std::collections::BTreeSet;

use remora_fingerprint::{Fingerprint, FingerprintMap};
use remora_supervision::failpoints::{self, Point};

use super::partition::Partition;
use crate::absences::Absences;

pub(super) struct Shard {
    pub(super) residents: FingerprintMap<Fingerprint, Partition>,
    pub(super) absences: Absences,
    /// The partitions with expire times that the database may lack, and some that had them.
    pub(super) expiring: BTreeSet<Fingerprint>,
}

impl Shard {
    /// A shard whose partitions were last changed at `revision` or before.
    pub(super) fn new(revision: u64) -> Self {
        Self {
            residents: FingerprintMap::default(),
            absences: Absences::new(revision),
            expiring: BTreeSet::new(),
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
        failpoints::hit(Point::RecordsEvicting);
        let needed = dropped.touched().max(dropped.needed());
        self.absences.note(partition, needed);
        Some(dropped)
    }

    /// The partitions with expire times that the database may lack.
    pub(super) fn expiring(&mut self) -> Vec<Fingerprint> {
        let residents = &self.residents;
        self.expiring.retain(|partition| {
            let partition = residents.get(partition);
            partition.is_some_and(Partition::has_unapplied_expiries)
        });
        self.expiring.iter().copied().collect()
    }
}
