//! Opens the journal in a directory: checks every batch, distinguishes a torn end from damage, and truncates a torn end.
//!
//! One batch is written and synced at a time, so that a crash leaves at most one torn batch, the last of the last segment,
//! followed by zeros, or a torn seal of the segment before. A torn seal is finished: it holds nothing, and the next segment
//! says whether a batch is missing before it. Any other incomplete batch was complete once, and was acknowledged: it is
//! damage, and refused.
//! Nothing on disk is changed before everything has been read and accepted.
//!
//! A torn or missing end is refused, too, if it lies at or below the last applied revision, or below the one that the note
//! of the journal's reach says was published. After a power cut, which may leave an older note, one loss looks like a write
//! that never happened: zeros from the border of a batch to the end of the last segment.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use super::batches::{Batches, Found, Remainder, read_remainder, torn_seal};
use super::directory::Directory;
use super::error::is_lack;
use super::failpoints::{self, Point};
use super::faults::{Fault, is_planted};
use super::format::BATCH_HEADER_BYTES;
use super::reach::{Note, Reached};
use super::segment::{Segment, Spare};
use super::{Cut, JournalError, Options, Recovery};

/// A journal that can be written on.
pub(super) struct Opened {
    /// All segments, oldest first.
    pub(super) segments: Vec<Arc<Segment>>,
    /// The last of them, which is written on.
    pub(super) active: Arc<Segment>,
    /// Where its next batch begins.
    pub(super) end: u64,
    pub(super) recovery: Recovery,
}

/// Opens the journal in `directory`, or begins one in an empty directory.
pub(super) fn open(directory: &Directory, options: &Options) -> Result<Opened, JournalError> {
    Spare::discard(directory);
    let refused = |source| JournalError::io(directory.path(), source);
    let names = directory.segments().map_err(refused)?;
    let opened = names
        .into_iter()
        .map(|first| Segment::open(directory, first).map(Arc::new));
    let segments = opened.collect::<Result<Vec<_>, _>>()?;
    match segments.last().cloned() {
        None => begin(directory, options),
        Some(active) => recover(directory, options, segments, active),
    }
}

fn begin(directory: &Directory, options: &Options) -> Result<Opened, JournalError> {
    let last_revision = options.start_after.unwrap_or(0);
    let refused = |source| JournalError::io(directory.path(), source);
    let store_id = options
        .store_id
        .map_or_else(random_id, Ok)
        .map_err(refused)?;
    let note = Note::read(directory.path(), store_id).map_err(refused)?;
    check_reach(last_revision + 1, last_revision, options, note.reached())?;
    let spare = Spare::prepare(directory, options.segment_bytes).map_err(refused)?;
    let segment = spare
        .begin(directory, store_id, last_revision + 1)
        .map_err(refused)?;
    let recovery = Recovery {
        store_id,
        first_revision: last_revision + 1,
        last_revision,
        segments: 1,
        bytes: 0,
        cut: None,
        note,
    };
    let active = Arc::new(segment);
    Ok(Opened {
        segments: vec![Arc::clone(&active)],
        active,
        end: Segment::BEGIN,
        recovery,
    })
}

fn random_id() -> io::Result<[u8; 16]> {
    let mut id = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}

fn recover(
    directory: &Directory,
    options: &Options,
    segments: Vec<Arc<Segment>>,
    active: Arc<Segment>,
) -> Result<Opened, JournalError> {
    let store_id = check_store(options, &segments, &active)?;
    let note = Note::read(directory.path(), store_id)
        .map_err(|source| JournalError::io(directory.path(), source))?;
    let survey = Survey::of(&segments)?;
    survey.check_reach(&active, options, note.reached())?;
    let tear = survey.tear.as_ref();
    let cut = tear.map(|tear| tear.cut(directory, &active)).transpose()?;
    for seal in &survey.torn_seals {
        seal.finish(&segments)?;
    }
    let hardened = survey.harden(&active).and_then(|()| directory.sync());
    hardened.map_err(|source| active.refused(source))?;
    let recovery = Recovery {
        store_id,
        first_revision: survey.first_revision,
        last_revision: survey.next_revision - 1,
        segments: segments.len(),
        bytes: survey.bytes,
        cut: cut.filter(|_| !is_planted(Fault::CutReport)),
        note,
    };
    Ok(Opened {
        segments,
        active,
        end: survey.end,
        recovery,
    })
}

