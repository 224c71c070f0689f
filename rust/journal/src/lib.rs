//! The journal: an append-only log of opaque records, durable before it is acknowledged, read again by the applier.
//!
//! Each record has a **revision**, counted from 1 without gaps. It is *accepted* when it has its revision and its place in
//! the queue, and *published* when it is written and synced: one thread writes all queued records as one batch, syncs
//! once, and publishes in order. The first write or sync that fails stops the journal for good. `format` has the format,
//! and `recovery` what is refused when a journal is opened.
//!
//! Locks, in the order in which they are taken: `Log::writer`, which closing and releasing hold throughout; any one of the
//! others. `accept` runs under the lock of the queue, or under `Volatile::accepting`, so that the locks of what follows the
//! journal come behind these. A journal without files publishes under `Volatile::accepting`, too.
//!
//! Knows: `supervision`. It must not know the content of records or the memory that follows the journal.

mod batches;
mod directory;
mod error;
mod failpoints;
mod faults;
mod format;
mod inspection;
mod log;
mod options;
mod queue;
mod reach;
mod recovery;
mod segment;
mod segments;
mod shared;
mod statistics;
mod stream;
mod tail;
#[cfg(test)]
mod tests;
mod volatile;
mod waiters;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

pub use error::JournalError;
pub use format::{MAX_PAYLOAD_BYTES, Record};
pub use inspection::{Finding, Inspection, SegmentReport, inspect, salvage};
pub use options::{Cut, Options, Recovery};
pub use reach::{Note, Reached};
pub use statistics::Statistics;
pub use waiters::Waited;

use log::Log;
use stream::Stream;
use volatile::Volatile;

/// An open journal. Shared between threads by reference; dropping it writes what is queued.
pub struct Journal {
    kind: Kind,
}

enum Kind {
    Durable(Log),
    Volatile(Box<Volatile>),
}

impl Journal {
    /// Opens the journal in `directory`, or begins one there, and says what was found.
    ///
    /// Every batch is read and checked. A torn end of the last segment is cut off, kept aside and reported; any other
    /// damage, a missing, foreign or renamed segment, a journal that does not join `applied_revision` and one that ends
    /// before what is known to have been published are refused.
    pub fn open(
        directory: impl AsRef<Path>,
        options: Options,
    ) -> Result<(Self, Recovery), JournalError> {
        let (log, recovery) = Log::open(directory.as_ref(), &options)?;
        let kind = Kind::Durable(log);
        Ok((Self { kind }, recovery))
    }

    /// A journal in memory, empty, without files: what is accepted is published at once and held until it is released.
    pub fn volatile() -> Self {
        Self {
            kind: Kind::Volatile(Box::new(Volatile::new())),
        }
    }

    /// Accepts a record and returns its revision, waiting while the queue is full.
    ///
    /// `accept` runs with the revision under the queue's lock, so that effects happen in the order of revisions and before
    /// the record can be published. It must be brief and must not submit to this journal or wait for it. If it panics,
    /// neither this record nor a later one is accepted: once the earlier records are published, the journal ends as if a
    /// write had failed. Fails with `Full` or `TooLarge` without having accepted anything, and with `Failed` or `Closed`
    /// for good.
    pub fn submit_with(
        &self,
        payload: impl Into<Bytes>,
        accept: impl FnOnce(u64),
    ) -> Result<u64, JournalError> {
        self.submit_until(None, payload.into(), accept)
    }

    /// As `submit_with`, but waits for at most `patience`, then fails with `Busy`.
    pub fn submit_within(
        &self,
        patience: Duration,
        payload: impl Into<Bytes>,
        accept: impl FnOnce(u64),
    ) -> Result<u64, JournalError> {
        self.submit_until(Instant::now().checked_add(patience), payload.into(), accept)
    }

    fn submit_until(
        &self,
        deadline: Option<Instant>,
        payload: Bytes,
        accept: impl FnOnce(u64),
    ) -> Result<u64, JournalError> {
        match &self.kind {
            Kind::Durable(log) => log.submit(payload, deadline, accept),
            Kind::Volatile(volatile) => volatile.submit(payload, accept),
        }
    }

