//! Expire times that change after a record was written.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Partition;
use crate::records::entry::Entry;
use crate::records::order::Key;

/// An expire time of a record that is not in memory, which the database may lack.
pub(super) struct Late {
    key: Key,
    record_revision: u64,
    expire_time: Option<i64>,
    revision: u64,
}

/// An expire time of a record that is in memory.
pub(super) struct Expiry {
    expire_time: Option<i64>,
    lack: Lack,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// The journal lacks it since this time, on the caller's clock.
    Journal { since: i64 },
    /// The database lacks it until it has this revision.
    Database { until: u64 },
}

/// An expire time that the database may lack.
pub(in crate::records) struct UnappliedExpiry<'a> {
    pub(in crate::records) key: &'a Key,
    /// The record's.
    pub(in crate::records) revision: u64,
    pub(in crate::records) expire_time: Option<i64>,
}

impl Partition {
    /// Gives the record of a revision another expire time, at `revision`, unless memory has a newer one.
    pub(in crate::records) fn expire(
        &mut self,
        key: &Key,
        record_revision: u64,
        expire_time: Option<i64>,
        revision: u64,
    ) {
        self.touched = revision;
        let expiring = (Arc::clone(key), record_revision);
        if self
            .expiries
            .get(&expiring)
            .is_some_and(|newer| newer.is_newer_than(expire_time))
        {
            return;
        }
        let Some(entry) = self.entries.get_mut(key) else {
            if self.whole_since != Some(0) && !self.is_complete_at(key) {
                self.push_late(expiring, expire_time, revision);
            }
            return;
        };
        let version = entry.version_mut(record_revision);
        if let Some(held) = version.and_then(|version| version.held.as_mut()) {
            held.expire_time = expire_time;
            let lack = Lack::Database { until: revision };
            self.expiries.insert(expiring, Expiry { expire_time, lack });
        } else if !entry.is_rooted() {
            self.push_late(expiring, expire_time, revision);
        }
    }

    fn push_late(
        &mut self,
        (key, record_revision): (Key, u64),
        expire_time: Option<i64>,
        revision: u64,
    ) {
        self.late.push(Late {
            key,
            record_revision,
            expire_time,
            revision,
        });
    }

    /// Gives the newest record of a key another expire time, which the journal lacks, at `now`. False if this is not
    /// its revision.
    pub(in crate::records) fn refresh(
        &mut self,
        key: &[u8],
        revision: u64,
        expire_time: Option<i64>,
        now: i64,
    ) -> bool {
        let Some((key, _)) = self.entries.get_key_value(key) else {
            return false;
        };
        let expiring = (Arc::clone(key), revision);
        let newest = self.entries.get_mut(&expiring.0).map(Entry::newest_mut);
        let newest = newest.filter(|newest| newest.revision == revision);
        let Some(held) = newest.and_then(|newest| newest.held.as_mut()) else {
            return false;
        };
        held.expire_time = expire_time;
        let since = self
            .expiries
            .get(&expiring)
            .and_then(Expiry::refreshed_since);
        let lack = Lack::Journal {
            since: since.unwrap_or(now),
        };
        self.expiries.insert(expiring, Expiry { expire_time, lack });
        true
    }

    /// The expire times that the journal lacks since `older_than` or longer; from now on it lacks them since `now`.
    pub(in crate::records) fn take_refreshed(
        &mut self,
        older_than: i64,
        now: i64,
    ) -> impl Iterator<Item = UnappliedExpiry<'_>> {
        self.expiries
            .iter_mut()
            .filter_map(move |((key, revision), expiry)| {
                expiry
                    .refreshed_since()
                    .filter(|since| *since <= older_than)?;
                expiry.lack = Lack::Journal { since: now };
                Some(UnappliedExpiry {
                    key,
                    revision: *revision,
                    expire_time: expiry.expire_time,
                })
            })
    }

    /// The expire times that are seen and that the database may lack, by key and revision of the record.
    pub(in crate::records) fn unapplied_expiries(
        &self,
    ) -> impl Iterator<Item = UnappliedExpiry<'_>> {
        let late = self.late.iter();
        let late = late.map(|late| ((&late.key, late.record_revision), late.expire_time));
        let expiries = self.expiries.iter();
        let expiries =
            expiries.map(|((key, revision), expiry)| ((key, *revision), expiry.expire_time));
        let newest: BTreeMap<_, _> = late.chain(expiries).collect();
        newest
            .into_iter()
            .map(|((key, revision), expire_time)| UnappliedExpiry {
                key,
                revision,
                expire_time,
            })
    }

    pub(in crate::records) fn has_unapplied_expiries(&self) -> bool {
        !self.expiries.is_empty() || !self.late.is_empty()
    }

    /// Whether the journal lacks an expire time.
    pub(super) fn lacks_expiries(&self) -> bool {
        let mut expiries = self.expiries.values();
        expiries.any(|expiry| expiry.refreshed_since().is_some())
    }

    /// Says that the record of a revision ends at another one, or is replaced within the same.
    pub(super) fn end_expiry(&mut self, key: &Key, record_revision: u64, revision: u64) {
        if self.expiries.is_empty() {
            return;
        }
        let expiring = (Arc::clone(key), record_revision);
        if record_revision == revision {
            self.expiries.remove(&expiring);
            return;
        }
        let ended = self.expiries.get_mut(&expiring);
        if let Some(expiry) = ended.filter(|expiry| expiry.refreshed_since().is_some()) {
            expiry.lack = Lack::Database { until: revision };
            self.touched = self.touched.max(revision);
        }
    }

    /// Drops the expire times of a key that the database has.
    pub(super) fn settle_expiries(&mut self, key: &Key, applied: u64) {
        let range = (Arc::clone(key), 0)..=(Arc::clone(key), u64::MAX);
        let settled = self.expiries.range(range);
        let settled = settled.filter(|(_, expiry)| expiry.is_settled(applied));
        let settled: Vec<_> = settled.map(|(expiring, _)| expiring.clone()).collect();
        for expiring in settled {
            self.expiries.remove(&expiring);
        }
    }

    /// Drops the expire times that the database has.
    pub(in crate::records) fn settle_late(&mut self, applied: u64) {
        let needed = &mut self.needed;
        self.late.retain(|late| {
            let is_applied = late.revision <= applied;
            if is_applied {
                *needed = late.revision.max(*needed);
            }
            !is_applied
        });
    }

    /// The expire time of the record of a revision, where the database may have an older one.
    pub(super) fn late_expiry(&self, key: &Key, record_revision: u64) -> Option<Option<i64>> {
        let mut newest_first = self.late.iter().rev();
        let late = newest_first
            .find(|late| late.key == *key && late.record_revision == record_revision)?;
        Some(late.expire_time)
    }
}

impl Expiry {
    /// Since when the journal lacks it, where it does.
    fn refreshed_since(&self) -> Option<i64> {
        match self.lack {
            Lack::Journal { since } => Some(since),
            Lack::Database { .. } => None,
        }
    }

    /// Whether it was set after one that comes from the journal.
    fn is_newer_than(&self, expire_time: Option<i64>) -> bool {
        self.refreshed_since().is_some() && self.expire_time != expire_time
    }

    fn is_settled(&self, applied: u64) -> bool {
        matches!(self.lack, Lack::Database { until } if until <= applied)
    }
}