fn check_store(
    options: &Options,
    segments: &[Arc<Segment>],
    active: &Segment,
) -> Result<[u8; 16], JournalError> {
    let expected = options.store_id.unwrap_or(active.header.store_id);
    match segments
        .iter()
        .find(|segment| segment.header.store_id != expected && !is_planted(Fault::StoreId))
    {
        None => Ok(expected),
        Some(foreign) => Err(JournalError::ForeignStore {
            segment: foreign.name.clone(),
            expected,
            found: foreign.header.store_id,
        }),
    }
}

/// The journal must reach what was applied and what was published, and hold what follows the first of them.
pub(super) fn check_reach(
    first: u64,
    last: u64,
    options: &Options,
    reached: Reached,
) -> Result<(), JournalError> {
    let applied = options.applied_revision;
    if last < applied {
        return Err(JournalError::Behind { last, applied });
    }
    if last < reached.published && !is_planted(Fault::Reach) {
        let published = reached.published;
        return Err(JournalError::Short { last, published });
    }
    if first > applied + 1 {
        return Err(JournalError::Gap { first, applied });
    }
    Ok(())
}

/// What reading all segments found.
struct Survey {
    first_revision: u64,
    next_revision: u64,
    bytes: u64,
    /// Where the next batch of the segment read last begins.
    end: u64,
    /// Where the last whole batch of that segment begins.
    last_batch: Option<u64>,
    tear: Option<Tear>,
    torn_seals: Vec<TornSeal>,
}

/// Bytes behind the last whole batch that never were one.
struct Tear {
    from: u64,
    to: u64,
}

/// A seal of which only some bytes reached the disk: in which segment, where, and all that belongs there.
struct TornSeal {
    segment: usize,
    offset: u64,
    seal: [u8; BATCH_HEADER_BYTES],
}

impl TornSeal {
    fn finish(&self, segments: &[Arc<Segment>]) -> Result<(), JournalError> {
        let segment = &segments[self.segment];
        let written = segment.write(&self.seal, self.offset);
        written
            .and_then(|()| segment.sync())
            .map_err(|source| segment.refused(source))
    }
}

impl Survey {
    fn of(segments: &[Arc<Segment>]) -> Result<Self, JournalError> {
        let first_revision = segments
            .first()
            .map_or(1, |first| first.header.first_revision);
        let mut survey = Self {
            first_revision,
            next_revision: first_revision,
            bytes: 0,
            end: Segment::BEGIN,
            last_batch: None,
            tear: None,
            torn_seals: Vec::new(),
        };
        for (index, segment) in segments.iter().enumerate() {
            survey.read(segment, index, index + 1 == segments.len())?;
        }
        Ok(survey)
    }

    fn read(&mut self, segment: &Segment, index: usize, is_last: bool) -> Result<(), JournalError> {
        self.expect(segment, 0, segment.header.first_revision)?;
        let mut batches = Batches::new(segment, Segment::BEGIN);
        self.last_batch = None;
        let stop = self.read_batches(segment, &mut batches)?;
        self.end = batches.offset;
        if is_last && matches!(stop, Stop::Sealed) {
            let missing = format!("the segment of revision {} is missing", self.next_revision);
            return Err(segment.damaged(self.end, missing));
        }
        let remainder = read_remainder(segment, self.end)?;
        if !is_last && remainder.end > 0 && matches!(stop, Stop::Unsealed(_)) {
            let (offset, next) = (self.end, self.next_revision);
            if let Some(seal) = torn_seal(segment, offset, &remainder, next)? {
                self.torn_seals.push(TornSeal {
                    segment: index,
                    offset,
                    seal,
                });
                return Ok(());
            }
        }
        self.judge(segment, &stop, &remainder, is_last)
    }

