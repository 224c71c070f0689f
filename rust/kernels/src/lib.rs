//! Vector arithmetic: one table of functions per instruction set, chosen once at run time.
//!
//! `scalar` is the specification. A dot product is sixteen partial sums: sum `l` takes the products at the positions
//! congruent to `l` modulo [`LANES`], in ascending order, each by one fused multiply-add, starting from +0. Both vectors
//! count as padded with zeros to a multiple of [`LANES`]. The sums then fold by halves: `l` with `l + 8`, `l + 4`, `l + 2`,
//! `l + 1`. Every table follows that order, so that all of them return the same bits, whatever the row's place among other
//! rows and the number of threads (the payload of a NaN is not specified). Dot products of codes and of byte rows, which
//! hold int8, are whole numbers, which are exact in any order.
//!
//! Knows no other crate.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod block;
mod code;
mod level;
#[cfg(target_arch = "aarch64")]
mod neon;
mod prefetch;
mod scalar;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

pub use block::{Block, LANES, as_floats, as_floats_mut};
pub use code::{CODE, Code, WideCode, widened};
pub use level::{Level, UnknownLevel};
pub use prefetch::prefetch;

/// Values in a block of a byte row.
pub const BYTE_BLOCK: usize = 32;

/// The functions of one instruction set. Obtained from [`Kernels::best`] or [`Kernels::for_level`], which hand out a table
/// only where the processor can run it.
#[derive(Debug)]
pub struct Kernels {
    level: Level,
    /// Takes two vectors of equal length.
    dot: unsafe fn(&[f32], &[f32]) -> f32,
    /// Takes a query that is not empty, rows that lie one after the other, and one output per row.
    dot_rows: unsafe fn(&[f32], &[f32], &mut [f32]),
    /// Takes a query of whole [`BYTE_BLOCK`]s, rows that lie one after the other, and one output per row.
    dot_bytes: unsafe fn(&[i16], &[i8], &mut [i32]),
    /// Takes queries, rows, and for each query the best dot product so far.
    best_dots: unsafe fn(&[WideCode], &[Code], &mut [i32]),
}

impl Kernels {
    /// The table of the best level of this processor, detected once.
    pub fn best() -> &'static Self {
        static BEST: OnceLock<&'static Kernels> = OnceLock::new();
        BEST.get_or_init(|| Self::for_level(Level::detect()).unwrap_or(&scalar::KERNELS))
    }

    /// The table of `level`, or `None` if this processor cannot run it.
    pub fn for_level(level: Level) -> Option<&'static Self> {
        if !level.is_available() {
            return None;
        }
        match level {
            Level::Scalar => Some(&scalar::KERNELS),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Some(&avx2::KERNELS),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Some(&avx512::KERNELS),
            #[cfg(target_arch = "aarch64")]
            Level::Neon => Some(&neon::KERNELS),
            _ => None,
        }
    }

    /// Every table that this processor can run, the slowest first.
    pub fn available() -> impl Iterator<Item = &'static Self> {
        Level::ALL.into_iter().filter_map(Self::for_level)
    }

    /// The instruction set of this table.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The dot product of two vectors.
    ///
    /// # Panics
    /// Where the lengths differ.
    #[expect(unsafe_code, reason = "the call of a function for one instruction set")]
    pub fn dot(&self, a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(
            a.len(),
            b.len(),
            "a dot product takes vectors of equal length"
        );
        // SAFETY: a table exists only where its level is available, and the lengths are equal.
        unsafe { (self.dot)(a, b) }
    }

    /// Writes to `out[r]` the dot product of `query` and row `r` of `rows`, which holds `out.len()` rows of `query.len()`
    /// values, one after the other. Each result has the bits of [`Kernels::dot`].
    ///
    /// # Panics
    /// Where `rows.len()` is not `query.len() * out.len()`.
    #[expect(unsafe_code, reason = "the call of a function for one instruction set")]
    pub fn dot_rows(&self, query: &[f32], rows: &[f32], out: &mut [f32]) {
        assert_eq!(
            Some(rows.len()),
            query.len().checked_mul(out.len()),
            "one row per output, each as long as the query"
        );
        if query.is_empty() {
            return out.fill(0.0);
        }
        // SAFETY: a table exists only where its level is available; the query is not empty and the rows fill the outputs.
        unsafe { (self.dot_rows)(query, rows, out) }
    }

    /// Writes to `out[r]` the dot product of `query` and row `r` of `rows`, which holds `out.len()` rows of `query.len()`
    /// values, one after the other. Each must fit 32 bits, whatever signs its products have.
    ///
    /// # Panics
    /// Where `rows.len()` is not `query.len() * out.len()`, or the query does not consist of whole blocks of [`BYTE_BLOCK`].
    #[expect(unsafe_code, reason = "the call of a function for one instruction set")]
    pub fn dot_bytes(&self, query: &[i16], rows: &[i8], out: &mut [i32]) {
        assert_eq!(
            Some(rows.len()),
            query.len().checked_mul(out.len()),
            "one row per output, each as long as the query"
        );
        assert!(
            query.len().is_multiple_of(BYTE_BLOCK),
            "the query consists of whole blocks"
        );
        if query.is_empty() {
            return out.fill(0);
        }
        // SAFETY: a table exists only where its level is available; the query is whole blocks and the rows fill the outputs.
        unsafe { (self.dot_bytes)(query, rows, out) }
    }

    /// Writes to `out[q]` the largest dot product of query `q` and any of the rows; `i32::MIN` where there are no rows.
    ///
    /// # Panics
    /// Where there is not one output per query.
    #[expect(unsafe_code, reason = "the call of a function for one instruction set")]
    pub fn best_dots(&self, queries: &[WideCode], rows: &[Code], out: &mut [i32]) {
        assert_eq!(queries.len(), out.len(), "one output per query");
        out.fill(i32::MIN);
        // SAFETY: a table exists only where its level is available, and there is an output per query.
        unsafe { (self.best_dots)(queries, rows, out) }
    }
}
