//! Removals of many records, kept until the database has them. Partitions apply them when they are next used, and loaded
//! records are filtered by them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::kinds::Kind;

/// Which partition.
#[derive(Clone, Debug)]
pub(super) struct PartitionName {
    pub(super) kind: Arc<Kind>,
    pub(super) tenant: Arc<str>,
    pub(super) uid: u64,
    pub(super) bytes: Arc<[u8]>,
}

/// What a removal removes.
#[derive(Debug)]
pub(super) enum Extent {
    Partition(PartitionName),
    /// Every partition that begins as this one.
    Prefix(PartitionName),
    Conversation(u64),
    User {
        kinds: Vec<Arc<Kind>>,
        tenant: Arc<str>,
        user: String,
    },
}

#[derive(Debug)]
pub(super) struct Removal {
    pub(super) revision: u64,
    pub(super) extent: Extent,
}

impl Removal {
    /// Whether it takes records of a partition.
    pub(super) fn concerns(&self, name: &PartitionName) -> bool {
        match &self.extent {
            Extent::Partition(other) => other.is_beside(name) && other.bytes == name.bytes,
            Extent::Prefix(other) => other.is_beside(name) && name.bytes.starts_with(&other.bytes),
            Extent::Conversation(uid) => name.kind.of_conversation && name.uid == *uid,
            Extent::User { kinds, tenant, .. } => {
                let mut kinds = kinds.iter();
                *tenant == name.tenant && kinds.any(|kind| kind.number == name.kind.number)
            }
        }
    }

    /// Whether it takes a user's records of the partitions that it concerns.
    pub(super) fn takes(&self, owner: &str) -> bool {
        match &self.extent {
            Extent::User { user, .. } => user == owner,
            _ => true,
        }
    }

    /// Whether it takes all records of the partitions that it concerns.
    pub(super) fn takes_all(&self) -> bool {
        !matches!(self.extent, Extent::User { .. })
    }
}

impl PartitionName {
    /// Whether the two differ in their bytes only.
    fn is_beside(&self, other: &Self) -> bool {
        self.kind.number == other.kind.number
            && self.uid == other.uid
            && self.tenant == other.tenant
    }
}

/// The removals that the database lacks, numbered from 0.
pub(super) struct Removals {
    log: Mutex<Log>,
    /// How many there ever were.
    count: AtomicU64,
}

struct Log {
    removals: VecDeque<Arc<Removal>>,
    /// The number of the first.
    first: u64,
    /// The newest revision of those that the database has.
    applied: u64,
}

impl Removals {
    /// None, and what there was before was of `applied` or earlier.
    pub(super) fn new(applied: u64) -> Self {
        let log = Log {
            removals: VecDeque::new(),
            first: 0,
            applied,
        };
        Self {
            log: Mutex::new(log),
            count: AtomicU64::new(0),
        }
    }

    /// Adds a removal; in the order of revisions.
    pub(super) fn add(&self, revision: u64, extent: Extent) {
        let mut log = self.log.lock();
        log.removals
            .push_back(Arc::new(Removal { revision, extent }));
        self.count.fetch_add(1, Ordering::Release);
    }

    /// How many there ever were. It includes those of every revision that was published before it was asked.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Those from a number on that concern a partition, and how many there ever were.
    pub(super) fn since(&self, number: u64, name: &PartitionName) -> (Vec<Arc<Removal>>, u64) {
        let log = self.log.lock();
        let skipped = number.saturating_sub(log.first) as usize;
        let concerned = log.removals.iter().skip(skipped);
        let concerned = concerned.filter(|removal| removal.concerns(name));
        let end = log.first + log.removals.len() as u64;
        (concerned.cloned().collect(), end)
    }

    /// Those after a revision that concern a partition; `None` if the database has some of them by now.
    pub(super) fn after(&self, revision: u64, name: &PartitionName) -> Option<Vec<Arc<Removal>>> {
        let log = self.log.lock();
        if revision < log.applied {
            return None;
        }
        let later = log.removals.iter().filter(|r| r.revision > revision);
        let concerned = later.filter(|removal| removal.concerns(name));
        Some(concerned.cloned().collect())
    }

    /// Whether some are of `applied` or earlier.
    pub(super) fn has_applied(&self, applied: u64) -> bool {
        let log = self.log.lock();
        let first = log.removals.front();
        first.is_some_and(|removal| removal.revision <= applied)
    }

    /// Releases those that the database has, once every partition has taken them in.
    pub(super) fn forget(&self, applied: u64) {
        let mut log = self.log.lock();
        while let Some(removal) = log.removals.front()
            && removal.revision <= applied
        {
            log.applied = removal.revision;
            log.removals.pop_front();
            log.first += 1;
        }
    }
}
