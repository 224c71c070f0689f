//! Kernels for AVX-512: a tile of 14 rows and 32 columns keeps 28 sums in registers.

use std::arch::x86_64::*;

super::kernels!(
    Sixteen,
    2,
    Level::Avx512,
    "avx512f,avx512bw,avx512dq,avx512vl,fma"
);

/// A register of sixteen values.
#[derive(Clone, Copy)]
struct Sixteen;

// SAFETY: nothing but the intrinsics of the instruction set and the loads and stores that the trait describes.
unsafe impl Lanes for Sixteen {
    type V = __m512;

    const WIDTH: usize = 16;
    const ROWS: usize = 14;
    const COLUMNS: usize = 32;

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m512) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn div(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn min(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn round(v: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v) }
    }

    #[inline(always)]
    unsafe fn scale(v: __m512, n: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_scalef_ps(v, n) }
    }

    #[inline(always)]
    unsafe fn sum(v: __m512) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_reduce_add_ps(v) }
    }

    #[inline(always)]
    unsafe fn largest(v: __m512) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_reduce_max_ps(v) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const f32) {
        // SAFETY: a prefetch does not access memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn tile(rows: usize, of: &Tile) {
        // SAFETY: the caller's promise.
        unsafe { tile(rows, of) }
    }
}

/// GELU in place: see [`rows::gelu`](super::rows::gelu).
///
/// # Safety
/// As there; the processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
pub(super) unsafe fn gelu(values: *mut f32, stride: usize, rows: usize, columns: usize) {
    // SAFETY: the caller's promise.
    unsafe { super::rows::gelu::<Sixteen>(values, stride, rows, columns) }
}