    /// The last revision accepted.
    pub fn accepted(&self) -> u64 {
        match &self.kind {
            Kind::Durable(log) => log.accepted(),
            Kind::Volatile(_) => self.published(),
        }
    }

    /// The last revision published: it and all before it are durable.
    pub fn published(&self) -> u64 {
        self.stream().waiters.published()
    }

    /// Waits until `revision` is published, for at most `timeout` (`None`: without end). The revision need not have been
    /// accepted yet: `wait(published() + 1, ..)` waits for whatever comes next. Fails when the journal failed or was
    /// closed before publishing it.
    pub fn wait(&self, revision: u64, timeout: Option<Duration>) -> Result<Waited, JournalError> {
        self.stream().waiters.wait(revision, timeout)
    }

    /// Has `changed` called after each publication, and when the journal ends, in the thread that publishes: it
    /// must be short. False if another follows already.
    pub fn follow(&self, changed: Arc<dyn Fn() + Send + Sync>) -> bool {
        self.stream().waiters.follow(changed)
    }

    /// The published records after `revision`, oldest first, with at most `max_bytes` of payload together, but at least one
    /// if there is one. They are read from memory, or from disk if memory does not reach back far enough.
    pub fn records_after(
        &self,
        revision: u64,
        max_bytes: usize,
    ) -> Result<Vec<Record>, JournalError> {
        match &self.kind {
            Kind::Durable(log) => log.records_after(revision, max_bytes),
            Kind::Volatile(volatile) => volatile.records_after(revision, max_bytes),
        }
    }

    /// Says that records up to `applied` need not be held in memory: they leave it, but not the disk.
    pub fn forget(&self, applied: u64) {
        let stream = self.stream();
        stream.tail.release(applied.min(stream.waiters.published()));
    }

    /// Bytes of published records in memory.
    pub fn memory_bytes(&self) -> usize {
        self.stream().tail.bytes()
    }

    /// Says that records up to `revision` were applied: opening the journal again tells when that was lost since.
    pub fn mark_applied(&self, revision: u64) {
        if let Kind::Durable(log) = &self.kind {
            log.mark_applied(revision);
        }
    }

    /// Says that records up to `applied` will not be asked for again: they leave memory, and segments that hold no later
    /// ones are deleted, except the one that is written on.
    pub fn release(&self, applied: u64) -> Result<(), JournalError> {
        match &self.kind {
            Kind::Durable(log) => log.release(applied),
            Kind::Volatile(volatile) => {
                volatile.release(applied);
                Ok(())
            }
        }
    }

    /// Why the journal accepts nothing any more: `Failed` or `Closed`; `None` while it does.
    pub fn ended(&self) -> Option<JournalError> {
        self.stream().waiters.ended()
    }

    /// Ends the journal as a panic in `accept` does: one elsewhere left half of a change behind.
    pub fn end_by_panic(&self) {
        match &self.kind {
            Kind::Durable(log) => log.end_by_panic(),
            Kind::Volatile(volatile) => volatile.end_by_panic(),
        }
    }

    /// Figures for status.
    pub fn statistics(&self) -> Statistics {
        let counted = match &self.kind {
            Kind::Durable(log) => log.statistics(),
            Kind::Volatile(_) => Statistics::default(),
        };
        Statistics {
            accepted: self.accepted(),
            published: self.published(),
            memory_bytes: self.memory_bytes(),
            ..counted
        }
    }

    /// Writes what is queued, publishes it and accepts nothing more. Fails when it could not be written.
    pub fn close(&self) -> Result<(), JournalError> {
        match &self.kind {
            Kind::Durable(log) => log.close(),
            Kind::Volatile(volatile) => volatile.close(),
        }
        match self.ended() {
            Some(JournalError::Closed) | None => Ok(()),
            Some(failure) => Err(failure),
        }
    }

    fn stream(&self) -> &Stream {
        match &self.kind {
            Kind::Durable(log) => log.stream(),
            Kind::Volatile(volatile) => volatile.stream(),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Everyone who waited has got the failure.
        let _ = self.close();
    }
}
