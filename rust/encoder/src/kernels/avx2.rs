//! Kernels for AVX2 with fused multiply-add: a tile of 6 rows and 16 columns keeps 12 sums in registers.

use std::arch::x86_64::*;

super::kernels!(Eight, 2, Level::Avx2, "avx2,fma");

/// A register of eight values.
#[derive(Clone, Copy)]
struct Eight;

// SAFETY: nothing but the intrinsics of the instruction set and the loads and stores that the trait describes.
unsafe impl Lanes for Eight {
    type V = __m256;

    const WIDTH: usize = 8;
    const ROWS: usize = 6;
    const COLUMNS: usize = 16;

    #[inline(always)]
    unsafe fn splat(x: f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m256) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn div(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn min(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn max(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn round(v: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v) }
    }

    #[inline(always)]
    unsafe fn scale(v: __m256, n: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe {
            let power = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_mul_ps(v, _mm256_castsi256_ps(_mm256_slli_epi32::<23>(power)))
        }
    }

    #[inline(always)]
    unsafe fn sum(v: __m256) -> f32 {
        // SAFETY: the caller's promise.
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    unsafe fn largest(v: __m256) -> f32 {
        // SAFETY: the caller's promise.
        unsafe {
            let four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const f32) {
        // SAFETY: a prefetch does not access memory.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn tile(rows: usize, of: &Tile) {
        // SAFETY: the caller's promise.
        unsafe { tile(rows, of) }
    }
}
