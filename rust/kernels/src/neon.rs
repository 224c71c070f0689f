//! Kernels for NEON: the sixteen partial sums of a row are four registers. Nothing is prefetched by hand: the rows are
//! read in order, which the processor's own prefetcher follows.
#![allow(unsafe_code, reason = "loads through pointers")]

use std::arch::aarch64::*;

use super::{CODE, Code, Kernels, LANES, Level, WideCode};

pub(super) static KERNELS: Kernels = Kernels {
    level: Level::Neon,
    dot,
    dot_rows,
    dot_bytes,
    best_dots,
};

/// Rows that are multiplied side by side: one load of the query serves all of them.
const TILE: usize = 4;

/// Values in a register.
const WIDTH: usize = LANES / 4;

type Sums = [float32x4_t; 4];

#[target_feature(enable = "neon")]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let [sums] = partial_sums::<1>(a, b);
    fold(sums)
}

#[target_feature(enable = "neon")]
fn dot_rows(query: &[f32], rows: &[f32], out: &mut [f32]) {
    let dim = query.len();
    let mut tiles = rows.chunks_exact(TILE * dim);
    let mut outs = out.chunks_exact_mut(TILE);
    for (tile, out) in tiles.by_ref().zip(outs.by_ref()) {
        for (sums, out) in partial_sums::<TILE>(query, tile).into_iter().zip(out) {
            *out = fold(sums);
        }
    }
    for (row, out) in tiles
        .remainder()
        .chunks_exact(dim)
        .zip(outs.into_remainder())
    {
        *out = dot(query, row);
    }
}

/// The partial sums of `R` rows, which lie one after the other, each as long as `query`.
#[inline]
#[target_feature(enable = "neon")]
fn partial_sums<const R: usize>(query: &[f32], rows: &[f32]) -> [Sums; R] {
    let dim = query.len();
    debug_assert_eq!(rows.len(), R * dim);
    let mut sums = [[vdupq_n_f32(0.0); 4]; R];
    let whole = dim - dim % LANES;
    for at in (0..whole).step_by(LANES) {
        // SAFETY: `at + LANES <= dim`.
        let query = unsafe { load(query.as_ptr().add(at)) };
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `r * dim + at + LANES <= rows.len()`.
            let row = unsafe { load(rows.as_ptr().add(r * dim + at)) };
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
#[target_feature(enable = "neon")]
fn multiply_add(a: [float32x4_t; 4], b: [float32x4_t; 4], sums: Sums) -> Sums {
    [
        vfmaq_f32(sums[0], a[0], b[0]),
        vfmaq_f32(sums[1], a[1], b[1]),
        vfmaq_f32(sums[2], a[2], b[2]),
        vfmaq_f32(sums[3], a[3], b[3]),
    ]
}

/// # Safety
/// `values` points to [`LANES`] values.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load(values: *const f32) -> [float32x4_t; 4] {
    // SAFETY: the caller's promise covers all four quarters.
    unsafe {
        [
            vld1q_f32(values),
            vld1q_f32(values.add(WIDTH)),
            vld1q_f32(values.add(2 * WIDTH)),
            vld1q_f32(values.add(3 * WIDTH)),
        ]
    }
}

/// Fewer than [`LANES`] values, padded with zeros.
#[inline]
#[target_feature(enable = "neon")]
fn load_padded(values: &[f32]) -> [float32x4_t; 4] {
    let mut block = [0.0; LANES];
    block[..values.len()].copy_from_slice(values);
    // SAFETY: the block holds `LANES` values.
    unsafe { load(block.as_ptr()) }
}

/// Folds `l` with `l + 8`, `l + 4`, `l + 2`, `l + 1`.
#[inline]
#[target_feature(enable = "neon")]
fn fold(sums: Sums) -> f32 {
    let quarter = vaddq_f32(vaddq_f32(sums[0], sums[2]), vaddq_f32(sums[1], sums[3]));
    vpadds_f32(vadd_f32(vget_low_f32(quarter), vget_high_f32(quarter)))
}

/// Values of a code in a register, at twice the width.
const WIDE: usize = 8;

#[target_feature(enable = "neon")]
fn dot_bytes(query: &[i16], rows: &[i8], out: &mut [i32]) {
    let (query, _) = query.as_chunks::<WIDE>();
    let (rows, _) = rows.as_chunks::<WIDE>();
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let mut sums = vdupq_n_s32(0);
        for (query, row) in query.iter().zip(row) {
            // SAFETY: a part of the query holds the 16 bytes that are loaded, one of the row its 8.
            let (query, row) = unsafe { (vld1q_s16(query.as_ptr()), vld1_s8(row.as_ptr())) };
            let row = vmovl_s8(row);
            sums = vmlal_s16(sums, vget_low_s16(query), vget_low_s16(row));
            sums = vmlal_high_s16(sums, query, row);
        }
        *out = vaddvq_s32(sums);
    }
}

#[target_feature(enable = "neon")]
fn best_dots(queries: &[WideCode], rows: &[Code], out: &mut [i32]) {
    for row in rows {
        let row = widen(row);
        for (query, out) in queries.iter().zip(&mut *out) {
            *out = vaddvq_s32(products(query, &row)).max(*out);
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn widen(row: &Code) -> [int16x8_t; CODE / WIDE] {
    let (parts, _) = row.as_chunks::<WIDE>();
    std::array::from_fn(|part| {
        // SAFETY: a part holds the 8 bytes that are loaded.
        vmovl_s8(unsafe { vld1_s8(parts[part].as_ptr()) })
    })
}

/// The products of a query and a row, some of them added up already.
#[inline]
#[target_feature(enable = "neon")]
fn products(query: &WideCode, row: &[int16x8_t; CODE / WIDE]) -> int32x4_t {
    let (parts, _) = query.as_chunks::<WIDE>();
    let mut sums = vdupq_n_s32(0);
    for (query, row) in parts.iter().zip(row) {
        // SAFETY: a part holds the 16 bytes that are loaded.
        let query = unsafe { vld1q_s16(query.as_ptr()) };
        sums = vmlal_s16(sums, vget_low_s16(query), vget_low_s16(*row));
        sums = vmlal_high_s16(sums, query, *row);
    }
    sums
}
