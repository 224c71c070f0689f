//! Reads a segment's batches in order, checks each as a whole, and looks for later batches after a damaged one.

use std::io::{self, Read};

use bytes::Bytes;

use super::JournalError;
use super::format::{ALIGNMENT, BATCH_HEADER_BYTES, BatchHeader, Record, decode_batch};
use super::segment::Segment;

/// The content of a place where a batch may begin.
pub(super) enum Found {
    Batch {
        header: BatchHeader,
        records: Vec<Record>,
    },
    /// The journal continues at this revision, in another segment.
    Seal(u64),
    /// Zeros, or the end of the segment.
    Blank,
    Damaged(&'static str),
}

/// The batches of a segment from an offset on.
pub(super) struct Batches<'a> {
    segment: &'a Segment,
    source: Box<dyn Read + 'a>,
    /// Where the next batch begins.
    pub(super) offset: u64,
}

impl<'a> Batches<'a> {
    pub(super) fn new(segment: &'a Segment, offset: u64) -> Self {
        Self {
            segment,
            source: Box::new(segment.bytes_from(offset)),
            offset,
        }
    }

    /// Reads what lies at `offset` and, where that is whole, moves behind it.
    pub(super) fn next(&mut self) -> Result<Found, JournalError> {
        self.read_next()
            .map_err(|error| self.segment.refused(error))
    }

    fn read_next(&mut self) -> io::Result<Found> {
        let room = self.segment.header.segment_bytes - self.offset;
        let Some(room) = room.checked_sub(BATCH_HEADER_BYTES as u64) else {
            return Ok(Found::Blank);
        };
        let mut bytes = [0; BATCH_HEADER_BYTES];
        self.source.read_exact(&mut bytes)?;
        match BatchHeader::decode(&bytes, self.segment.scope(), self.offset) {
            Some(header) if header.is_seal() && header.body_bytes > 0 => {
                Ok(Found::Damaged("a seal with a body"))
            }
            Some(header) if header.is_seal() => {
                Ok(self.pass(&header, Found::Seal(header.first_revision)))
            }
            Some(header) if u64::from(header.body_bytes) <= room => self.read_body(header),
            Some(_) => Ok(Found::Damaged("batch's length")),
            None if bytes.iter().all(|byte| *byte == 0) => Ok(Found::Blank),
            None => Ok(Found::Damaged("batch's header")),
        }
    }

    fn read_body(&mut self, header: BatchHeader) -> io::Result<Found> {
        let mut body = vec![0; header.body_bytes as usize];
        self.source.read_exact(&mut body)?;
        Ok(match decode_batch(&header, Bytes::from(body)) {
            Ok(records) => self.pass(&header, Found::Batch { header, records }),
            Err(reason) => Found::Damaged(reason),
        })
    }

    fn pass(&mut self, header: &BatchHeader, found: Found) -> Found {
        self.offset += BATCH_HEADER_BYTES as u64 + u64::from(header.body_bytes);
        found
    }
}

/// The bytes after the last whole batch of a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Remainder {
    /// Where the last byte that is not zero ends; 0 when there is none.
    pub(super) end: u64,
    /// The next batch header that was written there: a proof that everything before it had been synced.
    pub(super) later_batch: Option<Later>,
}

/// A batch known by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Later {
    pub(super) offset: u64,
    pub(super) first_revision: u64,
}

/// Reads the segment from `offset`, a multiple of the alignment, to its end. The header at `offset` itself is no later
/// one. A later batch counts by its header alone: even with its body damaged, it was begun after the sync of the one before.
pub(super) fn read_remainder(segment: &Segment, offset: u64) -> Result<Remainder, JournalError> {
    let mut window = Window::new(segment, offset);
    let mut remainder = Remainder::default();
    while window.fill().map_err(|error| segment.refused(error))? {
        remainder.examine(segment, &window, offset);
    }
    Ok(remainder)
}

/// The seal that belongs at `offset`, if nothing lies there but some of its bytes: the power was cut while it was written
/// over the border of two pages. `remainder` is what was read from there.
pub(super) fn torn_seal(
    segment: &Segment,
    offset: u64,
    remainder: &Remainder,
    next_revision: u64,
) -> Result<Option<[u8; BATCH_HEADER_BYTES]>, JournalError> {
    if remainder.end > offset + BATCH_HEADER_BYTES as u64 {
        return Ok(None);
    }
    let seal = BatchHeader::seal(next_revision).encode(segment.scope(), offset);
    let mut found = Vec::new();
    let source = segment.bytes_from(offset);
    let read = source.take(seal.len() as u64).read_to_end(&mut found);
    read.map_err(|error| segment.refused(error))?;
    let is_of_seal = |(found, byte): (&u8, &u8)| *found == 0 || found == byte;
    Ok(found.iter().zip(&seal).all(is_of_seal).then_some(seal))
}

impl Remainder {
    fn examine(&mut self, segment: &Segment, window: &Window, damage: u64) {
        let Some(last) = last_nonzero(&window.bytes) else {
            return;
        };
        self.end = self.end.max(window.offset + last as u64 + 1);
        let later = |at: usize| {
            let offset = window.offset + at as u64;
            let header = BatchHeader::decode(&window.bytes[at..], segment.scope(), offset)?;
            let first_revision = header.first_revision;
            (offset > damage).then_some(Later {
                offset,
                first_revision,
            })
        };
        let find = || (0..=last).step_by(ALIGNMENT).find_map(later);
        self.later_batch = self.later_batch.or_else(find);
    }
}

/// Where the last byte that is not zero lies. Blocks are folded whole, which the compiler turns into vector code.
fn last_nonzero(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 4096;
    let written = |block: &[u8]| block.iter().fold(0, |seen, byte| seen | byte) != 0;
    let block = bytes.chunks(BLOCK).rposition(written)? * BLOCK;
    let inside = bytes[block..]
        .iter()
        .take(BLOCK)
        .rposition(|byte| *byte != 0)?;
    Some(block + inside)
}

/// A view that slides over a segment, each time keeping enough of the last one to see a header across the border.
struct Window<'a> {
    source: Box<dyn Read + 'a>,
    bytes: Vec<u8>,
    offset: u64,
}

impl<'a> Window<'a> {
    const BYTES: usize = 1 << 20;

    fn new(segment: &'a Segment, offset: u64) -> Self {
        Self {
            source: Box::new(segment.bytes_from(offset)),
            bytes: Vec::new(),
            offset,
        }
    }

    /// Slides on; false at the segment's end.
    fn fill(&mut self) -> io::Result<bool> {
        let keep = self.bytes.len().min(BATCH_HEADER_BYTES);
        let passed = self.bytes.len() - keep;
        self.bytes.drain(..passed);
        self.offset += passed as u64;
        let more = (Self::BYTES - keep) as u64;
        let read = self
            .source
            .by_ref()
            .take(more)
            .read_to_end(&mut self.bytes)?;
        Ok(read > 0)
    }
}
