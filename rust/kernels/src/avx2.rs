//! Kernels for AVX2 with FMA: the sixteen partial sums of a row are two registers.
#![allow(unsafe_code, reason = "loads through pointers")]

use std::arch::x86_64::*;

use super::x86::{TILE, fold, fold_tile, prefetch_distance};
use super::{CODE, Code, Kernels, LANES, Level, WideCode};

pub(super) static KERNELS: Kernels = Kernels {
    level: Level::Avx2,
    dot,
    dot_rows,
    dot_bytes,
    best_dots,
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

/// Values of a code in a register, at twice the width.
const WIDE: usize = 16;

#[target_feature(enable = "avx2")]
fn dot_bytes(query: &[i16], rows: &[i8], out: &mut [i32]) {
    let (query, _) = query.as_chunks::<WIDE>();
    let (rows, _) = rows.as_chunks::<WIDE>();
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let mut sums = _mm256_setzero_si256();
        for (query, row) in query.iter().zip(row) {
            // SAFETY: a part of the query holds the 32 bytes that are loaded, one of the row its 16.
            let (query, row) = unsafe {
                let row = _mm_loadu_si128(row.as_ptr().cast());
                (_mm256_loadu_si256(query.as_ptr().cast()), row)
            };
            let products = _mm256_madd_epi16(query, _mm256_cvtepi8_epi16(row));
            sums = _mm256_add_epi32(sums, products);
        }
        *out = sum(sums);
    }
}

#[target_feature(enable = "avx2")]
fn best_dots(queries: &[WideCode], rows: &[Code], out: &mut [i32]) {
    for row in rows {
        let row = widen(row);
        for (query, out) in queries.iter().zip(&mut *out) {
            *out = sum(products(query, &row)).max(*out);
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen(row: &Code) -> [__m256i; CODE / WIDE] {
    let (parts, _) = row.as_chunks::<WIDE>();
    std::array::from_fn(|part| {
        // SAFETY: a part holds the 16 bytes that are loaded.
        let part = unsafe { _mm_loadu_si128(parts[part].as_ptr().cast()) };
        _mm256_cvtepi8_epi16(part)
    })
}

/// The products of a query and a row, some of them added up already.
#[inline]
#[target_feature(enable = "avx2")]
fn products(query: &WideCode, row: &[__m256i; CODE / WIDE]) -> __m256i {
    let (parts, _) = query.as_chunks::<WIDE>();
    let mut sums = _mm256_setzero_si256();
    for (query, row) in parts.iter().zip(row) {
        // SAFETY: a part holds the 32 bytes that are loaded.
        let query = unsafe { _mm256_loadu_si256(query.as_ptr().cast()) };
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(query, *row));
    }
    sums
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum(sums: __m256i) -> i32 {
    let half = _mm_add_epi32(
        _mm256_castsi256_si128(sums),
        _mm256_extracti128_si256::<1>(sums),
    );
    let pairs = _mm_add_epi32(half, _mm_unpackhi_epi64(half, half));
    _mm_cvtsi128_si32(_mm_add_epi32(pairs, _mm_shuffle_epi32::<1>(pairs)))
}
