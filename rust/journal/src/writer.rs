//! The one thread that writes: takes what is queued, writes and syncs it as one batch, publishes it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::error::{JournalError, is_lack};
use super::failpoints::{self, Point};
use super::format::{BatchHeader, Entry, Record, encode_batch};
use super::queue::Work;
use super::segment::{Segment, Spare};
use super::shared::Shared;

/// A buffer larger than this is given back after the batch that needed it.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// How far the active segment is filled with zeros ahead of its batches.
const FILLED_BYTES: u64 = 256 << 10;

/// How long records gather for the next batch where the last one held several: a batch costs a sync, and whole pages of
/// the disk, however few it holds. Who writes alone never waits.
const GATHERING: Duration = Duration::from_micros(300);

pub(super) struct Writer {
    shared: Arc<Shared>,
    active: Arc<Segment>,
    /// Where the next batch of the active segment begins.
    offset: u64,
    /// Up to where the active segment was written to, with batches or zeros.
    filled: u64,
    spare: Option<Spare>,
    buffer: Vec<u8>,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, active: Arc<Segment>, offset: u64) -> Self {
        Self {
            shared,
            active,
            offset,
            filled: offset,
            spare: None,
            buffer: Vec::new(),
        }
    }

    /// Writes until the queue is closed and empty, or until a write fails. Nothing that failed is tried again.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let end = match catch_unwind(AssertUnwindSafe(|| self.work())) {
            Ok(Ok(())) => shared.queue.ended().unwrap_or(JournalError::Closed),
            Ok(Err(error)) => JournalError::Failed(error.to_string().into()),
            Err(_) => JournalError::Failed("the writer panicked".into()),
        };
        shared.end(end);
        Spare::discard(&shared.directory);
    }

    fn work(&mut self) -> io::Result<()> {
        while let Some(work) = self.shared.queue.take() {
            match work {
                Work::PrepareSpare => self.prepare_spare()?,
                Work::Write {
                    entries,
                    begins_segment,
                } => {
                    if begins_segment {
                        self.begin_segment(&entries)?;
                    }
                    let gathers = entries.len() > 1;
                    self.write(entries)?;
                    if gathers {
                        thread::sleep(GATHERING);
                    }
                }
            }
        }
        Ok(())
    }

    /// Lack of space, or of file descriptors, is no failure: nothing was accepted that needs the spare.
    fn prepare_spare(&mut self) -> io::Result<()> {
        let shared = &self.shared;
        let room = shared.segments.unapplied_bytes(shared.reach.applied());
        match Spare::prepare_leaving_room(&shared.directory, shared.segment_bytes, room) {
            Ok(spare) => {
                self.spare = Some(spare);
                self.shared.queue.spare_is_ready();
            }
            Err(error) if is_lack(&error) => {
                self.shared
                    .queue
                    .spare_was_refused(error.to_string().into());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Goes on in the spare segment. Its predecessor is sealed once it has its name: a seal without a successor is damage.
    fn begin_segment(&mut self, entries: &[Entry]) -> io::Result<()> {
        let missing = || io::Error::other("no segment was prepared");
        let (spare, first) = (
            self.spare.take().ok_or_else(missing)?,
            entries.first().ok_or_else(missing)?,
        );
        let next = spare.begin(&self.shared.directory, self.shared.store_id, first.revision)?;
        let seal = BatchHeader::seal(first.revision).encode(self.active.scope(), self.offset);
        self.active.write(&seal, self.offset)?;
        self.active.sync()?;
        failpoints::hit(Point::SegmentSealed, self.shared.directory.path())?;
        self.active = Arc::new(next);
        self.offset = Segment::BEGIN;
        self.filled = Segment::BEGIN;
        self.shared.segments.push(Arc::clone(&self.active));
        self.shared.queue.spare_was_used();
        Ok(())
    }

    fn write(&mut self, entries: Vec<Entry>) -> io::Result<()> {
        encode_batch(&mut self.buffer, self.active.scope(), self.offset, &entries);
        self.check_room()?;
        self.fill_ahead()?;
        let sync_micros = self.write_buffer()?;
        self.shared.queue.was_written_together(entries.len());
        self.shared
            .counters
            .count_batch(entries.len(), self.buffer.len(), sync_micros);
        if let Some(first) = entries.first() {
            self.active.mark(first.revision, self.offset);
        }
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER_BYTES);
        if let Some(last) = entries.last() {
            self.shared.reach.note_published(last.revision);
        }
        self.shared
            .stream
            .publish(entries.into_iter().map(Record::from));
        Ok(())
    }

    /// Room was counted when the entries were accepted; a batch that outgrew it would write behind the allocated blocks.
    fn check_room(&self) -> io::Result<()> {
        let room = super::format::batch_room(self.active.header.segment_bytes) + Segment::BEGIN;
        if self.offset + self.buffer.len() as u64 > room {
            return Err(io::Error::other("a batch outgrew its segment"));
        }
        Ok(())
    }

    /// Fills what comes after the batch in the buffer, unless an earlier filling reaches as far.
    /// Where there is no room for zeros the batches still have theirs: they only take longer.
    fn fill_ahead(&mut self) -> io::Result<()> {
        let end = self.offset + self.buffer.len() as u64;
        if end <= self.filled {
            return Ok(());
        }
        self.filled = match self.active.fill(end, FILLED_BYTES) {
            Err(error) if is_lack(&error) => u64::MAX,
            filled => filled?,
        };
        Ok(())
    }

    /// One write, one sync; how long the sync took, in microseconds.
    fn write_buffer(&self) -> io::Result<u64> {
        let directory = self.shared.directory.path();
        failpoints::hit(Point::BeforeWrite, directory)?;
        self.active.write(&self.buffer, self.offset)?;
        failpoints::hit(Point::AfterWrite, directory)?;
        failpoints::hit(Point::BeforeSync, directory)?;
        let begun = Instant::now();
        self.active.sync()?;
        let micros = begun.elapsed().as_micros() as u64;
        failpoints::hit(Point::AfterSync, directory)?;
        Ok(micros)
    }
}

impl From<Entry> for Record {
    fn from(entry: Entry) -> Self {
        Self {
            revision: entry.revision,
            payload: entry.payload,
        }
    }
}
