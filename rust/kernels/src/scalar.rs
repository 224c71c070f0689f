//! The specification of every kernel, in portable code.

use super::{Code, Kernels, LANES, Level, WideCode};

pub(super) static KERNELS: Kernels = Kernels {
    level: Level::Scalar,
    dot,
    dot_rows,
    dot_bytes,
    best_dots,
};

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        accumulate(&mut sums, &padded(a), &padded(b));
    }
    fold(sums)
}

fn dot_rows(query: &[f32], rows: &[f32], out: &mut [f32]) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        *out = dot(query, row);
    }
}

fn accumulate(sums: &mut [f32; LANES], a: &[f32; LANES], b: &[f32; LANES]) {
    for lane in 0..LANES {
        sums[lane] = a[lane].mul_add(b[lane], sums[lane]);
    }
}

fn padded(values: &[f32]) -> [f32; LANES] {
    let mut block = [0.0; LANES];
    block[..values.len()].copy_from_slice(values);
    block
}

fn fold(mut sums: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

fn dot_bytes(query: &[i16], rows: &[i8], out: &mut [i32]) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        let products = query.iter().zip(row);
        *out = products.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
    }
}

fn best_dots(queries: &[WideCode], rows: &[Code], out: &mut [i32]) {
    for row in rows {
        for (query, out) in queries.iter().zip(&mut *out) {
            let products = query.iter().zip(row);
            let dot: i32 = products.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
            *out = dot.max(*out);
        }
    }
}
