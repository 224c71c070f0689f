//! The bytes of a segment: its header page, its batches and their records, and the checks that bind them to their place.
//!
//! All integers are little-endian. A segment is a header page, then batches back to back, then zeros up to its length.
//!
//! | header page (4,096 bytes) | batch header (32 bytes)           | record (16 bytes + payload, padded to 8) |
//! |---------------------------|-----------------------------------|------------------------------------------|
//! | magic, 8                  | magic, 4                          | payload length, 4                        |
//! | format version, 4         | CRC of place and bytes 8 to 32, 4 | CRC of payload, revision and length, 4   |
//! | CRC of the page, 4        | CRC of the body, 4                | revision, 8                              |
//! | store id, 16              | body length, 4                    | payload                                  |
//! | first revision, 8         | record count, 4                   | zeros                                    |
//! | segment length, 8         | zero, 4                           |                                          |
//! | zeros                     | first revision, 8                 |                                          |
//!
//! A batch is one write. Its header's CRC starts from the store's id, the segment's first revision and the batch's own
//! offset, so that bytes of another store, segment or place are never taken for a batch. A batch without records is a
//! **seal**: the journal continues in another segment, which begins at the seal's first revision.

use std::ops::Range;

use bytes::{Buf, BufMut, Bytes};
use crc32c::{crc32c, crc32c_append};

use super::faults::{Fault, is_planted};

pub(super) const FORMAT_VERSION: u32 = 1;
pub(super) const HEADER_PAGE_BYTES: usize = 4096;
pub(super) const BATCH_HEADER_BYTES: usize = 32;
pub(super) const RECORD_HEADER_BYTES: usize = 16;
pub(super) const ALIGNMENT: usize = 8;
/// The largest payload of a record.
pub const MAX_PAYLOAD_BYTES: usize = 40 << 20;
/// The largest revision at which bytes that were read may begin: sums of what follows stay within their type.
const MAX_FIRST_REVISION: u64 = 1 << 62;

const SEGMENT_MAGIC: [u8; 8] = *b"REMORAJ1";
const BATCH_MAGIC: u32 = u32::from_le_bytes(*b"RBAT");
const PAGE_CRC_AT: usize = 12;
const BATCH_CRC_FROM: usize = 8;

/// A record as readers get it: its revision and its opaque payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub revision: u64,
    pub payload: Bytes,
}

/// A record on its way to disk. Its payload's CRC is taken when it is accepted.
pub(super) struct Entry {
    pub(super) revision: u64,
    pub(super) payload: Bytes,
    pub(super) payload_crc: u32,
}

/// Bytes that a payload takes in a batch.
pub(super) fn record_bytes(payload: usize) -> usize {
    RECORD_HEADER_BYTES + payload.next_multiple_of(ALIGNMENT)
}

/// Bytes that a payload takes at most, in a batch of its own.
pub(super) fn lone_batch_bytes(payload: usize) -> u64 {
    (BATCH_HEADER_BYTES + record_bytes(payload)) as u64
}

/// Bytes of batches that a segment holds beside its header page and its seal.
pub(super) fn batch_room(segment_bytes: u64) -> u64 {
    segment_bytes.saturating_sub((HEADER_PAGE_BYTES + BATCH_HEADER_BYTES) as u64)
}

/// The largest payload that fits an empty segment.
pub(super) fn largest_payload(segment_bytes: u64) -> u64 {
    let payload = batch_room(segment_bytes).saturating_sub(lone_batch_bytes(0));
    payload - payload % ALIGNMENT as u64
}

/// The fields of a segment's header page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) store_id: [u8; 16],
    pub(super) first_revision: u64,
    pub(super) segment_bytes: u64,
}

