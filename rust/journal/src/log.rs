//! A journal on disk, and the writer's thread.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;

use super::directory::Directory;
use super::failpoints;
use super::format::{Record, batch_room};
use super::queue::Queue;
use super::reach::{Reach, Reached};
use super::recovery::{self, Opened};
use super::segment::Segment;
use super::segments::Segments;
use super::shared::Shared;
use super::statistics::{Counters, Statistics};
use super::stream::{InMemory, Stream};
use super::writer::Writer;
use super::{JournalError, Options, Recovery};

/// An open journal on disk.
pub(super) struct Log {
    shared: Arc<Shared>,
    payload_limit: usize,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Log {
    pub(super) fn open(path: &Path, options: &Options) -> Result<(Self, Recovery), JournalError> {
        options.check()?;
        failpoints::arm_from_environment()?;
        let directory = Directory::open(path)?;
        let opened = recovery::open(&directory, options)?;
        let recovery = opened.recovery.clone();
        let log = Self::start(directory, options, opened)?;
        Ok((log, recovery))
    }

    fn start(
        directory: Directory,
        options: &Options,
        opened: Opened,
    ) -> Result<Self, JournalError> {
        let Opened {
            segments,
            end,
            recovery,
            active,
        } = opened;
        let path = directory.path().to_owned();
        let written = end - Segment::BEGIN;
        let room = batch_room(active.header.segment_bytes).saturating_sub(written);
        let next_revision = recovery.last_revision + 1;
        let reached = Reached {
            published: recovery.last_revision,
            applied: options.applied_revision,
        };
        let reach = Reach::begin(&path, recovery.store_id, reached);
        let shared = Arc::new(Shared {
            directory,
            store_id: recovery.store_id,
            segment_bytes: options.segment_bytes,
            queue: Queue::new(
                next_revision,
                room,
                options.queue_bytes,
                options.segment_bytes,
            ),
            stream: Stream::new(recovery.last_revision, options.memory_bytes),
            segments: Segments::new(segments),
            counters: Counters::default(),
            reach,
        });
        let writer = Writer::new(Arc::clone(&shared), active, end);
        let thread = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(|| writer.run());
        Ok(Self {
            shared,
            payload_limit: options.payload_limit(),
            writer: Mutex::new(Some(
                thread.map_err(|source| JournalError::io(&path, source))?,
            )),
        })
    }

    pub(super) fn submit(
        &self,
        payload: Bytes,
        deadline: Option<Instant>,
        accept: impl FnOnce(u64),
    ) -> Result<u64, JournalError> {
        if payload.len() > self.payload_limit {
            return Err(JournalError::TooLarge {
                bytes: payload.len(),
                limit: self.payload_limit,
            });
        }
        self.shared.queue.push(payload, deadline, accept)
    }

    pub(super) fn accepted(&self) -> u64 {
        self.shared.queue.accepted()
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.shared.stream
    }

    pub(super) fn records_after(
        &self,
        revision: u64,
        max_bytes: usize,
    ) -> Result<Vec<Record>, JournalError> {
        match self.shared.stream.read_after(revision, max_bytes) {
            InMemory::Records(records) => Ok(records),
            InMemory::TooOld { published, budget } => {
                self.shared.segments.read_after(revision, published, budget)
            }
        }
    }

    /// Accepts nothing more, as after a panic within a change; what was accepted is written.
    pub(super) fn end_by_panic(&self) {
        self.shared.queue.end(JournalError::panicked());
    }

    pub(super) fn mark_applied(&self, revision: u64) {
        self.shared.reach.note_applied(revision);
    }

    pub(super) fn release(&self, applied: u64) -> Result<(), JournalError> {
        // Held throughout, so that a directory that was closed, and may be another's by now, is not touched.
        let writer = self.writer.lock();
        if writer.is_none() {
            return Err(JournalError::Closed);
        }
        let applied = applied.min(self.shared.stream.waiters.published());
        self.shared.stream.tail.release(applied);
        if self
            .shared
            .segments
            .release(&self.shared.directory, applied)?
        {
            self.shared.queue.space_was_freed();
        }
        Ok(())
    }

    pub(super) fn statistics(&self) -> Statistics {
        let (segments, disk_bytes) = self.shared.segments.extent();
        Statistics {
            segments,
            disk_bytes,
            queued_bytes: self.shared.queue.bytes(),
            refusing: self.shared.queue.refusing(),
            ..self.shared.counters.read()
        }
    }

    /// Writes what is queued, joins the writer and lets others open the directory.
    pub(super) fn close(&self) {
        self.shared.queue.end(JournalError::Closed);
        if let Some(writer) = self.writer.lock().take() {
            // The writer catches its own panics, and reports them as the journal's failure.
            let _ = writer.join();
            self.shared.directory.unlock();
        }
    }
}
