//! Why the journal refuses to open, to accept or to read.

use std::io;
use std::path::Path;
use std::sync::Arc;

/// What went wrong. `Full` and `Busy` may be tried again; `Failed` and `Closed` last until the journal is reopened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// There is no preallocated space for the record, and none can be allocated. Records are accepted again when there is.
    #[error("the journal has no room: {reason}")]
    Full { reason: Arc<str> },
    /// The queue stayed above its bound for the whole time that the caller waits.
    #[error("the journal's queue stayed full")]
    Busy,
    /// The payload is larger than a record may be.
    #[error("a payload of {bytes} bytes exceeds the limit of {limit}")]
    TooLarge { bytes: usize, limit: usize },
    /// A write or sync failed. The outcome of unpublished records is unknown until the journal is reopened.
    #[error("the journal stopped: {0}")]
    Failed(Arc<str>),
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
    /// Bytes of a segment differ from those that were written.
    #[error("segment {segment} is damaged at byte {offset}: {reason}")]
    Damaged {
        segment: String,
        offset: u64,
        reason: String,
    },
    /// A segment of a format that this version does not know.
    #[error("segment {segment} has format version {found}")]
    Version { segment: String, found: u32 },
    /// A segment that belongs to another store.
    #[error(
        "segment {segment} belongs to store {}, not to {}",
        hex(found),
        hex(expected)
    )]
    ForeignStore {
        segment: String,
        expected: [u8; 16],
        found: [u8; 16],
    },
    /// The journal ends before what was applied: it was lost, or an older copy was put in its place.
    #[error("the journal ends at revision {last}, but revision {applied} was applied")]
    Behind { last: u64, applied: u64 },
    /// The journal ends before what was published: acknowledged records were lost.
    #[error("the journal ends at revision {last}, but revision {published} was acknowledged")]
    Short { last: u64, published: u64 },
    /// Records between the last applied one and the first one that the journal still holds are gone.
    #[error("the journal begins at revision {first}, but only revision {applied} was applied")]
    Gap { first: u64, applied: u64 },
    /// The records asked for were released.
    #[error("records up to revision {0} were released")]
    Released(u64),
    /// Another process, or another `Journal` of this one, has the directory open.
    #[error("the journal in {0} is open elsewhere")]
    Locked(String),
    /// The options contradict each other.
    #[error("invalid journal options: {0}")]
    InvalidOptions(&'static str),
    /// The operating system refused an operation other than a write of records.
    #[error("{path}: {source}")]
    Io {
        path: String,
        source: Arc<io::Error>,
    },
}

impl JournalError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.display().to_string(),
            source: Arc::new(source),
        }
    }

    /// Half of a record's changes may have been made when something panicked.
    pub(super) fn panicked() -> Self {
        Self::Failed("a panic may have left half of a change in memory: restart the server".into())
    }

    pub(super) fn damaged(segment: &str, offset: u64, reason: impl Into<String>) -> Self {
        Self::Damaged {
            segment: segment.to_owned(),
            offset,
            reason: reason.into(),
        }
    }
}

/// A store's id as it is written elsewhere.
fn hex(id: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}

/// Whether a file could not be made for lack of space or file descriptors, which may become free.
pub(super) fn is_lack(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull};
    use rustix::io::Errno;

    let lacks_descriptors = [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    lacks_descriptors
        || matches!(
            error.kind(),
            StorageFull | QuotaExceeded | FileTooLarge | OutOfMemory
        )
}
