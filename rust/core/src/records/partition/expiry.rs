//! Expire times that change after a record was written.

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

impl Partition {
    /// Gives the record of a revision another expire time, at `revision`.
    pub(in crate::records) fn expire(
        &mut self,
        key: &Key,
        record_revision: u64,
        expire_time: Option<i64>,
        revision: u64,
    ) {
        self.touched = revision;
        let is_here = match self.entries.get_mut(key) {
            Some(entry) => {
                let settled = set_expiry(entry, record_revision, expire_time);
                self.refreshed -= usize::from(settled == Expiry::Journaled);
                settled != Expiry::NotHeld || entry.is_rooted()
            }
            None => self.whole_since == Some(0) || self.is_complete_at(key),
        };
        if !is_here {
            self.late.push(Late {
                key: Arc::clone(key),
                record_revision,
                expire_time,
                revision,
            });
        }
    }

    /// Gives the newest record of a key another expire time, which the journal does not have yet. `None` where this is
    /// not its revision; else whether the journal had the one before.
    pub(in crate::records) fn refresh(
        &mut self,
        key: &[u8],
        revision: u64,
        expire_time: Option<i64>,
    ) -> Option<bool> {
        let entry = self.entries.get_mut(key)?;
        let newest = entry.newest_mut();
        let held = newest
            .held
            .as_mut()
            .filter(|_| newest.revision == revision)?;
        held.expire_time = expire_time;
        let is_first = !std::mem::replace(&mut entry.is_refreshed, true);
        self.refreshed += usize::from(is_first);
        Some(is_first)
    }

    /// The refreshed expire time of a record; `None` where the journal has it, or the record is not there any more.
    pub(in crate::records) fn refreshed(&self, key: &Key, revision: u64) -> Option<Option<i64>> {
        let entry = self.entries.get(key)?;
        let newest = entry.newest();
        let is_refreshed = entry.is_refreshed && newest.revision == revision;
        is_refreshed.then(|| newest.held.as_ref()?.expire_time)
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

#[derive(PartialEq)]
enum Expiry {
    Set,
    /// It is the one that was set in memory before.
    Journaled,
    NotHeld,
}

/// Sets the expire time of the record of a revision, unless memory has a newer one.
fn set_expiry(entry: &mut Entry, record_revision: u64, expire_time: Option<i64>) -> Expiry {
    let is_newest = entry.newest().revision == record_revision;
    let is_refreshed = is_newest && entry.is_refreshed;
    let version = entry.version_mut(record_revision);
    let Some(held) = version.and_then(|version| version.held.as_mut()) else {
        return Expiry::NotHeld;
    };
    if !is_refreshed {
        held.expire_time = expire_time;
        return Expiry::Set;
    }
    if held.expire_time != expire_time {
        return Expiry::Set;
    }
    entry.is_refreshed = false;
    Expiry::Journaled
}