    fn read_batches(
        &mut self,
        segment: &Segment,
        batches: &mut Batches,
    ) -> Result<Stop, JournalError> {
        loop {
            let offset = batches.offset;
            match batches.next()? {
                Found::Batch { header, .. } => {
                    self.expect(segment, offset, header.first_revision)?;
                    self.last_batch = Some(offset);
                    self.next_revision = header.last_revision() + 1;
                    self.bytes += batches.offset - offset;
                    segment.mark(header.first_revision, offset);
                }
                Found::Seal(next) => {
                    self.expect(segment, offset, next)?;
                    return Ok(Stop::Sealed);
                }
                Found::Blank => return Ok(Stop::Unsealed("zeros")),
                Found::Damaged(reason) => return Ok(Stop::Unsealed(reason)),
            }
        }
    }

    fn expect(&self, segment: &Segment, offset: u64, found: u64) -> Result<(), JournalError> {
        if found == self.next_revision || is_planted(Fault::SegmentOrder) {
            return Ok(());
        }
        let reason = format!("revision {found} where {} was expected", self.next_revision);
        Err(segment.damaged(offset, reason))
    }

    /// Nothing may follow the whole batches, except a tear at the end of an unsealed last segment.
    fn judge(
        &mut self,
        segment: &Segment,
        stop: &Stop,
        remainder: &Remainder,
        is_last: bool,
    ) -> Result<(), JournalError> {
        if remainder.end == 0 {
            return Ok(());
        }
        let later_batch = remainder
            .later_batch
            .filter(|_| !is_planted(Fault::LaterBatch));
        match (stop, later_batch) {
            (Stop::Unsealed(_), None) if is_last => {
                self.tear = Some(Tear {
                    from: self.end,
                    to: remainder.end,
                });
                Ok(())
            }
            (Stop::Unsealed(reason), Some(later)) => {
                let reason = format!("{reason}, and a later batch at byte {}", later.offset);
                Err(segment.damaged(self.end, reason))
            }
            (Stop::Unsealed(reason), None) => {
                Err(segment.damaged(self.end, format!("{reason}, and a later segment")))
            }
            (Stop::Sealed, _) => Err(segment.damaged(self.end, "bytes behind the seal")),
        }
    }

    /// The journal must join what was reached. A tear at or below that is no tear.
    fn check_reach(
        &self,
        active: &Segment,
        options: &Options,
        reached: Reached,
    ) -> Result<(), JournalError> {
        let last = self.next_revision - 1;
        match check_reach(self.first_revision, last, options, reached) {
            Err(short @ (JournalError::Behind { .. } | JournalError::Short { .. })) => {
                Err(active.damaged(self.end, short.to_string()))
            }
            checked => checked,
        }
    }

    /// Makes what was read durable before it is served. The last batch may have been read from memory while its sync
    /// never ran or failed; a failed sync marks pages clean, so that only writing them again makes the next one write them.
    fn harden(&self, last: &Segment) -> io::Result<()> {
        if let Some(from) = self.last_batch {
            last.rewrite(from, self.end)?;
        }
        last.sync()
    }
}

/// Why reading batches stopped.
enum Stop {
    Sealed,
    Unsealed(&'static str),
}

impl Tear {
    /// Sets the bytes aside where there is room, then overwrites them, so that they are never taken for anything later.
    fn cut(&self, directory: &Directory, segment: &Segment) -> Result<Cut, JournalError> {
        let refused = |source| segment.refused(source);
        let bytes = self.to - self.from;
        let torn = segment.bytes_from(self.from).take(bytes);
        let kept_in = directory.keep_damaged(&segment.name, self.from, torn);
        let kept_in = kept_in.and_then(|file| {
            failpoints::hit(Point::CutKept, directory.path()).map(|()| Some(file))
        });
        let kept_in = match kept_in {
            // They were never acknowledged: a full disk is no reason not to serve what was.
            Err(error) if is_lack(&error) => None,
            kept_in => kept_in.map_err(refused)?,
        };
        segment.erase(self.from, self.to).map_err(refused)?;
        failpoints::hit(Point::CutErased, directory.path()).map_err(refused)?;
        Ok(Cut {
            segment: segment.name.clone(),
            offset: self.from,
            bytes,
            kept_in,
        })
    }
}
