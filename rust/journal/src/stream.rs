//! The published records: the order that readers see, the newest ones in memory, and the threads that wait for more.

use super::JournalError;
use super::format::Record;
use super::tail::{Budget, Tail};
use super::waiters::Waiters;

pub(super) struct Stream {
    pub(super) waiters: Waiters,
    pub(super) tail: Tail,
}

/// Records that a read found in memory, or where else to look.
pub(super) enum InMemory {
    Records(Vec<Record>),
    /// They are older than what memory holds.
    TooOld {
        published: u64,
        budget: Budget,
    },
}

impl Stream {
    pub(super) fn new(last_revision: u64, memory_bytes: usize) -> Self {
        Self {
            waiters: Waiters::new(last_revision),
            tail: Tail::new(memory_bytes),
        }
    }

    /// Shows consecutive records to readers. They are in memory before anyone learns that they are published.
    pub(super) fn publish(&self, records: impl IntoIterator<Item = Record>) {
        if let Some(last) = self.tail.extend(records) {
            self.waiters.publish(last);
        }
    }

    /// The published records after `revision`, oldest first, of at most `max_bytes` of payload, but at least one.
    pub(super) fn read_after(&self, revision: u64, max_bytes: usize) -> InMemory {
        let published = self.waiters.published();
        if revision >= published {
            return InMemory::Records(Vec::new());
        }
        match self
            .tail
            .read_after(revision, published, Budget::new(max_bytes))
        {
            Some(records) => InMemory::Records(records),
            None => InMemory::TooOld {
                published,
                budget: Budget::new(max_bytes),
            },
        }
    }

    pub(super) fn end(&self, reason: JournalError) {
        self.waiters.end(reason);
    }
}
