//! Expire times that are set in memory at once and written to the journal later.

use std::sync::Arc;

use super::kinds::Kind;
use super::partition::{Partition, UnappliedExpiry};
use super::removals::PartitionName;
use super::{Place, Records};

/// A record whose expire time the journal lacks, or the database.
#[derive(Clone, Debug)]
pub struct RefreshedRecord {
    pub kind: Arc<Kind>,
    pub tenant: Arc<str>,
    pub conversation_uid: u64,
    pub partition: Arc<[u8]>,
    pub key: Arc<[u8]>,
    /// The record's.
    pub revision: u64,
    pub expire_time: Option<i64>,
}

impl Records {
    /// Sets the expire time of the record of a revision, at `now` on the caller's clock. It is seen at once; it stays in
    /// memory until a change in the journal says the same. False if this record is not the newest of its key, or not
    /// in memory.
    pub fn refresh(
        &self,
        place: &Place<'_>,
        key: &[u8],
        revision: u64,
        expire_time: Option<i64>,
        now: i64,
    ) -> bool {
        let fingerprint = self.fingerprint(place);
        let mut shard = self.shard(fingerprint);
        let Some(partition) = shard.residents.get_mut(&fingerprint) else {
            return false;
        };
        let is_refreshed = self.change_resident(partition, |partition| {
            partition.refresh(key, revision, expire_time, now)
        });
        if is_refreshed {
            shard.expiring.insert(fingerprint);
        }
        is_refreshed
    }

    /// The records whose expire time the journal lacks since `older_than` or longer. Until the journal has it, they count
    /// as refreshed at `now`.
    pub fn take_refreshed(&self, older_than: i64, now: i64) -> Vec<RefreshedRecord> {
        let mut taken = Vec::new();
        self.each_expiring(|partition| {
            let name = partition.name().clone();
            let expiries = partition.take_refreshed(older_than, now);
            taken.extend(expiries.map(|expiry| RefreshedRecord::new(&name, &expiry)));
        });
        taken
    }

    /// All records of a kind whose expire time the database may lack.
    pub fn unapplied_expiries(&self, kind: &Kind, tenant: &str) -> Vec<RefreshedRecord> {
        let mut found = Vec::new();
        self.each_expiring(|partition| {
            let name = partition.name();
            if name.kind.number == kind.number && name.tenant.as_ref() == tenant {
                let expiries = partition.unapplied_expiries();
                found.extend(expiries.map(|expiry| RefreshedRecord::new(name, &expiry)));
            }
        });
        found
    }

    /// Works on each partition with expire times that the database may lack.
    fn each_expiring(&self, mut work: impl FnMut(&mut Partition)) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            for fingerprint in shard.expiring() {
                if let Some(partition) = shard.residents.get_mut(&fingerprint) {
                    self.change_resident(partition, &mut work);
                }
            }
        }
    }
}

impl RefreshedRecord {
    fn new(name: &PartitionName, expiry: &UnappliedExpiry<'_>) -> Self {
        Self {
            kind: Arc::clone(&name.kind),
            tenant: Arc::clone(&name.tenant),
            conversation_uid: name.uid,
            partition: Arc::clone(&name.bytes),
            key: Arc::clone(expiry.key),
            revision: expiry.revision,
            expire_time: expiry.expire_time,
        }
    }
}
