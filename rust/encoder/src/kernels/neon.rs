//! Kernels for NEON: a tile of 6 rows and 16 columns keeps 24 sums in registers.

use std::arch::aarch64::*;

super::kernels!(Four, 4, Level::Neon, "neon");

/// A register of four values.
#[derive(Clone, Copy)]
struct Four;

// SAFETY: nothing but the intrinsics of the instruction set and the loads and stores that the trait describes.
unsafe impl Lanes for Four {
    type V = float32x4_t;

    const WIDTH: usize = 4;
    const ROWS: usize = 6;
    const COLUMNS: usize = 16;

    #[inline(always)]
    unsafe fn splat(x: f32) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vdupq_n_f32(x) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: float32x4_t) {
        // SAFETY: the caller's promise.
        unsafe { vst1q_f32(to, v) }
    }

    #[inline(always)]
    unsafe fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vsubq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vmulq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn div(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vdivq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vfmaq_f32(c, a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vminq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn max(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vmaxq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn round(v: float32x4_t) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vrndnq_f32(v) }
    }

    #[inline(always)]
    unsafe fn scale(v: float32x4_t, n: float32x4_t) -> float32x4_t {
        // SAFETY: the caller's promise.
        unsafe {
            let power = vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127));
            vmulq_f32(v, vreinterpretq_f32_s32(vshlq_n_s32::<23>(power)))
        }
    }

    #[inline(always)]
    unsafe fn sum(v: float32x4_t) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { vaddvq_f32(v) }
    }

    #[inline(always)]
    unsafe fn largest(v: float32x4_t) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { vmaxvq_f32(v) }
    }

    #[inline(always)]
    unsafe fn prefetch(_at: *const f32) {}

    #[inline(always)]
    unsafe fn tile(rows: usize, of: &Tile) {
        // SAFETY: the caller's promise.
        unsafe { tile(rows, of) }
    }
}
