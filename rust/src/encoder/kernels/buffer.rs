//! A fixed run of numbers that starts on a page of its own.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::slice;

use memmap2::MmapMut;

/// Types for which every pattern of bits is a value and zero bits are zero.
///
/// # Safety
/// The type has no padding, no invalid pattern, and an alignment that divides the size of a page.
pub(in crate::encoder) unsafe trait Number: Copy {}

// SAFETY: plain numbers.
unsafe impl Number for f32 {}
// SAFETY: plain numbers.
unsafe impl Number for i32 {}
// SAFETY: plain numbers.
unsafe impl Number for i8 {}
// SAFETY: plain numbers.
unsafe impl Number for u8 {}

/// Numbers in anonymous memory: no load of a register crosses a cache line, and large ones ask for huge pages.
#[derive(Debug)]
pub(in crate::encoder) struct Buffer<T: Number> {
    memory: MmapMut,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Number> Buffer<T> {
    /// `len` zeros.
    ///
    /// # Panics
    /// Where the system has no memory left, as any allocation does.
    pub(in crate::encoder) fn zeroed(len: usize) -> Self {
        let bytes = len.checked_mul(size_of::<T>()).map(|bytes| bytes.max(1));
        let memory = bytes.and_then(|bytes| MmapMut::map_anon(bytes).ok());
        let Some(memory) = memory else {
            panic!("no memory for {len} numbers");
        };
        #[cfg(target_os = "linux")]
        let _ = memory.advise(memmap2::Advice::HugePage);
        Self {
            memory,
            len,
            of: PhantomData,
        }
    }
}

impl<T: Number> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory is aligned to a page, holds `len` numbers, and any bits are a number.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().cast(), self.len) }
    }
}

impl<T: Number> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is unique.
        unsafe { slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.len) }
    }
}
