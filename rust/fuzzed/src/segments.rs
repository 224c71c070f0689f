//! Segments of a journal, written by the description of the format alone, with any of their fields forged.

use std::collections::HashMap;

use crc32c::{crc32c, crc32c_append};

pub(crate) const SEGMENT_BYTES: usize = 16 << 10;
pub(crate) const STORE: [u8; 16] = *b"a store of tests";
const PAGE: usize = 4096;

/// A place in the journal's files whose value is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    Version,
    StoreId,
    SegmentFirstRevision,
    SegmentBytes,
    BodyBytes(usize),
    RecordCount(usize),
    BatchFirstRevision(usize),
    PayloadBytes(usize),
    RecordRevision(usize),
}

/// Values that stand in the files instead of the right ones, under checksums that are right.
pub(crate) type Forged = HashMap<Field, u64>;

/// Writes one segment: its batches as the lengths of their payloads, and whether a seal follows them.
pub(crate) struct SegmentWriter<'a> {
    pub(crate) first_revision: u64,
    pub(crate) batches: &'a [Vec<usize>],
    pub(crate) sealed: bool,
    pub(crate) forged: &'a Forged,
}

/// A segment's bytes, and where each of its batches begins and ends.
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    pub(crate) batches: Vec<(usize, usize)>,
}

impl SegmentWriter<'_> {
    pub(crate) fn write(&self) -> Written {
        let mut bytes = self.page();
        let mut written = Vec::new();
        let mut revision = self.first_revision;
        for (index, payloads) in self.batches.iter().enumerate() {
            let begin = bytes.len();
            let body = self.body(index, revision, payloads);
            let batch = self.batch(index, bytes.len() as u64, revision, payloads.len(), &body);
            bytes.extend(batch);
            written.push((begin, bytes.len()));
            revision = revision.wrapping_add(payloads.len() as u64);
        }
        if self.sealed {
            let seal = self.batch(self.batches.len(), bytes.len() as u64, revision, 0, &[]);
            bytes.extend(seal);
        }
        bytes.resize(SEGMENT_BYTES.max(bytes.len()), 0);
        Written {
            bytes,
            batches: written,
        }
    }

    fn value(&self, field: Field, right: u64) -> u64 {
        self.forged.get(&field).copied().unwrap_or(right)
    }

    fn store(&self) -> [u8; 16] {
        let mut store = STORE;
        store[0] ^= self.value(Field::StoreId, 0) as u8;
        store
    }

    fn first(&self) -> u64 {
        self.value(Field::SegmentFirstRevision, self.first_revision)
    }

    fn page(&self) -> Vec<u8> {
        let mut page = b"REMORAJ1".to_vec();
        page.extend((self.value(Field::Version, 1) as u32).to_le_bytes());
        page.extend([0; 4]);
        page.extend(self.store());
        page.extend(self.first().to_le_bytes());
        page.extend(
            self.value(Field::SegmentBytes, SEGMENT_BYTES as u64)
                .to_le_bytes(),
        );
        page.resize(PAGE, 0);
        let crc = crc32c(&page);
        page[12..16].copy_from_slice(&crc.to_le_bytes());
        page
    }

    fn body(&self, batch: usize, first_revision: u64, payloads: &[usize]) -> Vec<u8> {
        let mut body = Vec::new();
        for (index, length) in payloads.iter().enumerate() {
            let right = first_revision.wrapping_add(index as u64);
            // The forged fields are those of a batch's first record.
            let (length_field, revision) = match index {
                0 => (
                    self.value(Field::PayloadBytes(batch), *length as u64) as u32,
                    self.value(Field::RecordRevision(batch), right),
                ),
                _ => (*length as u32, right),
            };
            let payload = payload(right, *length);
            let checked = crc32c_append(crc32c(&payload), &revision.to_le_bytes());
            body.extend(length_field.to_le_bytes());
            body.extend(crc32c_append(checked, &length_field.to_le_bytes()).to_le_bytes());
            body.extend(revision.to_le_bytes());
            body.extend(&payload);
            body.resize(body.len().next_multiple_of(8), 0);
        }
        body
    }

    fn batch(
        &self,
        index: usize,
        offset: u64,
        first_revision: u64,
        records: usize,
        body: &[u8],
    ) -> Vec<u8> {
        let mut checked = crc32c(body).to_le_bytes().to_vec();
        let bytes = self.value(Field::BodyBytes(index), body.len() as u64) as u32;
        let records = self.value(Field::RecordCount(index), records as u64) as u32;
        let first = self.value(Field::BatchFirstRevision(index), first_revision);
        checked.extend(bytes.to_le_bytes());
        checked.extend(records.to_le_bytes());
        checked.extend([0; 4]);
        checked.extend(first.to_le_bytes());
        let scope = crc32c_append(crc32c(&self.store()), &self.first().to_le_bytes());
        let placed = crc32c_append(scope, &offset.to_le_bytes());
        let mut batch = b"RBAT".to_vec();
        batch.extend(crc32c_append(placed, &checked).to_le_bytes());
        batch.extend(&checked);
        batch.extend(body);
        batch
    }
}

/// The payload of a revision.
pub(crate) fn payload(revision: u64, length: usize) -> Vec<u8> {
    let byte = |at: u64| (revision.wrapping_mul(31) ^ at.wrapping_mul(0x9e37_79b9)) as u8;
    (0..length as u64).map(byte).collect()
}
