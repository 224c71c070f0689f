//! Functions over rows, lane by lane: GELU, softmax and layer normalisation.

use super::lanes::Lanes;

/// Coefficients of `erf(x) = x P(x^2) / Q(x^2)` for |x| <= 4, highest power first: the single-precision minimax fit of
/// Eigen and XLA, within 4 units in the last place.
const ERF_P: [f32; 7] = [
    -2.726_142_3e-10,
    2.770_681_4e-8,
    -2.101_024_1e-6,
    -5.692_506_4e-5,
    -7.349_906_3e-4,
    -2.954_6e-3,
    -1.609_603_3e-2,
];
const ERF_Q: [f32; 5] = [
    -1.456_607_2e-5,
    -2.133_740_6e-4,
    -1.682_827e-3,
    -7.373_329e-3,
    -1.426_473_9e-2,
];

/// Coefficients of `exp(r)` for |r| <= ln(2) / 2 beyond `1 + r`, highest power first (Cephes `expf`).
const EXP: [f32; 6] = [
    1.987_569_1e-4,
    1.398_199_9e-3,
    8.333_452e-3,
    4.166_579_6e-2,
    1.666_666_6e-1,
    5e-1,
];
/// ln(2) in two parts, the first exact in few bits, so that `x - n ln(2)` keeps its precision.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Below it e^x is no normal f32; a softmax has nothing to gain from smaller terms.
const EXP_LEAST: f32 = -87.0;

/// # Safety
/// The processor has the instruction set of `S`.
#[inline(always)]
unsafe fn polynomial<S: Lanes, const N: usize>(x: S::V, coefficients: &[f32; N]) -> S::V {
    // SAFETY: the caller's promise.
    unsafe {
        let mut value = S::splat(coefficients[0]);
        for &coefficient in &coefficients[1..] {
            value = S::mul_add(value, x, S::splat(coefficient));
        }
        value
    }
}

/// `erf(x)`, for any finite x.
///
/// # Safety
/// The processor has the instruction set of `S`.
#[inline(always)]
unsafe fn erf<S: Lanes>(x: S::V) -> S::V {
    // SAFETY: the caller's promise.
    unsafe {
        let x = S::max(S::min(x, S::splat(4.0)), S::splat(-4.0));
        let square = S::mul(x, x);
        let numerator = S::mul(x, polynomial::<S, 7>(square, &ERF_P));
        S::div(numerator, polynomial::<S, 5>(square, &ERF_Q))
    }
}

/// `e^x` for x <= 0; what is below [`EXP_LEAST`] counts as that.
///
/// # Safety
/// The processor has the instruction set of `S`.
#[inline(always)]
unsafe fn exp<S: Lanes>(x: S::V) -> S::V {
    // SAFETY: the caller's promise; n is in -126..=0.
    unsafe {
        let x = S::max(x, S::splat(EXP_LEAST));
        let n = S::round(S::mul(x, S::splat(std::f32::consts::LOG2_E)));
        let r = S::mul_add(n, S::splat(-LN2_HIGH), x);
        let r = S::mul_add(n, S::splat(-LN2_LOW), r);
        let tail = polynomial::<S, 6>(r, &EXP);
        let value = S::add(S::mul_add(tail, S::mul(r, r), r), S::splat(1.0));
        S::scale(value, n)
    }
}

/// GELU in place, `x (1 + erf(x / sqrt 2)) / 2`, over `rows` rows of `columns` values.
///
/// # Safety
/// `columns` is a multiple of `S::WIDTH`, the values are there, and the processor has the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn gelu<S: Lanes>(values: *mut f32, stride: usize, rows: usize, columns: usize) {
    for r in 0..rows {
        for c in (0..columns).step_by(S::WIDTH) {
            // SAFETY: the caller's promise.
            unsafe {
                let at = values.add(r * stride + c);
                let x = S::load(at);
                let half = S::mul(x, S::splat(0.5));
                let erf = erf::<S>(S::mul(x, S::splat(std::f32::consts::FRAC_1_SQRT_2)));
                S::store(at, S::mul_add(half, erf, half));
            }
        }
    }
}

/// Softmax in place over `len` values; those up to the next multiple of `S::WIDTH` are overwritten.
///
/// # Safety
/// `len >= 1`, the values are there, and the processor has the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn softmax<S: Lanes>(row: *mut f32, len: usize) {
    let padded = len.next_multiple_of(S::WIDTH);
    // SAFETY: the caller's promise.
    unsafe {
        for rest in len..padded {
            *row.add(rest) = f32::NEG_INFINITY;
        }
        let mut most = S::load(row);
        for at in (S::WIDTH..padded).step_by(S::WIDTH) {
            most = S::max(most, S::load(row.add(at)));
        }
        let most = S::splat(S::largest(most));
        let mut total = S::splat(0.0);
        for at in (0..padded).step_by(S::WIDTH) {
            let value = exp::<S>(S::sub(S::load(row.add(at)), most));
            total = S::add(total, value);
            S::store(row.add(at), value);
        }
        let share = S::splat(1.0 / S::sum(total));
        for at in (0..padded).step_by(S::WIDTH) {
            S::store(row.add(at), S::mul(S::load(row.add(at)), share));
        }
    }
}

/// Layer normalisation in place of one row: `(x - mean) / sqrt(variance + epsilon) * weight + bias`.
///
/// # Safety
/// `width` is a multiple of `S::WIDTH`, row, weight and bias have that many values, and the processor has the
/// instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn layer_norm<S: Lanes>(
    row: *mut f32,
    width: usize,
    weight: *const f32,
    bias: *const f32,
    epsilon: f32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut total = S::splat(0.0);
        for at in (0..width).step_by(S::WIDTH) {
            total = S::add(total, S::load(row.add(at)));
        }
        let mean = S::splat(S::sum(total) / width as f32);
        let mut squares = S::splat(0.0);
        for at in (0..width).step_by(S::WIDTH) {
            let centred = S::sub(S::load(row.add(at)), mean);
            squares = S::mul_add(centred, centred, squares);
        }
        let variance = S::sum(squares) / width as f32;
        let factor = S::splat(1.0 / (variance + epsilon).sqrt());
        for at in (0..width).step_by(S::WIDTH) {
            let centred = S::mul(S::sub(S::load(row.add(at)), mean), factor);
            let value = S::mul_add(centred, S::load(weight.add(at)), S::load(bias.add(at)));
            S::store(row.add(at), value);
        }
    }
}
