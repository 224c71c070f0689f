//! What the tables of x86-64 share: the last folds of the partial sums, and the distance of prefetching.
#![allow(unsafe_code, reason = "unaligned stores through pointers")]

use std::arch::x86_64::*;

/// Rows that a table multiplies side by side: one load of the query serves all of them.
pub(super) const TILE: usize = 4;

/// Bytes to fetch ahead, at least: about what DRAM delivers to one core during its latency.
const PREFETCH_BYTES: usize = 4096;

/// How many values ahead of a row's own a tile prefetches: whole tiles, so that each line is asked for once.
#[inline]
pub(super) fn prefetch_distance(dim: usize) -> usize {
    let tile = TILE * dim;
    tile * (PREFETCH_BYTES / size_of::<f32>()).div_ceil(tile)
}

/// Folds four partial sums, `l` with `l + 2`, then `l + 1`.
#[inline]
#[target_feature(enable = "sse")]
pub(super) fn fold(sums: __m128) -> f32 {
    let pairs = _mm_add_ps(sums, _mm_movehl_ps(sums, sums));
    _mm_cvtss_f32(_mm_add_ss(pairs, _mm_shuffle_ps::<1>(pairs, pairs)))
}

/// Folds the four partial sums of each of four rows, as [`fold`] does.
#[inline]
#[target_feature(enable = "sse")]
pub(super) fn fold_tile([a, b, c, d]: [__m128; TILE]) -> [f32; TILE] {
    let ab = _mm_add_ps(_mm_movelh_ps(a, b), _mm_movehl_ps(b, a));
    let cd = _mm_add_ps(_mm_movelh_ps(c, d), _mm_movehl_ps(d, c));
    let even = _mm_shuffle_ps::<0b10_00_10_00>(ab, cd);
    let odd = _mm_shuffle_ps::<0b11_01_11_01>(ab, cd);
    let mut folded = [0.0; TILE];
    // SAFETY: the array holds the four values that are stored.
    unsafe { _mm_storeu_ps(folded.as_mut_ptr(), _mm_add_ps(even, odd)) };
    folded
}
