//! The journal's directory: its lock, the names of its files, and the syncs that make a name durable.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::JournalError;

const SUFFIX: &str = ".journal";
const LOCK_FILE: &str = "lock";

/// An open journal directory. Nobody else opens it while this lives.
pub(super) struct Directory {
    path: PathBuf,
    handle: File,
    /// Held alone, or beside other readers; `None` if a reader found no file to lock.
    lock: Option<File>,
}

impl Directory {
    /// Creates the directory when it is missing, and locks it.
    pub(super) fn open(path: &Path) -> Result<Self, JournalError> {
        let refused = |source| JournalError::io(path, source);
        fs::create_dir_all(path).map_err(refused)?;
        if let Some(parent) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            sync_directory(parent).map_err(refused)?;
        }
        Ok(Self {
            lock: Some(lock(&path.join(LOCK_FILE))?),
            handle: File::open(path).map_err(refused)?,
            path: path.to_owned(),
        })
    }

    /// Opens the directory to read it, and keeps writers out. Nothing in it is changed.
    pub(super) fn read(path: &Path) -> Result<Self, JournalError> {
        let refused = |source| JournalError::io(path, source);
        Ok(Self {
            handle: File::open(path).map_err(refused)?,
            lock: lock_to_read(&path.join(LOCK_FILE))?,
            path: path.to_owned(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The space that the file system has left for this process.
    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        let system = rustix::fs::fstatvfs(&self.handle)?;
        Ok(system.f_bavail * system.f_frsize)
    }

    /// Makes the names in the directory durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    pub(super) fn segment_path(&self, first_revision: u64) -> PathBuf {
        self.path.join(segment_name(first_revision))
    }

    /// Where the next segment is prepared. Until it begins, it has no segment's name and is not part of the journal.
    pub(super) fn spare_path(&self) -> PathBuf {
        self.path.join("spare.tmp")
    }

    /// The first revisions that segment files are named by, in order.
    pub(super) fn segments(&self) -> io::Result<Vec<u64>> {
        let mut found = Vec::new();
        for file in fs::read_dir(&self.path)? {
            found.extend(file?.file_name().to_str().and_then(first_revision_of));
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Writes `bytes`, cut from a segment at `offset`, to a new file of their own, durably.
    pub(super) fn keep_damaged(
        &self,
        segment: &str,
        offset: u64,
        mut bytes: impl io::Read,
    ) -> io::Result<PathBuf> {
        let kept = self.path.join("damaged");
        fs::create_dir_all(&kept)?;
        let (path, mut file) = create_numbered(&kept, &format!("{segment}-{offset}"))?;
        let written = io::copy(&mut bytes, &mut file).and_then(|_| file.sync_all());
        written.inspect_err(|_| {
            // An incomplete copy would be taken for a complete one.
            let _ = fs::remove_file(&path);
        })?;
        sync_directory(&kept)?;
        self.sync()?;
        Ok(path)
    }
}

impl Directory {
    /// Unlocks explicitly. Closing the file is not enough, because a child process between fork and exec has it open, too.
    pub(super) fn unlock(&self) {
        if let Some(lock) = &self.lock {
            let _ = lock.unlock();
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// The file name of the segment that begins at `first_revision`; names sort as revisions do.
pub(super) fn segment_name(first_revision: u64) -> String {
    format!("{first_revision:020}{SUFFIX}")
}

fn first_revision_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let first = digits.parse().ok()?;
    (segment_name(first) == name).then_some(first)
}

fn lock(path: &Path) -> Result<File, JournalError> {
    let refused = |source| JournalError::io(path, source);
    let file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .map_err(refused)?;
    locked(path, file.try_lock())?;
    Ok(file)
}

fn lock_to_read(path: &Path) -> Result<Option<File>, JournalError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|source| JournalError::io(path, source))?,
    };
    locked(path, file.try_lock_shared())?;
    Ok(Some(file))
}

fn locked(path: &Path, tried: Result<(), TryLockError>) -> Result<(), JournalError> {
    match tried {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(JournalError::Locked(path.display().to_string())),
        Err(TryLockError::Error(source)) => Err(JournalError::io(path, source)),
    }
}

fn create_numbered(directory: &Path, stem: &str) -> io::Result<(PathBuf, File)> {
    let mut number = 0_u32;
    loop {
        let path = directory.join(format!("{stem}.{number}"));
        match File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            created => return Ok((path, created?)),
        }
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
