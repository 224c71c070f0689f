//! How a journal is opened, and the findings of opening it.

use super::JournalError;
use super::format::{self, MAX_PAYLOAD_BYTES};
use super::reach::Note;

/// A batch's length is a 32-bit field; no batch outgrows a segment or the queue by more than a record.
const MAX_SEGMENT_BYTES: u64 = 1 << 30;
const MAX_QUEUE_BYTES: usize = 1 << 30;

/// How a journal is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Length of a segment file, preallocated; at most one segment beyond the active one is held ready.
    pub segment_bytes: u64,
    /// Bytes of records that may wait for the writer before `submit_with` blocks.
    pub queue_bytes: usize,
    /// Bytes of published records kept in memory for the applier; older ones are read from disk again.
    pub memory_bytes: usize,
    /// The store the journal must belong to; unset takes the journal's own, or a random one for a new journal.
    pub store_id: Option<[u8; 16]>,
    /// The last revision that was applied; the journal must reach it and must hold every later one.
    pub applied_revision: u64,
    /// Allows an empty directory to start at this revision + 1, as after a restore.
    pub start_after: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            queue_bytes: 8 << 20,
            memory_bytes: 32 << 20,
            store_id: None,
            applied_revision: 0,
            start_after: None,
        }
    }
}

impl Options {
    /// The largest payload: 40 MiB, or what fits a segment of its own.
    pub(super) fn payload_limit(&self) -> usize {
        usize::try_from(format::largest_payload(self.segment_bytes))
            .map_or(MAX_PAYLOAD_BYTES, |fits| fits.min(MAX_PAYLOAD_BYTES))
    }

    pub(super) fn check(&self) -> Result<(), JournalError> {
        if self.payload_limit() == 0 {
            return Err(JournalError::InvalidOptions(
                "segment_bytes is too small for a record",
            ));
        }
        if self.segment_bytes > MAX_SEGMENT_BYTES || self.queue_bytes > MAX_QUEUE_BYTES {
            return Err(JournalError::InvalidOptions(
                "segment_bytes or queue_bytes exceeds 1 GiB",
            ));
        }
        Ok(())
    }
}

/// The findings of opening a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The store the journal belongs to.
    pub store_id: [u8; 16],
    /// The oldest revision held; `last_revision + 1` when no record is held.
    pub first_revision: u64,
    /// The last revision held, or the one before the first that will be written.
    pub last_revision: u64,
    /// Segment files found or created.
    pub segments: usize,
    /// Bytes of batches that were read and checked.
    pub bytes: u64,
    /// The torn end of the last segment, when there was one.
    pub cut: Option<Cut>,
    /// How far the journal was known to have come; `applied` beyond `Options::applied_revision` was lost since.
    pub note: Note,
}

/// Bytes at the end of the last segment that were no whole batch. They were set aside, where there was room, and
/// overwritten with zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// File name of the segment.
    pub segment: String,
    /// Where the bytes began in it.
    pub offset: u64,
    /// How many there were, up to the last that was not zero.
    pub bytes: u64,
    /// The file that keeps them.
    pub kept_in: Option<std::path::PathBuf>,
}