/// Why a header page was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeaderFault {
    Damaged(&'static str),
    Version(u32),
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut page = Vec::with_capacity(HEADER_PAGE_BYTES);
        page.put_slice(&SEGMENT_MAGIC);
        page.put_u32_le(FORMAT_VERSION);
        page.put_u32_le(0);
        page.put_slice(&self.store_id);
        page.put_u64_le(self.first_revision);
        page.put_u64_le(self.segment_bytes);
        page.resize(HEADER_PAGE_BYTES, 0);
        let crc = crc32c(&page);
        page[PAGE_CRC_AT..][..4].copy_from_slice(&crc.to_le_bytes());
        page
    }

    /// Reads a header page. Its CRC is checked before its version, so that a flipped version is damage.
    pub(super) fn decode(page: &[u8; HEADER_PAGE_BYTES]) -> Result<Self, HeaderFault> {
        if page[..8] != SEGMENT_MAGIC {
            return Err(HeaderFault::Damaged("no segment header"));
        }
        let mut fields = &page[8..];
        let (version, crc) = (fields.get_u32_le(), fields.get_u32_le());
        let unchecked = crc32c_append(crc32c(&page[..PAGE_CRC_AT]), &[0; 4]);
        let is_whole = crc32c_append(unchecked, &page[PAGE_CRC_AT + 4..]) == crc;
        if !is_whole && !is_planted(Fault::HeaderChecksum) {
            return Err(HeaderFault::Damaged("segment header's checksum"));
        }
        if version != FORMAT_VERSION {
            return Err(HeaderFault::Version(version));
        }
        let mut store_id = [0; 16];
        fields.copy_to_slice(&mut store_id);
        let first_revision = fields.get_u64_le();
        if !(1..=MAX_FIRST_REVISION).contains(&first_revision) {
            return Err(HeaderFault::Damaged("segment header's first revision"));
        }
        Ok(Self {
            store_id,
            first_revision,
            segment_bytes: fields.get_u64_le(),
        })
    }

    pub(super) fn scope(&self) -> Scope {
        let store = crc32c(&self.store_id);
        Scope(crc32c_append(store, &self.first_revision.to_le_bytes()))
    }
}

/// The seed of checksums, which binds a batch to its store and segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope(u32);

impl Scope {
    fn header_crc(self, offset: u64, checked: &[u8]) -> u32 {
        crc32c_append(crc32c_append(self.0, &offset.to_le_bytes()), checked)
    }
}

/// The fields of a batch's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchHeader {
    pub(super) body_crc: u32,
    pub(super) body_bytes: u32,
    pub(super) records: u32,
    pub(super) first_revision: u64,
}

impl BatchHeader {
    /// The header of a seal: the journal goes on at `next_revision` in another segment.
    pub(super) fn seal(next_revision: u64) -> Self {
        Self {
            body_crc: crc32c(&[]),
            body_bytes: 0,
            records: 0,
            first_revision: next_revision,
        }
    }

    pub(super) fn is_seal(&self) -> bool {
        self.records == 0
    }

    pub(super) fn last_revision(&self) -> u64 {
        self.first_revision + u64::from(self.records) - 1
    }

    pub(super) fn encode(&self, scope: Scope, offset: u64) -> [u8; BATCH_HEADER_BYTES] {
        let mut checked = Vec::with_capacity(BATCH_HEADER_BYTES);
        checked.put_u32_le(self.body_crc);
        checked.put_u32_le(self.body_bytes);
        checked.put_u32_le(self.records);
        checked.put_u32_le(0);
        checked.put_u64_le(self.first_revision);
        let mut header = [0; BATCH_HEADER_BYTES];
        let mut fields = &mut header[..];
        fields.put_u32_le(BATCH_MAGIC);
        fields.put_u32_le(scope.header_crc(offset, &checked));
        fields.put_slice(&checked);
        header
    }

    /// The header at `offset`, or `None` when these bytes were not written there.
    pub(super) fn decode(bytes: &[u8], scope: Scope, offset: u64) -> Option<Self> {
        let mut fields = bytes.get(..BATCH_HEADER_BYTES)?;
        let checked = &fields[BATCH_CRC_FROM..];
        if fields.get_u32_le() != BATCH_MAGIC {
            return None;
        }
        let is_whole = fields.get_u32_le() == scope.header_crc(offset, checked);
        if !is_whole && !is_planted(Fault::HeaderChecksum) {
            return None;
        }
        let (body_crc, body_bytes, records) = (
            fields.get_u32_le(),
            fields.get_u32_le(),
            fields.get_u32_le(),
        );
        fields.advance(4);
        let first_revision = fields.get_u64_le();
        (first_revision <= MAX_FIRST_REVISION).then_some(Self {
            body_crc,
            body_bytes,
            records,
            first_revision,
        })
    }
}

/// Writes the batch of `entries` that will lie at `offset` into `out`, replacing what it held.
pub(super) fn encode_batch(out: &mut Vec<u8>, scope: Scope, offset: u64, entries: &[Entry]) {
    out.clear();
    out.resize(BATCH_HEADER_BYTES, 0);
    for entry in entries {
        encode_record(out, entry);
    }
    let body = &out[BATCH_HEADER_BYTES..];
    let header = BatchHeader {
        body_crc: crc32c(body),
        body_bytes: body.len() as u32,
        records: entries.len() as u32,
        first_revision: entries.first().map_or(0, |entry| entry.revision),
    };
    out[..BATCH_HEADER_BYTES].copy_from_slice(&header.encode(scope, offset));
}

