//! The reach of the journal, noted in a file beside its segments: how far it was published, and how far it was applied.
//!
//! The note is written after every sync and is never synced itself. It outlives the process, so that after a kill a torn
//! end can be distinguished from a loss of acknowledged records. A power cut may leave an older note or none. An older note
//! is true as well, because it is a lower bound.
//!
//! | magic, 8 | CRC of what follows, 4 | zero, 4 | store id, 16 | published, 8 | applied, 8 |

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::{Buf, BufMut};
use crc32c::crc32c;
use parking_lot::Mutex;

const MAGIC: [u8; 8] = *b"REMORAN1";
const CHECKED_FROM: usize = 16;
const NOTE_BYTES: usize = 48;
const FILE_NAME: &str = "reach";

/// Revisions that the journal had reached at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Published, thus synced and perhaps acknowledged.
    pub published: u64,
    /// Applied, as the one who applies said.
    pub applied: u64,
}

/// What the note of a directory says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// There is none.
    Absent,
    /// It is torn or damaged, or another store's: it says nothing.
    Unreadable,
    Found(Reached),
}

impl Note {
    pub(super) fn read(directory: &Path, store_id: [u8; 16]) -> io::Result<Self> {
        let bytes = match std::fs::read(directory.join(FILE_NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Absent),
            read => read?,
        };
        Ok(decode(&bytes, store_id).map_or(Self::Unreadable, Self::Found))
    }

    /// A lower bound of the reach: nothing if the note is missing or damaged.
    pub fn reached(self) -> Reached {
        match self {
            Self::Found(reached) => reached,
            Self::Absent | Self::Unreadable => Reached::default(),
        }
    }
}

fn decode(bytes: &[u8], store_id: [u8; 16]) -> Option<Reached> {
    let mut fields = bytes.get(..NOTE_BYTES)?;
    let crc = crc32c(&fields[CHECKED_FROM..]);
    if fields.copy_to_bytes(8)[..] != MAGIC || fields.get_u32_le() != crc {
        return None;
    }
    fields.advance(4);
    if fields.copy_to_bytes(16)[..] != store_id {
        return None;
    }
    Some(Reached {
        published: fields.get_u64_le(),
        applied: fields.get_u64_le(),
    })
}

fn encode(reached: Reached, store_id: [u8; 16]) -> Vec<u8> {
    let mut note = Vec::with_capacity(NOTE_BYTES);
    note.put_slice(&MAGIC);
    note.put_u64_le(0);
    note.put_slice(&store_id);
    note.put_u64_le(reached.published);
    note.put_u64_le(reached.applied);
    let crc = crc32c(&note[CHECKED_FROM..]);
    note[8..][..4].copy_from_slice(&crc.to_le_bytes());
    note
}

/// Keeps the note of an open journal.
pub(super) struct Reach {
    /// `None` if the directory had no room for it.
    file: Option<File>,
    store_id: [u8; 16],
    reached: Mutex<Reached>,
}

impl Reach {
    pub(super) fn begin(directory: &Path, store_id: [u8; 16], reached: Reached) -> Self {
        let opened = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(directory.join(FILE_NAME));
        let reach = Self {
            file: opened.ok(),
            store_id,
            reached: Mutex::new(reached),
        };
        reach.note(|_| ());
        reach
    }

    pub(super) fn note_published(&self, revision: u64) {
        self.note(|reached| reached.published = revision);
    }

    pub(super) fn note_applied(&self, revision: u64) {
        self.note(|reached| reached.applied = revision);
    }

    /// Up to where records were applied.
    pub(super) fn applied(&self) -> u64 {
        self.reached.lock().applied
    }

    /// A note that cannot be written stays too low, and true.
    fn note(&self, change: impl FnOnce(&mut Reached)) {
        let mut reached = self.reached.lock();
        change(&mut reached);
        if let Some(file) = &self.file {
            let _ = file.write_all_at(&encode(*reached, self.store_id), 0);
        }
    }
}
