//! Records that are accepted and not yet written. Gives out revisions, keeps the order, and refuses records without room on
//! disk.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crc32c::crc32c;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::JournalError;
use super::format::{BATCH_HEADER_BYTES, Entry, batch_room, lone_batch_bytes, record_bytes};

/// How long after a refusal the file system is asked for space again.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// The queue between callers that submit and the writer.
pub(super) struct Queue {
    state: Mutex<State>,
    /// Signals the writer: there is work, or the end.
    work: Condvar,
    /// Signals callers that submit: the queue, the room on disk or the end changed.
    change: Condvar,
    accepted: AtomicU64,
    bound: usize,
    segment_bytes: u64,
}

struct State {
    next_revision: u64,
    entries: VecDeque<Entry>,
    bytes: usize,
    /// What still fits the segment that the last accepted entry goes to, were each entry a batch of its own.
    room: u64,
    spare: SpareState,
    /// Why the last record that needed the spare was refused, until there is one.
    turned_away: Option<Arc<str>>,
    ended: Option<JournalError>,
}

/// The segment after the one that accepted entries go to.
enum SpareState {
    /// The writer will prepare it.
    Wanted,
    Ready,
    /// The entry with this revision begins it, and the writer has not come to it.
    Promised(u64),
    /// The file system had no room for it.
    Refused {
        reason: Arc<str>,
        ask_at: Instant,
    },
}

/// What the writer does next.
pub(super) enum Work {
    PrepareSpare,
    Write {
        entries: Vec<Entry>,
        begins_segment: bool,
    },
}

/// Where a record can go.
enum Placement {
    SameSegment,
    NextSegment,
    /// The writer makes room soon.
    Later,
}

impl Queue {
    /// A queue whose next entry is `next_revision` and goes to a segment with `room` bytes left.
    pub(super) fn new(next_revision: u64, room: u64, bound: usize, segment_bytes: u64) -> Self {
        Self {
            state: Mutex::new(State {
                next_revision,
                entries: VecDeque::new(),
                bytes: 0,
                room,
                spare: SpareState::Wanted,
                turned_away: None,
                ended: None,
            }),
            work: Condvar::new(),
            change: Condvar::new(),
            accepted: AtomicU64::new(next_revision - 1),
            bound,
            segment_bytes,
        }
    }

    /// Accepts a payload: `accept` runs with its revision under the queue's lock, then it is queued. Waits while the queue
    /// is full, until `deadline`. When `accept` panics nothing is accepted, now or later: what it changed before may be half
    /// of a change. What was accepted before is still written.
    pub(super) fn push(
        &self,
        payload: Bytes,
        deadline: Option<Instant>,
        accept: impl FnOnce(u64),
    ) -> Result<u64, JournalError> {
        let payload_crc = crc32c(&payload);
        let bytes = record_bytes(payload.len());
        let cost = lone_batch_bytes(payload.len());
        let (mut state, placement) = self.wait_for_room(bytes, cost, deadline)?;
        let revision = state.next_revision;
        let whole = EndsWherePanicked {
            queue: self,
            state: &mut state,
        };
        accept(revision);
        drop(whole);
        if let Placement::NextSegment = placement {
            state.spare = SpareState::Promised(revision);
            state.room = batch_room(self.segment_bytes);
        }
        state.room -= cost;
        state.bytes += bytes;
        state.next_revision += 1;
        state.entries.push_back(Entry {
            revision,
            payload,
            payload_crc,
        });
        self.accepted.store(revision, Ordering::Release);
        drop(state);
        self.work.notify_one();
        Ok(revision)
    }

    fn wait_for_room(
        &self,
        bytes: usize,
        cost: u64,
        deadline: Option<Instant>,
    ) -> Result<(MutexGuard<'_, State>, Placement), JournalError> {
        let mut state = self.state.lock();
        loop {
            let placement = state.place(bytes, cost, self.bound);
            if let Err(JournalError::Full { reason }) = &placement {
                state.turned_away = Some(Arc::clone(reason));
            }
            let placement = placement?;
            if !matches!(placement, Placement::Later) {
                return Ok((state, placement));
            }
            match deadline {
                None => self.change.wait(&mut state),
                Some(deadline) if Instant::now() >= deadline => return Err(JournalError::Busy),
                Some(deadline) => {
                    self.change.wait_until(&mut state, deadline);
                }
            }
        }
    }

