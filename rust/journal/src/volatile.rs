//! A journal without files: each record is published as it is accepted, and lost when the process ends.

use std::thread;

use bytes::Bytes;
use parking_lot::Mutex;

use super::JournalError;
use super::format::{MAX_PAYLOAD_BYTES, Record};
use super::stream::{InMemory, Stream};

/// Records stay in memory until they are released.
pub(super) struct Volatile {
    accepting: Mutex<Accepting>,
    stream: Stream,
}

struct Accepting {
    next_revision: u64,
    ended: Option<JournalError>,
}

impl Volatile {
    pub(super) fn new() -> Self {
        Self {
            accepting: Mutex::new(Accepting {
                next_revision: 1,
                ended: None,
            }),
            stream: Stream::new(0, usize::MAX),
        }
    }

    pub(super) fn submit(
        &self,
        payload: Bytes,
        accept: impl FnOnce(u64),
    ) -> Result<u64, JournalError> {
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Err(JournalError::TooLarge {
                bytes: payload.len(),
                limit: MAX_PAYLOAD_BYTES,
            });
        }
        let mut accepting = self.accepting.lock();
        if let Some(reason) = &accepting.ended {
            return Err(reason.clone());
        }
        let revision = accepting.next_revision;
        let whole = EndsWherePanicked {
            stream: &self.stream,
            accepting: &mut accepting,
        };
        accept(revision);
        drop(whole);
        accepting.next_revision += 1;
        self.stream.publish([Record { revision, payload }]);
        Ok(revision)
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(super) fn records_after(
        &self,
        revision: u64,
        max_bytes: usize,
    ) -> Result<Vec<Record>, JournalError> {
        match self.stream.read_after(revision, max_bytes) {
            InMemory::Records(records) => Ok(records),
            InMemory::TooOld { published, .. } => Err(JournalError::Released(
                self.stream
                    .tail
                    .first_revision()
                    .map_or(published, |first| first - 1),
            )),
        }
    }

    pub(super) fn release(&self, applied: u64) {
        self.stream
            .tail
            .release(applied.min(self.stream.waiters.published()));
    }

    pub(super) fn close(&self) {
        self.accepting
            .lock()
            .end(&self.stream, JournalError::Closed);
    }

    /// See `Log::end_by_panic`.
    pub(super) fn end_by_panic(&self) {
        self.accepting
            .lock()
            .end(&self.stream, JournalError::panicked());
    }
}

impl Accepting {
    /// Accepts nothing more, for this reason. The first reason stays.
    fn end(&mut self, stream: &Stream, reason: JournalError) {
        self.ended.get_or_insert_with(|| reason.clone());
        stream.end(reason);
    }
}

/// Ends the journal where it is dropped by a panic.
struct EndsWherePanicked<'a> {
    stream: &'a Stream,
    accepting: &'a mut Accepting,
}

impl Drop for EndsWherePanicked<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.accepting.end(self.stream, JournalError::panicked());
        }
    }
}
