//! A file of the model, mapped read-only.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// The bytes of a file. A model's files are installed once and never changed in place: whoever truncates one while it is
/// mapped ends the process.
#[derive(Debug)]
pub(crate) struct MappedFile(Mmap);

impl MappedFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: the map is private and read-only; the type's contract says that nobody writes to the file.
        unsafe { Mmap::map(&file) }.map(Self)
    }

    /// Gives back the memory of all that has been read; what is read again comes from the file again.
    pub(crate) fn release(&self) {
        // Only a hint: where it is refused, the pages stay.
        #[cfg(target_os = "linux")]
        // SAFETY: pages of a read-only map of a file hold nothing that the file does not.
        let _ = unsafe { self.0.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