    /// Waits for work; `None` when the queue was closed and everything in it was taken.
    pub(super) fn take(&self) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            if state.wants_spare() {
                return Some(Work::PrepareSpare);
            }
            if let Some(work) = state.take_entries() {
                self.change.notify_all();
                return Some(work);
            }
            if state.ended.is_some() {
                return None;
            }
            match state.spare {
                SpareState::Refused { ask_at, .. } => {
                    self.work.wait_until(&mut state, ask_at);
                }
                _ => self.work.wait(&mut state),
            }
        }
    }

    pub(super) fn spare_is_ready(&self) {
        self.state.lock().turned_away = None;
        self.set_spare(SpareState::Ready);
    }

    /// A spare could not be had; submitters that need one are refused until the next attempt.
    pub(super) fn spare_was_refused(&self, reason: Arc<str>) {
        let ask_at = Instant::now() + ASK_AGAIN;
        self.set_spare(SpareState::Refused { reason, ask_at });
    }

    /// The promised spare has become a segment; the writer will prepare another.
    pub(super) fn spare_was_used(&self) {
        self.set_spare(SpareState::Wanted);
    }

    fn set_spare(&self, spare: SpareState) {
        self.state.lock().spare = spare;
        self.change.notify_all();
    }

    /// Has the writer ask for space at once, because some was freed.
    pub(super) fn space_was_freed(&self) {
        let mut state = self.state.lock();
        if let SpareState::Refused { ask_at, .. } = &mut state.spare {
            *ask_at = Instant::now();
            self.work.notify_one();
        }
    }

    /// `entries` went to disk as one batch, which took less than one batch each.
    pub(super) fn was_written_together(&self, entries: usize) {
        let mut state = self.state.lock();
        if !matches!(state.spare, SpareState::Promised(_)) {
            state.room += (entries.saturating_sub(1) * BATCH_HEADER_BYTES) as u64;
        }
    }

    /// Accepts nothing more, for this reason. The first reason stays.
    pub(super) fn end(&self, reason: JournalError) {
        self.end_locked(&mut self.state.lock(), reason);
    }

    fn end_locked(&self, state: &mut State, reason: JournalError) {
        state.ended.get_or_insert(reason);
        self.work.notify_all();
        self.change.notify_all();
    }

    /// Why nothing more is accepted.
    pub(super) fn ended(&self) -> Option<JournalError> {
        self.state.lock().ended.clone()
    }

    /// Drops the accepted records that will not be written.
    pub(super) fn abandon(&self) {
        let mut state = self.state.lock();
        state.entries.clear();
        state.bytes = 0;
    }

    pub(super) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Acquire)
    }

    pub(super) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Why records are refused for want of room; `None` while none was.
    pub(super) fn refusing(&self) -> Option<Arc<str>> {
        self.state.lock().turned_away.clone()
    }
}

/// Ends the queue where it is dropped by a panic.
struct EndsWherePanicked<'a> {
    queue: &'a Queue,
    state: &'a mut State,
}

impl Drop for EndsWherePanicked<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.queue.end_locked(self.state, JournalError::panicked());
        }
    }
}

impl State {
    fn place(&self, bytes: usize, cost: u64, bound: usize) -> Result<Placement, JournalError> {
        if let Some(reason) = &self.ended {
            return Err(reason.clone());
        }
        if !self.entries.is_empty() && self.bytes + bytes > bound {
            return Ok(Placement::Later);
        }
        if cost <= self.room {
            return Ok(Placement::SameSegment);
        }
        match &self.spare {
            SpareState::Ready => Ok(Placement::NextSegment),
            SpareState::Wanted | SpareState::Promised(_) => Ok(Placement::Later),
            SpareState::Refused { reason, .. } => Err(JournalError::Full {
                reason: Arc::clone(reason),
            }),
        }
    }

    fn wants_spare(&self) -> bool {
        match self.spare {
            SpareState::Wanted => self.ended.is_none(),
            SpareState::Refused { ask_at, .. } => self.ended.is_none() && ask_at <= Instant::now(),
            SpareState::Ready | SpareState::Promised(_) => false,
        }
    }

    /// Everything queued that goes to one segment.
    fn take_entries(&mut self) -> Option<Work> {
        let first = self.entries.front()?.revision;
        let (count, begins_segment) = match self.spare {
            SpareState::Promised(begin) if begin > first => ((begin - first) as usize, false),
            SpareState::Promised(_) => (self.entries.len(), true),
            _ => (self.entries.len(), false),
        };
        let entries: Vec<_> = self.entries.drain(..count).collect();
        self.bytes -= entries
            .iter()
            .map(|entry| record_bytes(entry.payload.len()))
            .sum::<usize>();
        Some(Work::Write {
            entries,
            begins_segment,
        })
    }
}
