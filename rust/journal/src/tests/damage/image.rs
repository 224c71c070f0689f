//! The files of a journal as they were, and where in them each field lies.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

use tempfile::TempDir;

use super::super::super::batches::{Batches, Found};
use super::super::super::directory::{Directory, segment_name};
use super::super::super::format::{BATCH_HEADER_BYTES, RECORD_HEADER_BYTES};
use super::super::super::segment::Segment;
use super::super::*;

pub(super) const NOTE: &str = "reach";
const HEADER_PAGE: [(&str, Range<usize>); 7] = [
    ("magic", 0..8),
    ("version", 8..12),
    ("header's CRC", 12..16),
    ("store id", 16..32),
    ("first revision", 32..40),
    ("length", 40..48),
    ("zeros", 48..4096),
];
const BATCH_HEADER: [(&str, Range<usize>); 7] = [
    ("batch's magic", 0..4),
    ("batch header's CRC", 4..8),
    ("body's CRC", 8..12),
    ("body's length", 12..16),
    ("count", 16..20),
    ("batch's zero", 20..24),
    ("batch's first revision", 24..32),
];

/// A directory of a test. In memory where the system has such a place: thousands of cases sync their files.
pub(super) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// The files of a closed journal by name, the lock left out.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Image(pub(super) BTreeMap<String, Vec<u8>>);

impl Image {
    pub(super) fn read(directory: &Path) -> Self {
        let files = fs::read_dir(directory).unwrap().map(Result::unwrap);
        let kept = files.filter(|file| file.file_name() != "lock" && file.path().is_file());
        let named = kept.map(|file| {
            let bytes = fs::read(file.path()).unwrap();
            (file.file_name().into_string().unwrap(), bytes)
        });
        Self(named.collect())
    }

    pub(super) fn write(&self, directory: &Path) {
        for (name, bytes) in &self.0 {
            fs::write(directory.join(name), bytes).unwrap();
        }
    }

    pub(super) fn segments(&self) -> Vec<String> {
        let names = self.0.keys().filter(|name| name.ends_with(".journal"));
        names.cloned().collect()
    }

    pub(super) fn file(&mut self, name: &str) -> &mut Vec<u8> {
        self.0.get_mut(name).unwrap()
    }
}

/// A batch as it was written: its segment, its bytes there, its revisions and where their records lie.
#[derive(Clone)]
pub(super) struct Written {
    pub(super) segment: String,
    pub(super) bytes: Range<usize>,
    pub(super) last_revision: u64,
    pub(super) records: Vec<Range<usize>>,
    pub(super) is_seal: bool,
}

pub(super) fn layout(directory: &Path) -> Vec<Written> {
    let directory = Directory::read(directory).unwrap();
    let mut written = Vec::new();
    for first in directory.segments().unwrap() {
        let segment = Segment::open(&directory, first).unwrap();
        let mut batches = Batches::new(&segment, Segment::BEGIN);
        loop {
            let begin = batches.offset as usize;
            let (last_revision, records, is_seal) = match batches.next().unwrap() {
                Found::Batch { header, records } => {
                    (header.last_revision(), places(begin, &records), false)
                }
                Found::Seal(next) => (next - 1, Vec::new(), true),
                _ => break,
            };
            written.push(Written {
                segment: segment_name(first),
                bytes: begin..batches.offset as usize,
                last_revision,
                records,
                is_seal,
            });
            if is_seal {
                break;
            }
        }
    }
    written
}

fn places(begin: usize, records: &[Record]) -> Vec<Range<usize>> {
    let mut at = begin + BATCH_HEADER_BYTES;
    let place = |record: &Record| {
        let place = at..at + RECORD_HEADER_BYTES + record.payload.len();
        at = place.end.next_multiple_of(8);
        place
    };
    records.iter().map(place).collect()
}

/// A closed journal and everything that it held.
pub(super) struct Original {
    pub(super) image: Image,
    pub(super) records: Vec<Record>,
    pub(super) written: Vec<Written>,
    pub(super) store_id: [u8; 16],
}

impl Original {
    /// Writes groups of records of these lengths, a group in few batches. Payloads differ from `seed` to `seed`.
    pub(super) fn write(store_id: [u8; 16], seed: u64, groups: &[Vec<usize>]) -> Self {
        let directory = scratch();
        let options = Options {
            store_id: Some(store_id),
            ..small_segments()
        };
        let (journal, _) = Journal::open(directory.path(), options).unwrap();
        let mut records = Vec::new();
        for group in groups {
            for length in group {
                let payload = payload(seed + records.len() as u64, *length);
                let revision = journal.submit_with(payload.clone(), |_| ()).unwrap();
                records.push(Record { revision, payload });
            }
            journal.wait(records.len() as u64, Some(PATIENCE)).unwrap();
        }
        journal.close().unwrap();
        Self {
            image: Image::read(directory.path()),
            written: layout(directory.path()),
            records,
            store_id,
        }
    }

    pub(super) fn last_revision(&self) -> u64 {
        self.records.len() as u64
    }

    /// Where the batches of a segment end, its seal included.
    pub(super) fn used(&self, segment: &str) -> usize {
        let here = self.written.iter().filter(|batch| batch.segment == segment);
        here.map(|batch| batch.bytes.end).max().unwrap_or(4096)
    }
}

/// A field of a segment's header, of a batch's or of a record.
#[derive(Clone)]
pub(super) struct Field {
    pub(super) segment: String,
    pub(super) name: String,
    pub(super) bytes: Range<usize>,
}

/// Every field of the header pages, of each segment's first two and last two batches (a seal is one), and of the first and the
/// last record in each of these.
pub(super) fn fields(original: &Original) -> Vec<Field> {
    let mut fields = Vec::new();
    for segment in original.image.segments() {
        let here = |batch: &&Written| batch.segment == segment;
        let batches: Vec<_> = original.written.iter().filter(here).collect();
        let mut add = |name: &str, begin: usize, bytes: &Range<usize>| {
            fields.push(Field {
                segment: segment.clone(),
                name: name.to_owned(),
                bytes: begin + bytes.start..begin + bytes.end,
            });
        };
        HEADER_PAGE
            .iter()
            .for_each(|(name, bytes)| add(name, 0, bytes));
        for (index, batch) in batches.iter().enumerate() {
            if index > 1 && index + 2 < batches.len() {
                continue;
            }
            let kind = if batch.is_seal { "seal: " } else { "" };
            for (name, bytes) in &BATCH_HEADER {
                add(&format!("{kind}{name}"), batch.bytes.start, bytes);
            }
            for (index, record) in batch.records.iter().enumerate() {
                if index == 0 || index + 1 == batch.records.len() {
                    add("record's length", record.start, &(0..4));
                    add("record's CRC", record.start, &(4..8));
                    add("record's revision", record.start, &(8..16));
                    add("payload", record.start, &(16..record.len()));
                    let padded = record.len().next_multiple_of(8);
                    add("padding", record.start, &(record.len()..padded));
                }
            }
        }
    }
    fields.retain(|field| !field.bytes.is_empty());
    fields
}
