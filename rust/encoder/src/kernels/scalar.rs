//! Portable kernels, one value at a time: the specification.

super::kernels!(One, 16, Level::Scalar);

/// A register of one value.
#[derive(Clone, Copy)]
struct One;

// SAFETY: nothing but plain f32 arithmetic and the loads and stores that the trait describes.
unsafe impl Lanes for One {
    type V = f32;

    const WIDTH: usize = 1;
    const ROWS: usize = 4;
    const COLUMNS: usize = 16;

    #[inline(always)]
    unsafe fn splat(x: f32) -> f32 {
        x
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *from }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, v: f32) {
        // SAFETY: the caller's promise.
        unsafe { *to = v }
    }

    #[inline(always)]
    unsafe fn add(a: f32, b: f32) -> f32 {
        a + b
    }

    #[inline(always)]
    unsafe fn sub(a: f32, b: f32) -> f32 {
        a - b
    }

    #[inline(always)]
    unsafe fn mul(a: f32, b: f32) -> f32 {
        a * b
    }

    #[inline(always)]
    unsafe fn div(a: f32, b: f32) -> f32 {
        a / b
    }

    #[inline(always)]
    unsafe fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }

    #[inline(always)]
    unsafe fn min(a: f32, b: f32) -> f32 {
        a.min(b)
    }

    #[inline(always)]
    unsafe fn max(a: f32, b: f32) -> f32 {
        a.max(b)
    }

    #[inline(always)]
    unsafe fn round(v: f32) -> f32 {
        v.round_ties_even()
    }

    #[inline(always)]
    unsafe fn scale(v: f32, n: f32) -> f32 {
        v * f32::from_bits(((n as i32 + 127) << 23) as u32)
    }

    #[inline(always)]
    unsafe fn sum(v: f32) -> f32 {
        v
    }

    #[inline(always)]
    unsafe fn largest(v: f32) -> f32 {
        v
    }

    #[inline(always)]
    unsafe fn prefetch(_at: *const f32) {}

    #[inline(always)]
    unsafe fn tile(rows: usize, of: &Tile) {
        // SAFETY: the caller's promise.
        unsafe { tile(rows, of) }
    }
}
