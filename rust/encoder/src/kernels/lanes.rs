//! The vocabulary of a vector unit, in which the tile and the functions over rows are written once for all of them.

/// One register of `WIDTH` f32 values and the arithmetic on it.
///
/// # Safety
/// Every function requires that the processor has the instruction set of the implementor. Those that take a pointer
/// require `WIDTH` values behind it; no alignment is needed.
pub(super) unsafe trait Lanes: Copy {
    type V: Copy;

    const WIDTH: usize;
    /// Most rows that a tile of this instruction set keeps in registers.
    const ROWS: usize;
    /// Columns of one tile, a divisor of [`PANEL`](super::PANEL).
    const COLUMNS: usize;

    unsafe fn splat(x: f32) -> Self::V;
    unsafe fn load(from: *const f32) -> Self::V;
    unsafe fn store(to: *mut f32, v: Self::V);
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once where the instruction set can.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// The nearest integer, ties to even.
    unsafe fn round(v: Self::V) -> Self::V;
    /// `v * 2^n` for integral `n` in -126..=127.
    unsafe fn scale(v: Self::V, n: Self::V) -> Self::V;
    /// The sum of the lanes, folded by halves.
    unsafe fn sum(v: Self::V) -> f32;
    /// The largest lane.
    unsafe fn largest(v: Self::V) -> f32;

    /// Asks for the cache line at `at`, which may be anywhere.
    unsafe fn prefetch(at: *const f32);

    /// The tile of this instruction set: see `multiply::run`.
    unsafe fn tile(rows: usize, tile: &super::tile::Tile);
}
