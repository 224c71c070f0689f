//! Reads all that can be read of a journal, however damaged, and reports the damage. Nothing on disk is changed.
//!
//! `recovery` stops at the first damage; this continues after it. A later batch is recognised by its header, which is valid
//! only at its own place, and inside a damaged batch each record has its own checksum. Bytes that no checksum binds to this
//! store and place are left out, however complete they look.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use bytes::{Buf, Bytes};

use super::batches::{Batches, Found, Remainder, read_remainder, torn_seal};
use super::directory::Directory;
use super::format::{Record, SegmentHeader, salvage_batch};
use super::reach::Note;
use super::recovery::check_reach;
use super::segment::{Readable, Segment};
use super::{JournalError, Options};

/// What a journal's directory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The store: that of the options, or else that of the first segment that names one.
    pub store_id: Option<[u8; 16]>,
    /// Oldest first.
    pub segments: Vec<SegmentReport>,
    pub findings: Vec<Finding>,
    /// The oldest revision that can be read; `last_revision + 1` where there is none.
    pub first_revision: u64,
    /// The newest revision of a whole batch.
    pub last_revision: u64,
    /// Revisions, first and last, that should be held and cannot be read.
    pub missing: Vec<(u64, u64)>,
    pub note: Note,
}

/// One segment file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentReport {
    pub name: String,
    /// The first revision that it should hold.
    pub first_revision: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Whole batches in it, and their records.
    pub batches: u64,
    pub records: u64,
    /// Whether the journal goes on in another segment.
    pub is_sealed: bool,
}

/// What is wrong with a journal, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// File name of the segment; empty if there is none.
    pub segment: String,
    pub offset: u64,
    /// How many bytes are of no use; 0 if that is not known.
    pub bytes: u64,
    pub reason: String,
    /// A torn end, which was never acknowledged: opening the journal truncates it. Any other damage is refused.
    pub is_torn_end: bool,
}

impl Inspection {
    /// Whether opening the journal with the same options would refuse it.
    pub fn is_refused(&self) -> bool {
        self.findings.iter().any(|finding| !finding.is_torn_end)
    }
}

/// Inspects the journal in `directory`, which is opened with `options` otherwise. Fails if it cannot be read at all, and
/// with `Locked` while it is open elsewhere.
pub fn inspect(directory: impl AsRef<Path>, options: &Options) -> Result<Inspection, JournalError> {
    salvage(directory, options, |_| ControlFlow::Continue(()))
}

/// Inspects the journal and hands out every record that can be read, in the order of revisions, until `keep` breaks off.
pub fn salvage(
    directory: impl AsRef<Path>,
    options: &Options,
    keep: impl FnMut(Record) -> ControlFlow<()>,
) -> Result<Inspection, JournalError> {
    let directory = Directory::read(directory.as_ref())?;
    let refused = |source| JournalError::io(directory.path(), source);
    let names = directory.segments().map_err(refused)?;
    let opened = names
        .into_iter()
        .map(|first| Segment::read(&directory, first));
    let mut readable = opened.collect::<Result<Vec<_>, _>>()?;
    let named = |readable: &Readable| Some(readable.header.as_ref().ok()?.store_id);
    let store_id = options.store_id.or_else(|| readable.iter().find_map(named));
    readable.sort_by_key(Readable::first_revision);
    let note = Note::read(directory.path(), store_id.unwrap_or_default()).map_err(refused)?;
    let mut scan = Scan::new(store_id, note, keep);
    scan.read_all(readable)?;
    Ok(scan.finish(options))
}

struct Scan<K> {
    found: Inspection,
    /// The revision that comes next in the batches that are whole.
    next_revision: u64,
    /// The revision to be handed out next.
    next_kept: Option<u64>,
    /// Where the records of the segment read last end.
    end: u64,
    keep: Option<K>,
}

impl<K: FnMut(Record) -> ControlFlow<()>> Scan<K> {
    fn new(store_id: Option<[u8; 16]>, note: Note, keep: K) -> Self {
        let found = Inspection {
            store_id,
            segments: Vec::new(),
            findings: Vec::new(),
            first_revision: 1,
            last_revision: 0,
            missing: Vec::new(),
            note,
        };
        Self {
            found,
            next_revision: 1,
            next_kept: None,
            end: 0,
            keep: Some(keep),
        }
    }