fn encode_record(out: &mut Vec<u8>, entry: &Entry) {
    let length = entry.payload.len() as u32;
    out.put_u32_le(length);
    out.put_u32_le(record_crc(entry.payload_crc, entry.revision, length));
    out.put_u64_le(entry.revision);
    out.put_slice(&entry.payload);
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

fn record_crc(payload_crc: u32, revision: u64, length: u32) -> u32 {
    let with_revision = crc32c_append(payload_crc, &revision.to_le_bytes());
    crc32c_append(with_revision, &length.to_le_bytes())
}

/// The records of a batch, or what is wrong with its body.
pub(super) fn decode_batch(
    header: &BatchHeader,
    mut body: Bytes,
) -> Result<Vec<Record>, &'static str> {
    let is_whole = body.len() == header.body_bytes as usize && crc32c(&body) == header.body_crc;
    if !is_whole && !is_planted(Fault::BodyChecksum) {
        return Err("batch's checksum");
    }
    let revisions = header.first_revision..header.first_revision + u64::from(header.records);
    let records = revisions
        .map(|revision| decode_record(&mut body, revision))
        .collect();
    if body.is_empty() {
        records
    } else {
        Err("bytes behind the last record")
    }
}

/// What can be read of a damaged batch at the start of `bytes`, which lie at `offset`, and the length of the batch. `None` where
/// nothing binds these bytes to their place: neither the header, nor its checksum over what the records say that it was.
pub(super) fn salvage_batch(
    bytes: &Bytes,
    scope: Scope,
    offset: u64,
    next_revision: u64,
) -> Option<(Vec<Record>, usize)> {
    match BatchHeader::decode(bytes, scope, offset) {
        Some(header) if header.is_seal() => None,
        Some(header) => {
            let revisions = header.first_revision..header.last_revision() + 1;
            let length = BATCH_HEADER_BYTES + header.body_bytes as usize;
            let body = bytes.slice(BATCH_HEADER_BYTES..length.min(bytes.len()));
            Some((find_records(&body, revisions), length))
        }
        None => restore_batch(bytes, scope, offset, next_revision),
    }
}

/// A batch of whole records whose header is damaged, but for its checksum: that proves what the header must have been.
fn restore_batch(
    bytes: &Bytes,
    scope: Scope,
    offset: u64,
    next_revision: u64,
) -> Option<(Vec<Record>, usize)> {
    let mut rest = bytes.slice(BATCH_HEADER_BYTES.min(bytes.len())..);
    let mut records = Vec::new();
    let mut revision = next_revision;
    loop {
        let before = rest.clone();
        let Ok(record) = decode_record(&mut rest, revision) else {
            rest = before;
            break;
        };
        records.push(record);
        revision += 1;
    }
    let length = bytes.len() - rest.len();
    let body = bytes.get(BATCH_HEADER_BYTES..length)?;
    let header = BatchHeader {
        body_crc: crc32c(body),
        body_bytes: body.len() as u32,
        records: records.len() as u32,
        first_revision: next_revision,
    };
    let proof = header.encode(scope, offset)[4..BATCH_CRC_FROM] == bytes[4..BATCH_CRC_FROM];
    (proof && !records.is_empty()).then_some((records, length))
}

/// The whole records of `wanted` revisions that lie in `bytes`, however damaged what is between them. They begin at multiples
/// of the alignment.
fn find_records(bytes: &Bytes, wanted: Range<u64>) -> Vec<Record> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + RECORD_HEADER_BYTES <= bytes.len() {
        let revision = (&bytes[at + 8..]).get_u64_le();
        let record = wanted.contains(&revision).then(|| {
            let mut rest = bytes.slice(at..);
            decode_record(&mut rest, revision).ok()
        });
        at += match record.flatten() {
            None => ALIGNMENT,
            Some(record) => {
                let length = record_bytes(record.payload.len());
                found.push(record);
                length
            }
        };
    }
    found
}

fn decode_record(body: &mut Bytes, revision: u64) -> Result<Record, &'static str> {
    if body.len() < RECORD_HEADER_BYTES {
        return Err("record's header");
    }
    let (length, crc, found) = (body.get_u32_le(), body.get_u32_le(), body.get_u64_le());
    let padded = (length as usize).next_multiple_of(ALIGNMENT);
    if body.len() < padded {
        return Err("record's length");
    }
    let mut payload = body.split_to(padded);
    payload.truncate(length as usize);
    let is_whole = record_crc(crc32c(&payload), found, length) == crc;
    if !is_whole && !is_planted(Fault::BodyChecksum) {
        return Err("record's checksum");
    }
    if found != revision {
        return Err("record's revision");
    }
    Ok(Record { revision, payload })
}
