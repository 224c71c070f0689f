//! Asking for memory before it is read.

/// Bytes of a cache line, and the step from one to the next.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks for the cache lines of what will soon be read, without waiting for them. Does nothing if the processor's
/// instruction for it is not known here.
#[inline]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        let start = values.as_ptr().cast::<i8>();
        for at in (0..size_of_val(values)).step_by(LINE) {
            #[expect(unsafe_code, reason = "an instruction of the processor")]
            // SAFETY: a prefetch does not access memory, wherever it points; every x86-64 has the instruction.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
