//! The product of a tile, all sums held in registers.
//!
//! Every output is one chain of multiply-adds in ascending order of the inner index, whatever the height of its tile: a
//! row's result does not depend on the rows beside it.

use super::PANEL;
use super::lanes::Lanes;
use super::tile::{Start, Tile};

/// One panel wide, `rows` high. `C` is the number of registers in `S::COLUMNS`.
///
/// # Safety
/// `rows` is in `1..=S::ROWS`, `C * S::WIDTH == S::COLUMNS`, the pointers of `tile` reach all that it covers ([`PANEL`]
/// columns), the output overlaps no input, and the processor has the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn run<S: Lanes, const C: usize>(rows: usize, tile: &Tile) {
    for columns in (0..PANEL).step_by(S::COLUMNS) {
        // SAFETY: the caller's promise covers every column of the panel.
        unsafe { by_rows::<S, C>(rows, &tile.right(columns)) };
    }
}

/// # Safety
/// As for [`run`], for `S::COLUMNS` columns.
#[inline(always)]
unsafe fn by_rows<S: Lanes, const C: usize>(rows: usize, tile: &Tile) {
    // SAFETY: the arms only fix the number of rows at compile time.
    unsafe {
        match rows {
            1 => fixed::<S, 1, C>(tile),
            2 => fixed::<S, 2, C>(tile),
            3 => fixed::<S, 3, C>(tile),
            4 => fixed::<S, 4, C>(tile),
            5 if S::ROWS >= 5 => fixed::<S, 5, C>(tile),
            6 if S::ROWS >= 6 => fixed::<S, 6, C>(tile),
            7 if S::ROWS >= 7 => fixed::<S, 7, C>(tile),
            8 if S::ROWS >= 8 => fixed::<S, 8, C>(tile),
            9 if S::ROWS >= 9 => fixed::<S, 9, C>(tile),
            10 if S::ROWS >= 10 => fixed::<S, 10, C>(tile),
            11 if S::ROWS >= 11 => fixed::<S, 11, C>(tile),
            12 if S::ROWS >= 12 => fixed::<S, 12, C>(tile),
            13 if S::ROWS >= 13 => fixed::<S, 13, C>(tile),
            14 if S::ROWS >= 14 => fixed::<S, 14, C>(tile),
            _ => debug_assert!(false, "a tile of {rows} rows"),
        }
    }
}

/// # Safety
/// As for [`by_rows`], with `R` rows.
#[inline(always)]
unsafe fn fixed<S: Lanes, const R: usize, const C: usize>(tile: &Tile) {
    // SAFETY: the caller's promise covers R rows and C registers of columns.
    unsafe {
        let mut sums = begin::<S, R, C>(tile);
        let (mut left, mut right, mut ahead) = (tile.left, tile.right, tile.ahead);
        for _ in 0..tile.depth {
            S::prefetch(ahead);
            S::prefetch(ahead.wrapping_add(tile.ahead_step / 2));
            ahead = ahead.wrapping_add(tile.ahead_step);
            let weights: [S::V; C] = std::array::from_fn(|c| S::load(right.add(c * S::WIDTH)));
            for (r, sums) in sums.iter_mut().enumerate() {
                let value = S::splat(*left.add(r * tile.left_stride));
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum = S::mul_add(value, weight, *sum);
                }
            }
            left = left.add(1);
            right = right.add(tile.right_stride);
        }
        for (r, sums) in sums.iter().enumerate() {
            for (c, &sum) in sums.iter().enumerate() {
                S::store(tile.output.add(r * tile.output_stride + c * S::WIDTH), sum);
            }
        }
    }
}

/// # Safety
/// As for [`fixed`].
#[inline(always)]
unsafe fn begin<S: Lanes, const R: usize, const C: usize>(tile: &Tile) -> [[S::V; C]; R] {
    // SAFETY: the bias has one value per column, the output R rows of them.
    unsafe {
        let mut sums = [[S::splat(0.0); C]; R];
        if let Start::Bias(bias) | Start::BiasAndOutput(bias) = tile.start {
            for row in &mut sums {
                for (c, sum) in row.iter_mut().enumerate() {
                    *sum = S::load(bias.add(c * S::WIDTH));
                }
            }
        }
        if let Start::BiasAndOutput(_) = tile.start {
            for (r, row) in sums.iter_mut().enumerate() {
                for (c, sum) in row.iter_mut().enumerate() {
                    let residual = tile.output.add(r * tile.output_stride + c * S::WIDTH);
                    *sum = S::add(*sum, S::load(residual));
                }
            }
        }
        sums
    }
}
