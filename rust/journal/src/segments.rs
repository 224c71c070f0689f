//! The segments a journal holds, oldest first: reads a range of records from them, deletes what was released.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::JournalError;
use super::batches::{Batches, Found};
use super::directory::Directory;
use super::failpoints::{self, Point};
use super::format::Record;
use super::segment::Segment;
use super::tail::Budget;

pub(super) struct Segments {
    held: Mutex<VecDeque<Arc<Segment>>>,
}

impl Segments {
    pub(super) fn new(segments: Vec<Arc<Segment>>) -> Self {
        Self {
            held: Mutex::new(segments.into()),
        }
    }

    pub(super) fn push(&self, segment: Arc<Segment>) {
        self.held.lock().push_back(segment);
    }

    /// How many there are, and their bytes on disk.
    pub(super) fn extent(&self) -> (usize, u64) {
        let held = self.held.lock();
        (
            held.len(),
            held.iter()
                .map(|segment| segment.header.segment_bytes)
                .sum(),
        )
    }

    /// The bytes on disk of those that hold records after `applied`, and of the one that is written on.
    pub(super) fn unapplied_bytes(&self, applied: u64) -> u64 {
        let held = self.held.lock();
        let is_applied =
            |next: &Arc<Segment>| next.header.first_revision <= applied.saturating_add(1);
        let applied_count = held
            .iter()
            .skip(1)
            .take_while(|next| is_applied(next))
            .count();
        let unapplied = held.iter().skip(applied_count);
        unapplied.map(|segment| segment.header.segment_bytes).sum()
    }

    /// The records after `revision` and up to `published`, as `budget` allows.
    pub(super) fn read_after(
        &self,
        revision: u64,
        published: u64,
        budget: Budget,
    ) -> Result<Vec<Record>, JournalError> {
        let mut reading = Reading {
            after: revision,
            budget,
            records: Vec::new(),
        };
        for (segment, through) in self.holding(revision, published)? {
            if !reading.read(&segment, through)? {
                break;
            }
        }
        Ok(reading.records)
    }

    /// The segments with records after `revision`, each with the last revision to read from it. Nothing behind that is
    /// looked at: the writer may be writing there.
    fn holding(
        &self,
        revision: u64,
        published: u64,
    ) -> Result<Vec<(Arc<Segment>, u64)>, JournalError> {
        let held = self.held.lock();
        let first = held
            .front()
            .map_or(1, |oldest| oldest.header.first_revision);
        if first > revision + 1 {
            return Err(JournalError::Released(first - 1));
        }
        let next_first = |index: usize| {
            held.get(index + 1)
                .map_or(u64::MAX, |next| next.header.first_revision)
        };
        let with_last = held.iter().enumerate().map(|(index, segment)| {
            let through = published.min(next_first(index) - 1);
            (Arc::clone(segment), through)
        });
        let wanted = |(segment, through): &(Arc<Segment>, u64)| {
            *through > revision && segment.header.first_revision <= *through
        };
        Ok(with_last.filter(wanted).collect())
    }

    /// Deletes the segments whose records are all at or below `applied`, oldest first, but never the one written on.
    /// Returns whether space was freed.
    pub(super) fn release(
        &self,
        directory: &Directory,
        applied: u64,
    ) -> Result<bool, JournalError> {
        let mut held = self.held.lock();
        let mut freed = false;
        while held
            .get(1)
            .is_some_and(|next| next.header.first_revision <= applied + 1)
        {
            let oldest = &held[0];
            failpoints::hit(Point::SegmentDeleting, directory.path())
                .and_then(|()| oldest.delete())
                .map_err(|source| oldest.refused(source))?;
            held.pop_front();
            freed = true;
            Self::make_deletion_durable(directory)
                .map_err(|source| JournalError::io(directory.path(), source))?;
        }
        Ok(freed)
    }

    /// Before the next deletion, so that after a crash no segment is missing between those that are left.
    fn make_deletion_durable(directory: &Directory) -> io::Result<()> {
        failpoints::hit(Point::SegmentUnlinked, directory.path())?;
        directory.sync()?;
        failpoints::hit(Point::SegmentDeleted, directory.path())
    }
}

/// A read in progress.
struct Reading {
    after: u64,
    budget: Budget,
    records: Vec<Record>,
}

impl Reading {
    /// Reads what is wanted of a segment up to `through`; false when the budget is spent.
    fn read(&mut self, segment: &Segment, through: u64) -> Result<bool, JournalError> {
        let mut batches = Batches::new(segment, segment.offset_towards(self.after + 1));
        while self.after < through {
            let offset = batches.offset;
            let batch = match batches.next()? {
                Found::Batch { records, .. } => records,
                Found::Seal(_) | Found::Blank => {
                    return Err(segment.damaged(offset, "records are missing"));
                }
                Found::Damaged(reason) => return Err(segment.damaged(offset, reason)),
            };
            if !self.take(batch, through) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take(&mut self, batch: Vec<Record>, through: u64) -> bool {
        let after = self.after;
        let wanted = batch
            .into_iter()
            .filter(|record| record.revision > after && record.revision <= through);
        for record in wanted {
            if !self.budget.allows(&record) {
                return false;
            }
            self.after = record.revision;
            self.records.push(record);
        }
        true
    }
}