    fn read_all(&mut self, segments: Vec<Readable>) -> Result<(), JournalError> {
        let mut rest = segments.into_iter().peekable();
        if let Some(first) = rest.peek() {
            self.found.first_revision = first.first_revision();
            self.next_revision = first.first_revision();
        }
        while let Some(segment) = rest.next() {
            let below = rest.peek().map(Readable::first_revision);
            self.read(segment, below)?;
        }
        Ok(())
    }

    /// Reads one segment; the one after it begins at the revision `below`.
    fn read(&mut self, readable: Readable, below: Option<u64>) -> Result<(), JournalError> {
        self.found.segments.push(SegmentReport {
            name: readable.name.clone(),
            first_revision: readable.first_revision(),
            bytes: readable.bytes,
            ..SegmentReport::default()
        });
        self.end = 0;
        for (offset, reason) in &readable.faults {
            self.find(*offset, 0, reason.clone());
        }
        let Some(segment) = self.usable(readable) else {
            return Ok(());
        };
        let first = segment.header.first_revision;
        if first != self.next_revision {
            self.find_order(0, first);
        }
        self.read_batches(&segment, below)
    }

    /// The segment, if its batches can be told from those of other stores.
    fn usable(&mut self, readable: Readable) -> Option<Segment> {
        let ours = self.found.store_id;
        let foreign = |header: &SegmentHeader| Some(header.store_id) != ours;
        if readable.header.as_ref().is_ok_and(foreign) {
            self.find(0, readable.bytes, "belongs to another store".to_owned());
            return None;
        }
        readable.into_segment(ours?)
    }

    fn read_batches(&mut self, segment: &Segment, below: Option<u64>) -> Result<(), JournalError> {
        let mut batches = Batches::new(segment, Segment::BEGIN);
        loop {
            let offset = batches.offset;
            self.end = offset;
            let reason = match batches.next()? {
                Found::Batch { header, records } => {
                    if header.first_revision != self.next_revision {
                        self.find_order(offset, header.first_revision);
                    }
                    self.next_revision = self.next_revision.max(header.last_revision() + 1);
                    self.count_batch(records.len());
                    records.into_iter().for_each(|record| self.hand_out(record));
                    continue;
                }
                Found::Seal(next) => return self.end_sealed(segment, &batches, next, below),
                Found::Blank => "zeros",
                Found::Damaged(reason) => reason,
            };
            match self.skip(segment, offset, reason, below)? {
                Some(later) => batches = Batches::new(segment, later),
                None => return Ok(()),
            }
        }
    }

    fn end_sealed(
        &mut self,
        segment: &Segment,
        batches: &Batches<'_>,
        next: u64,
        below: Option<u64>,
    ) -> Result<(), JournalError> {
        if let Some(report) = self.found.segments.last_mut() {
            report.is_sealed = true;
        }
        if next != self.next_revision {
            self.find_order(self.end, next);
            self.next_revision = self.next_revision.max(next);
        }
        self.end = batches.offset;
        if below.is_none() {
            let reason = format!("the segment of revision {} is missing", self.next_revision);
            self.find(self.end, 0, reason);
        }
        let remainder = read_remainder(segment, self.end)?;
        if remainder.end > 0 {
            let bytes = remainder.end - self.end;
            self.find(self.end, bytes, "bytes behind the seal".to_owned());
        }
        Ok(())
    }

    /// Goes behind what is no whole batch, hands out the records that are whole in it, and says where the next batch is.
    fn skip(
        &mut self,
        segment: &Segment,
        offset: u64,
        reason: &str,
        below: Option<u64>,
    ) -> Result<Option<u64>, JournalError> {
        let remainder = read_remainder(segment, offset)?;
        let Some(later) = remainder.later_batch else {
            self.skip_end(segment, offset, &remainder, reason, below)?;
            return Ok(None);
        };
        self.find(offset, later.offset - offset, reason.to_owned());
        self.hand_out_between(segment, offset..later.offset, later.first_revision)?;
        self.next_revision = self.next_revision.max(later.first_revision);
        Ok(Some(later.offset))
    }

