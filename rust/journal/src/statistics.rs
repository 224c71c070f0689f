//! Figures about a journal, for status and metrics.

use std::sync::Arc;

use parking_lot::Mutex;

/// What a journal holds and has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The last revision accepted.
    pub accepted: u64,
    /// The last revision published.
    pub published: u64,
    /// Segment files held, without the one that is prepared.
    pub segments: usize,
    /// Their bytes on disk, used or preallocated.
    pub disk_bytes: u64,
    /// Bytes of records that wait for the writer.
    pub queued_bytes: usize,
    /// Bytes of published records in memory.
    pub memory_bytes: usize,
    /// Batches written and synced.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Records and bytes of the last batch.
    pub last_batch_records: usize,
    pub last_batch_bytes: usize,
    /// Why records are refused for want of room, or of file descriptors.
    pub refusing: Option<Arc<str>>,
    /// Microseconds that the last sync took, and that all took together.
    pub last_sync_micros: u64,
    pub total_sync_micros: u64,
}

impl Statistics {
    /// Mean microseconds of a sync; 0 before the first.
    pub fn mean_sync_micros(&self) -> u64 {
        self.total_sync_micros
            .checked_div(self.batches)
            .unwrap_or(0)
    }
}

/// Counts what the writer does.
#[derive(Default)]
pub(super) struct Counters(Mutex<Statistics>);

impl Counters {
    pub(super) fn count_batch(&self, records: usize, bytes: usize, sync_micros: u64) {
        let mut counted = self.0.lock();
        counted.batches += 1;
        counted.records += records as u64;
        counted.last_batch_records = records;
        counted.last_batch_bytes = bytes;
        counted.last_sync_micros = sync_micros;
        counted.total_sync_micros += sync_micros;
    }

    pub(super) fn read(&self) -> Statistics {
        self.0.lock().clone()
    }
}
