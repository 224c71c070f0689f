//! Expire times that are set in memory at once and written to the journal later.

use std::sync::Arc;

use super::kinds::Kind;
use super::shard::{Refreshed, Shard};
use super::{Place, Records};

/// A record whose expire time the journal lacks.
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
    /// memory until a change in the journal says the same. False where this record is not the newest of its key, or not
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
        let refreshed = self.change_resident(partition, |partition| {
            partition.refresh(key, revision, expire_time)
        });
        if refreshed == Some(true) {
            shard.refreshed.push_back(Refreshed {
                since: now,
                partition: fingerprint,
                key: key.into(),
                revision,
            });
        }
        refreshed.is_some()
    }

    /// The records whose expire time the journal lacks since `older_than` or longer. They come again with the next call,
    /// until the journal has it.
    pub fn take_refreshed(&self, older_than: i64) -> Vec<RefreshedRecord> {
        let mut taken = Vec::new();
        for shard in &self.shards {
            take_from(&mut shard.lock(), older_than, &mut taken);
        }
        taken
    }

    /// All records of a kind whose expire time the journal lacks.
    pub fn refreshed(&self, kind: &Kind, tenant: &str) -> Vec<RefreshedRecord> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let refreshed = shard.refreshed.iter();
            let refreshed = refreshed.filter_map(|refreshed| record(&shard, refreshed));
            found.extend(refreshed.filter(|record| {
                record.kind.number == kind.number && record.tenant.as_ref() == tenant
            }));
        }
        found
    }
}

fn take_from(shard: &mut Shard, older_than: i64, taken: &mut Vec<RefreshedRecord>) {
    let mut refreshed = std::mem::take(&mut shard.refreshed);
    refreshed.retain(|refreshed| {
        let record = record(shard, refreshed);
        let is_due = refreshed.since <= older_than;
        taken.extend(record.clone().filter(|_| is_due));
        record.is_some()
    });
    shard.refreshed = refreshed;
}

fn record(shard: &Shard, refreshed: &Refreshed) -> Option<RefreshedRecord> {
    let (partition, expire_time) = shard.expire_time(refreshed)?;
    let name = partition.name();
    Some(RefreshedRecord {
        kind: Arc::clone(&name.kind),
        tenant: Arc::clone(&name.tenant),
        conversation_uid: name.uid,
        partition: Arc::clone(&name.bytes),
        key: Arc::clone(&refreshed.key),
        revision: refreshed.revision,
        expire_time,
    })
}