    fn skip_end(
        &mut self,
        segment: &Segment,
        offset: u64,
        remainder: &Remainder,
        reason: &str,
        below: Option<u64>,
    ) -> Result<(), JournalError> {
        let (end, next) = (remainder.end, self.next_revision);
        if below == Some(next) && torn_seal(segment, offset, remainder, next)?.is_some() {
            return Ok(());
        }
        if end > offset {
            self.find(offset, end - offset, reason.to_owned());
            let bound = below.unwrap_or(self.next_revision + end - offset);
            self.hand_out_between(segment, offset..end, bound)?;
            if let (None, Some(finding)) = (below, self.found.findings.last_mut()) {
                finding.is_torn_end = true;
            }
        }
        Ok(())
    }

    /// Hands out the whole records of revisions less than `below` that lie in a range without a whole batch.
    fn hand_out_between(
        &mut self,
        segment: &Segment,
        range: Range<u64>,
        below: u64,
    ) -> Result<(), JournalError> {
        let mut bytes = Vec::new();
        let source = segment.bytes_from(range.start);
        let read = source.take(range.end - range.start).read_to_end(&mut bytes);
        read.map_err(|error| segment.refused(error))?;
        let mut found = BTreeMap::new();
        let (mut rest, mut offset) = (Bytes::from(bytes), range.start);
        let mut next = self.next_revision;
        while let Some((records, length)) = salvage_batch(&rest, segment.scope(), offset, next) {
            let fitting = records.into_iter().filter(|record| record.revision < below);
            found.extend(fitting.map(|record| (record.revision, record)));
            next = found.keys().next_back().map_or(next, |last| last + 1);
            rest.advance(length.min(rest.len()));
            offset += length as u64;
        }
        found.into_values().for_each(|record| self.hand_out(record));
        Ok(())
    }

    fn hand_out(&mut self, record: Record) {
        let next = self.next_kept.unwrap_or(self.found.first_revision);
        if record.revision < next {
            return;
        }
        if record.revision > next {
            self.found.missing.push((next, record.revision - 1));
        }
        self.next_kept = Some(record.revision + 1);
        if let Some(keep) = &mut self.keep
            && keep(record).is_break()
        {
            self.keep = None;
        }
    }

    fn count_batch(&mut self, records: usize) {
        if let Some(report) = self.found.segments.last_mut() {
            report.batches += 1;
            report.records += records as u64;
        }
    }

    fn find_order(&mut self, offset: u64, found: u64) {
        let reason = format!("revision {found} where {} was expected", self.next_revision);
        self.find(offset, 0, reason);
        self.next_revision = self.next_revision.max(found);
    }

    fn find(&mut self, offset: u64, bytes: u64, reason: String) {
        let segment = self.found.segments.last();
        self.found.findings.push(Finding {
            segment: segment.map_or_else(String::new, |report| report.name.clone()),
            offset,
            bytes,
            reason,
            is_torn_end: false,
        });
    }

    fn finish(mut self, options: &Options) -> Inspection {
        if self.found.segments.is_empty() {
            let start_after = options.start_after.unwrap_or(0);
            self.next_revision = start_after + 1;
            self.found.first_revision = self.next_revision;
        }
        self.found.last_revision = self.next_revision - 1;
        self.check_reach(options);
        self.found
    }

    /// The end of the journal against what it is known to have reached.
    fn check_reach(&mut self, options: &Options) {
        let reached = self.found.note.reached();
        let (first, last) = (self.found.first_revision, self.found.last_revision);
        if let Err(error) = check_reach(first, last, options, reached) {
            self.find(self.end, 0, error.to_string());
        }
        let end = last.max(options.applied_revision).max(reached.published);
        let next = self.next_kept.unwrap_or(first);
        if next <= end {
            self.found.missing.push((next, end));
        }
        if first > options.applied_revision + 1 {
            let before = (options.applied_revision + 1, first - 1);
            self.found.missing.insert(0, before);
        }
    }
}
