//! What the writer of a journal and its callers share.

use super::JournalError;
use super::directory::Directory;
use super::queue::Queue;
use super::reach::Reach;
use super::segments::Segments;
use super::statistics::Counters;
use super::stream::Stream;

/// What the writer and the callers share.
pub(super) struct Shared {
    pub(super) directory: Directory,
    pub(super) store_id: [u8; 16],
    pub(super) segment_bytes: u64,
    pub(super) queue: Queue,
    pub(super) stream: Stream,
    pub(super) segments: Segments,
    pub(super) counters: Counters,
    pub(super) reach: Reach,
}

impl Shared {
    /// Ends accepting, queueing and waiting.
    pub(super) fn end(&self, reason: JournalError) {
        self.queue.end(reason.clone());
        self.queue.abandon();
        self.stream.end(reason);
    }
}
