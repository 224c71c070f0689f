//! Kernels for AVX2 with FMA: the sixteen partial sums of a row are two registers.
#![allow(unsafe_code, reason = "loads through pointers")]

use std::arch::x86_64::*;

use super::x86::{TILE, fold, fold_tile, prefetch_distance};
use super::{Kernels, LANES, Level};

pub(super) static KERNELS: Kernels = Kernels {
    level: Level::Avx2,
    dot,
    dot_rows,
};

/// Values in a register.
const WIDTH: usize = LANES / 2;

type Sums = [__m256; 2];

#[target_feature(enable = "avx2,fma")]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let [sums] = partial_sums::<1>(a, b, 0);
    fold(quarter(sums))
}

#[target_feature(enable = "avx2,fma")]
fn dot_rows(query: &[f32], rows: &[f32], out: &mut [f32]) {
    let dim = query.len();
    let ahead = prefetch_distance(dim);
    let mut tiles = rows.chunks_exact(TILE * dim);
    let mut outs = out.chunks_exact_mut(TILE);
    for (tile, out) in tiles.by_ref().zip(outs.by_ref()) {
        let [a, b, c, d] = partial_sums::<TILE>(query, tile, ahead);
        out.copy_from_slice(&fold_tile([quarter(a), quarter(b), quarter(c), quarter(d)]));
    }
    for (row, out) in tiles
        .remainder()
        .chunks_exact(dim)
        .zip(outs.into_remainder())
    {
        *out = dot(query, row);
    }
}

/// The partial sums of `R` rows, which lie one after the other, each as long as `query`. Asks for the lines that lie
/// `ahead` values further on.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn partial_sums<const R: usize>(query: &[f32], rows: &[f32], ahead: usize) -> [Sums; R] {
    let dim = query.len();
    debug_assert_eq!(rows.len(), R * dim);
    let mut sums = [[_mm256_setzero_ps(); 2]; R];
    let whole = dim - dim % LANES;
    for at in (0..whole).step_by(LANES) {
        // SAFETY: `at + LANES <= dim`.
        let query = unsafe { load(query.as_ptr().add(at)) };
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `r * dim + at + LANES <= rows.len()`; a prefetch does not access memory, wherever it points.
            let row = unsafe {
                let row = rows.as_ptr().add(r * dim + at);
                _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(ahead).cast());
                load(row)
            };
            *sums = multiply_add(query, row, *sums);
        }
    }
    if whole < dim {
        let query = load_padded(&query[whole..]);
        for (row, sums) in rows.chunks_exact(dim).zip(&mut sums) {
            *sums = multiply_add(query, load_padded(&row[whole..]), *sums);
        }
    }
    sums
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn multiply_add(a: [__m256; 2], b: [__m256; 2], sums: Sums) -> Sums {
    [
        _mm256_fmadd_ps(a[0], b[0], sums[0]),
        _mm256_fmadd_ps(a[1], b[1], sums[1]),
    ]
}

/// # Safety
/// `values` points to [`LANES`] values.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn load(values: *const f32) -> [__m256; 2] {
    // SAFETY: the caller's promise covers both halves.
    unsafe { [_mm256_loadu_ps(values), _mm256_loadu_ps(values.add(WIDTH))] }
}

/// Fewer than [`LANES`] values, padded with zeros.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn load_padded(values: &[f32]) -> [__m256; 2] {
    let mut block = [0.0; LANES];
    block[..values.len()].copy_from_slice(values);
    // SAFETY: the block holds `LANES` values.
    unsafe { load(block.as_ptr()) }
}

/// Folds `l` with `l + 8`, then `l + 4`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn quarter(sums: Sums) -> __m128 {
    let half = _mm256_add_ps(sums[0], sums[1]);
    _mm_add_ps(
        _mm256_castps256_ps128(half),
        _mm256_extractf128_ps::<1>(half),
    )
}
