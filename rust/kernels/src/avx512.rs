//! Kernels for AVX-512: the sixteen partial sums of a row are one register.
#![allow(unsafe_code, reason = "loads through pointers")]

use std::arch::x86_64::*;

use super::x86::{TILE, fold, fold_tile, prefetch_distance};
use super::{CODE, Code, Kernels, LANES, Level, WideCode};

pub(super) static KERNELS: Kernels = Kernels {
    level: Level::Avx512,
    dot,
    dot_rows,
    dot_bytes,
    best_dots,
};

#[target_feature(enable = "avx512f,avx512dq")]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let [sums] = partial_sums::<1>(a, b, 0);
    fold(quarter(sums))
}

#[target_feature(enable = "avx512f,avx512dq")]
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
#[target_feature(enable = "avx512f,avx512dq")]
fn partial_sums<const R: usize>(query: &[f32], rows: &[f32], ahead: usize) -> [__m512; R] {
    let dim = query.len();
    debug_assert_eq!(rows.len(), R * dim);
    let mut sums = [_mm512_setzero_ps(); R];
    let whole = dim - dim % LANES;
    for at in (0..whole).step_by(LANES) {
        // SAFETY: `at + LANES <= dim`.
        let query = unsafe { _mm512_loadu_ps(query.as_ptr().add(at)) };
        for (r, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `r * dim + at + LANES <= rows.len()`; a prefetch does not access memory, wherever it points.
            let row = unsafe {
                let row = rows.as_ptr().add(r * dim + at);
                _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(ahead).cast());
                _mm512_loadu_ps(row)
            };
            *sum = _mm512_fmadd_ps(query, row, *sum);
        }
    }
    if whole < dim {
        let query = load_padded(&query[whole..]);
        for (row, sum) in rows.chunks_exact(dim).zip(&mut sums) {
            *sum = _mm512_fmadd_ps(query, load_padded(&row[whole..]), *sum);
        }
    }
    sums
}

/// Fewer than [`LANES`] values, padded with zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn load_padded(values: &[f32]) -> __m512 {
    debug_assert!(values.len() < LANES);
    let mask = (1 << values.len()) - 1;
    // SAFETY: the mask selects `values.len()` lanes; the others are not read.
    unsafe { _mm512_maskz_loadu_ps(mask, values.as_ptr()) }
}

/// Folds `l` with `l + 8`, then `l + 4`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn quarter(sums: __m512) -> __m128 {
    let half = _mm256_add_ps(
        _mm512_castps512_ps256(sums),
        _mm512_extractf32x8_ps::<1>(sums),
    );
    _mm_add_ps(
        _mm256_castps256_ps128(half),
        _mm256_extractf128_ps::<1>(half),
    )
}

/// Values of a code in a register, at twice the width.
const WIDE: usize = 32;

#[target_feature(enable = "avx512f,avx512bw")]
fn dot_bytes(query: &[i16], rows: &[i8], out: &mut [i32]) {
    let (query, _) = query.as_chunks::<WIDE>();
    let (rows, _) = rows.as_chunks::<WIDE>();
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let mut sums = _mm512_setzero_si512();
        for (query, row) in query.iter().zip(row) {
            // SAFETY: a part of the query holds the 64 bytes that are loaded, one of the row its 32.
            let (query, row) = unsafe {
                let row = _mm256_loadu_si256(row.as_ptr().cast());
                (_mm512_loadu_si512(query.as_ptr().cast()), row)
            };
            let products = _mm512_madd_epi16(query, _mm512_cvtepi8_epi16(row));
            sums = _mm512_add_epi32(sums, products);
        }
        *out = _mm512_reduce_add_epi32(sums);
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn best_dots(queries: &[WideCode], rows: &[Code], out: &mut [i32]) {
    for row in rows {
        let row = widen(row);
        for (query, out) in queries.iter().zip(&mut *out) {
            *out = _mm512_reduce_add_epi32(products(query, &row)).max(*out);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn widen(row: &Code) -> [__m512i; CODE / WIDE] {
    let (parts, _) = row.as_chunks::<WIDE>();
    std::array::from_fn(|part| {
        // SAFETY: a part holds the 32 bytes that are loaded.
        let part = unsafe { _mm256_loadu_si256(parts[part].as_ptr().cast()) };
        _mm512_cvtepi8_epi16(part)
    })
}

/// The products of a query and a row, some of them added up already.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn products(query: &WideCode, row: &[__m512i; CODE / WIDE]) -> __m512i {
    let (parts, _) = query.as_chunks::<WIDE>();
    let mut sums = _mm512_setzero_si512();
    for (query, row) in parts.iter().zip(row) {
        // SAFETY: a part holds the 64 bytes that are loaded.
        let query = unsafe { _mm512_loadu_si512(query.as_ptr().cast()) };
        sums = _mm512_add_epi32(sums, _mm512_madd_epi16(query, *row));
    }
    sums
}
