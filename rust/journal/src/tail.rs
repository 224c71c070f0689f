//! The newest published records in memory, from which the applier reads without touching the disk.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::format::Record;

/// Consecutive records, oldest first. The oldest go when they outgrow the bound or are released.
pub(super) struct Tail {
    held: Mutex<Held>,
    bound: usize,
}

#[derive(Default)]
struct Held {
    records: VecDeque<Record>,
    bytes: usize,
}

fn held_bytes(record: &Record) -> usize {
    record.payload.len() + size_of::<Record>()
}

impl Held {
    fn drop_oldest(&mut self) {
        if let Some(record) = self.records.pop_front() {
            self.bytes -= held_bytes(&record);
        }
    }

    fn first_revision(&self) -> Option<u64> {
        self.records.front().map(|record| record.revision)
    }
}

impl Tail {
    pub(super) fn new(bound: usize) -> Self {
        Self {
            held: Mutex::default(),
            bound,
        }
    }

    /// Appends records; returns the last one's revision.
    pub(super) fn extend(&self, records: impl IntoIterator<Item = Record>) -> Option<u64> {
        let mut held = self.held.lock();
        let mut last = None;
        for record in records {
            last = Some(record.revision);
            held.bytes += held_bytes(&record);
            held.records.push_back(record);
        }
        while held.bytes > self.bound {
            held.drop_oldest();
        }
        last
    }

    /// The oldest revision in memory.
    pub(super) fn first_revision(&self) -> Option<u64> {
        self.held.lock().first_revision()
    }

    /// The records after `revision` and up to `published`, as `budget` allows; `None` when memory does not reach back so far.
    pub(super) fn read_after(
        &self,
        revision: u64,
        published: u64,
        mut budget: Budget,
    ) -> Option<Vec<Record>> {
        let held = self.held.lock();
        let skipped = (revision + 1).checked_sub(held.first_revision()?)?;
        let wanted = held.records.iter().skip(skipped as usize);
        let readable =
            wanted.take_while(|record| record.revision <= published && budget.allows(record));
        Some(readable.cloned().collect())
    }

    pub(super) fn release(&self, applied: u64) {
        let mut held = self.held.lock();
        while held.first_revision().is_some_and(|first| first <= applied) {
            held.drop_oldest();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.held.lock().bytes
    }
}

/// How many bytes of payload a read may still return. The first record always fits, so that every read gets on.
pub(super) struct Budget {
    bytes: usize,
    untouched: bool,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            bytes,
            untouched: true,
        }
    }

    pub(super) fn allows(&mut self, record: &Record) -> bool {
        let left = self.bytes.checked_sub(record.payload.len());
        let allowed = left.is_some() || self.untouched;
        self.bytes = left.unwrap_or(0);
        self.untouched = false;
        allowed
    }
}
