//! A fixed run of numbers that starts on a cache line of its own.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::slice;
use std::sync::Arc;

use memmap2::MmapMut;

/// Types for which every pattern of bits is a value and zero bits are zero.
///
/// # Safety
/// The type has no padding, no invalid pattern, and an alignment that divides [`LINE`].
pub(crate) unsafe trait Number: Copy {}

// SAFETY: plain numbers.
unsafe impl Number for f32 {}
// SAFETY: plain numbers.
unsafe impl Number for i32 {}
// SAFETY: plain numbers.
unsafe impl Number for i8 {}
// SAFETY: plain numbers.
unsafe impl Number for u8 {}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Numbers in anonymous memory: no load of a register crosses a cache line, and what is large lies on huge pages where the
/// system has them.
pub(crate) struct Buffer<T: Number> {
    memory: Arc<MmapMut>,
    /// The first byte; no two buffers of one memory overlap.
    start: usize,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Number> Buffer<T> {
    /// `len` zeros.
    ///
    /// # Panics
    /// Where the system has no memory left, as any allocation does.
    pub(crate) fn zeroed(len: usize) -> Self {
        let bytes = len.checked_mul(size_of::<T>()).map(|bytes| bytes.max(1));
        let memory = bytes.and_then(|bytes| MmapMut::map_anon(bytes).ok());
        let Some(memory) = memory else {
            panic!("no memory for {len} numbers");
        };
        // Only a hint: a system without huge pages refuses it.
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Self {
            memory: Arc::new(memory),
            start: 0,
            len,
            of: PhantomData,
        }
    }

    /// Takes the first `len` numbers off into a buffer of their own.
    ///
    /// # Panics
    /// Where there are fewer, or they are not whole cache lines.
    pub(crate) fn split_to(&mut self, len: usize) -> Self {
        let bytes = len * size_of::<T>();
        assert!(len <= self.len, "{len} of {} numbers", self.len);
        assert_eq!(bytes % LINE, 0, "whole cache lines");
        let first = Self {
            memory: Arc::clone(&self.memory),
            start: self.start,
            len,
            of: PhantomData,
        };
        self.start += bytes;
        self.len -= len;
        first
    }

    fn pointer(&self) -> *const u8 {
        // SAFETY: `start` is within the memory.
        unsafe { self.memory.as_ptr().add(self.start) }
    }
}

impl<T: Number> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory is aligned to a line, `len` numbers of it are this buffer's alone, and any bits are a number.
        unsafe { slice::from_raw_parts(self.pointer().cast(), self.len) }
    }
}

impl<T: Number> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; the memory is writable, and the borrow of this buffer is unique.
        unsafe { slice::from_raw_parts_mut(self.pointer().cast_mut().cast(), self.len) }
    }
}

impl<T: Number> fmt::Debug for Buffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Buffer({} numbers)", self.len)
    }
}
