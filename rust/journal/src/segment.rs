//! One segment file: preallocated before it is used, read batch by batch, found by revision.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use parking_lot::Mutex;

use super::JournalError;
use super::directory::{Directory, segment_name};
use super::failpoints::{self, Point};
use super::format::{HEADER_PAGE_BYTES, HeaderFault, Scope, SegmentHeader};

/// Bytes between the marks by which a revision is found without reading the segment from its start.
const MARK_EVERY_BYTES: u64 = 64 << 10;
const READ_BUFFER_BYTES: usize = 256 << 10;

/// Zeros are written a page at a time: a small write into a larger one, cached whole, would dirty all of it.
const PAGE_BYTES: u64 = 4 << 10;

/// A file with its blocks allocated, which will become the next segment.
pub(super) struct Spare {
    file: File,
    segment_bytes: u64,
}

impl Spare {
    /// Allocates the file's blocks, durably. Fails if there is no space, and leaves nothing behind then.
    pub(super) fn prepare(directory: &Directory, segment_bytes: u64) -> io::Result<Self> {
        let prepared = Self::allocate(directory, segment_bytes);
        if prepared.is_err() {
            Self::discard(directory);
        }
        prepared
    }

    /// As `prepare`, and fails as if there were no space where less than `room` bytes and another segment's are left behind
    /// it: what waits to be applied, and what this one will hold, must find room in the database, too, or it cannot be read
    /// there. Nothing is allocated where that is clear before: the database would lack it meanwhile.
    pub(super) fn prepare_leaving_room(
        directory: &Directory,
        segment_bytes: u64,
        room: u64,
    ) -> io::Result<Self> {
        let left = room + segment_bytes;
        let has_room = |needed| Ok::<_, io::Error>(directory.free_bytes()? >= needed);
        if !has_room(segment_bytes + left)? {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let spare = Self::prepare(directory, segment_bytes)?;
        if !has_room(left)? {
            Self::discard(directory);
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(spare)
    }

    fn allocate(directory: &Directory, segment_bytes: u64) -> io::Result<Self> {
        let path = directory.spare_path();
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        failpoints::hit(Point::SegmentPrepared, directory.path())?;
        allocate_blocks(&file, segment_bytes)?;
        file.sync_all()?;
        Ok(Self {
            file,
            segment_bytes,
        })
    }

    /// Removes a spare that will not be used. What cannot be removed now is overwritten by the next one.
    pub(super) fn discard(directory: &Directory) {
        let _ = fs::remove_file(directory.spare_path());
    }

    /// Becomes the segment that begins at `first_revision`: its header is durable before its name is.
    pub(super) fn begin(
        self,
        directory: &Directory,
        store_id: [u8; 16],
        first_revision: u64,
    ) -> io::Result<Segment> {
        let header = SegmentHeader {
            store_id,
            first_revision,
            segment_bytes: self.segment_bytes,
        };
        self.file.write_all_at(&header.encode(), 0)?;
        self.file.sync_all()?;
        fs::rename(
            directory.spare_path(),
            directory.segment_path(first_revision),
        )?;
        directory.sync()?;
        failpoints::hit(Point::SegmentNamed, directory.path())?;
        Ok(Segment::new(directory, self.file, header))
    }
}

#[cfg(target_os = "linux")]
fn allocate_blocks(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;

    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, 0, bytes),
        allocated => Ok(allocated?),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate_blocks(file: &File, bytes: u64) -> io::Result<()> {
    write_zeros(file, 0, bytes)
}

fn write_zeros(file: &File, mut from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    while from < to {
        let length = (to - from).min(zeros.len() as u64);
        file.write_all_at(&zeros[..length as usize], from)?;
        from += length;
    }
    Ok(())
}

/// A named segment, with a valid header.
pub(super) struct Segment {
    pub(super) header: SegmentHeader,
    pub(super) name: String,
    path: PathBuf,
    file: File,
    scope: Scope,
    /// First revision and offset of some batches, in order.
    marks: Mutex<Vec<(u64, u64)>>,
}

impl Segment {
    fn new(directory: &Directory, file: File, header: SegmentHeader) -> Self {
        Self {
            header,
            name: segment_name(header.first_revision),
            path: directory.segment_path(header.first_revision),
            file,
            scope: header.scope(),
            marks: Mutex::new(Vec::new()),
        }
    }

    /// Opens the segment named by `first_revision` and checks its header and its length against its name.
    pub(super) fn open(directory: &Directory, first_revision: u64) -> Result<Self, JournalError> {
        let path = directory.segment_path(first_revision);
        let refused = |source| JournalError::io(&path, source);
        let file = File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(refused)?;
        let length = file.metadata().map_err(refused)?.len();
        let mut page = [0; HEADER_PAGE_BYTES];
        let present = length.min(page.len() as u64) as usize;
        file.read_exact_at(&mut page[..present], 0)
            .map_err(refused)?;
        let header = checked_header(&page, first_revision, length)?;
        Ok(Self::new(directory, file, header))
    }

    /// Opens the segment named by `first_revision` to read what can be read of it, whatever is wrong with it.
    pub(super) fn read(
        directory: &Directory,
        first_revision: u64,
    ) -> Result<Readable, JournalError> {
        let path = directory.segment_path(first_revision);
        let refused = |source| JournalError::io(&path, source);
        let file = File::open(&path).map_err(refused)?;
        let bytes = file.metadata().map_err(refused)?.len();
        let mut page = [0; HEADER_PAGE_BYTES];
        let present = bytes.min(page.len() as u64) as usize;
        file.read_exact_at(&mut page[..present], 0)
            .map_err(refused)?;
        let checked = checked_header(&page, first_revision, bytes);
        Ok(Readable {
            name: segment_name(first_revision),
            faults: checked.err().iter().map(placed).collect(),
            header: SegmentHeader::decode(&page),
            named_first: first_revision,
            bytes,
            path,
            file,
        })
    }

    /// Where batches begin.
    pub(super) const BEGIN: u64 = HEADER_PAGE_BYTES as u64;

    pub(super) fn scope(&self) -> Scope {
        self.scope
    }

    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Writes zeros from the first whole page after `from` on, and returns where they end: a batch written over them needs
    /// no change of the file's metadata, which takes the file system another write and more time.
    pub(super) fn fill(&self, from: u64, bytes: u64) -> io::Result<u64> {
        let page = [0; PAGE_BYTES as usize];
        let first = from.next_multiple_of(PAGE_BYTES);
        let end = (first + bytes).min(self.header.segment_bytes);
        for at in (first..end).step_by(page.len()) {
            let length = (end - at).min(PAGE_BYTES) as usize;
            self.file.write_all_at(&page[..length], at)?;
        }
        Ok(end)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Overwrites a range with zeros, durably.
    pub(super) fn erase(&self, from: u64, to: u64) -> io::Result<()> {
        write_zeros(&self.file, from, to)?;
        self.file.sync_all()
    }

    pub(super) fn delete(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes a range again as it reads now, so that a later sync writes it whatever became of its earlier ones.
    pub(super) fn rewrite(&self, from: u64, to: u64) -> io::Result<()> {
        let mut bytes = vec![0; (to - from) as usize];
        self.file.read_exact_at(&mut bytes, from)?;
        self.file.write_all_at(&bytes, from)
    }

    /// A read or write of this segment that the operating system refused.
    pub(super) fn refused(&self, source: io::Error) -> JournalError {
        JournalError::io(&self.path, source)
    }

    pub(super) fn damaged(&self, offset: u64, reason: impl Into<String>) -> JournalError {
        JournalError::damaged(&self.name, offset, reason)
    }

    /// The segment's bytes from `offset` on.
    pub(super) fn bytes_from(&self, offset: u64) -> impl Read + '_ {
        let source = PositionedRead {
            file: &self.file,
            offset,
        };
        BufReader::with_capacity(
            READ_BUFFER_BYTES,
            source.take(self.header.segment_bytes - offset),
        )
    }

    /// Remembers where a batch lies, unless another one lies closely before it.
    pub(super) fn mark(&self, first_revision: u64, offset: u64) {
        let mut marks = self.marks.lock();
        if marks
            .last()
            .is_none_or(|(_, last)| offset - last >= MARK_EVERY_BYTES)
        {
            marks.push((first_revision, offset));
        }
    }

    /// Where to start reading to find `revision`: at its batch or at one before it.
    pub(super) fn offset_towards(&self, revision: u64) -> u64 {
        let marks = self.marks.lock();
        let behind = marks.partition_point(|(first, _)| *first <= revision);
        behind
            .checked_sub(1)
            .map_or(Self::BEGIN, |mark| marks[mark].1)
    }
}

/// A segment file as it was found.
pub(super) struct Readable {
    pub(super) name: String,
    /// What is wrong with its header, its name and its length, and where.
    pub(super) faults: Vec<(u64, String)>,
    pub(super) header: Result<SegmentHeader, HeaderFault>,
    named_first: u64,
    pub(super) bytes: u64,
    path: PathBuf,
    file: File,
}

impl Readable {
    /// The first revision by the header, or by the name where the header is damaged.
    pub(super) fn first_revision(&self) -> u64 {
        let named = self.named_first;
        self.header
            .as_ref()
            .map_or(named, |header| header.first_revision)
    }

    /// The segment, of the length that it has, if it is of a format that is known and long enough to hold a batch. Where the
    /// header is damaged, it is taken to be the one of `store_id` that the name says.
    pub(super) fn into_segment(self, store_id: [u8; 16]) -> Option<Segment> {
        let first_revision = self.first_revision();
        if self.bytes < Segment::BEGIN || matches!(self.header, Err(HeaderFault::Version(_))) {
            return None;
        }
        let header = SegmentHeader {
            store_id,
            first_revision,
            segment_bytes: self.bytes,
        };
        Some(Segment {
            header,
            name: self.name,
            path: self.path,
            file: self.file,
            scope: header.scope(),
            marks: Mutex::new(Vec::new()),
        })
    }
}

/// Where an error of a header lies, and what it says.
fn placed(error: &JournalError) -> (u64, String) {
    match error {
        JournalError::Damaged { offset, reason, .. } => (*offset, reason.clone()),
        other => (0, other.to_string()),
    }
}

/// Reads a file from a place of its own, whoever else reads it.
struct PositionedRead<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for PositionedRead<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

fn checked_header(
    page: &[u8; HEADER_PAGE_BYTES],
    first_revision: u64,
    length: u64,
) -> Result<SegmentHeader, JournalError> {
    let name = segment_name(first_revision);
    let damaged = |offset, reason: String| Err(JournalError::damaged(&name, offset, reason));
    let header = match SegmentHeader::decode(page) {
        Ok(header) => header,
        Err(HeaderFault::Version(found)) => {
            return Err(JournalError::Version {
                segment: name,
                found,
            });
        }
        Err(HeaderFault::Damaged(reason)) => return damaged(0, reason.to_owned()),
    };
    if header.first_revision != first_revision {
        return damaged(
            0,
            format!("the header begins at revision {}", header.first_revision),
        );
    }
    if header.segment_bytes != length {
        let shorter = length.min(header.segment_bytes);
        return damaged(
            shorter,
            format!(
                "{length} bytes long, the header says {}",
                header.segment_bytes
            ),
        );
    }
    if length < Segment::BEGIN {
        return damaged(length, "shorter than a segment's header".to_owned());
    }
    Ok(header)
}
