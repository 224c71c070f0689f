//! The arithmetic of the encoder, one file per instruction set; `scalar` is the specification. All of the encoder's
//! `unsafe` code is here, behind functions that check every length.
#![allow(
    unsafe_code,
    reason = "vector intrinsics, and views of memory as other types"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod buffer;
mod lanes;
mod layer;
mod mapped;
mod multiply;
#[cfg(target_arch = "aarch64")]
mod neon;
mod panels;
mod rows;
mod scalar;
#[cfg(test)]
mod tests;
mod tile;
#[cfg(target_arch = "x86_64")]
mod vnni;

use super::shape::{HEAD, HEADS, HIDDEN, LAYER_NORM_EPSILON};

pub(super) use buffer::Buffer;
pub(super) use mapped::MappedFile;
pub(super) use panels::{Dense, Panels, QuantizedPanels};

/// Columns of weights that lie together.
pub(super) const PANEL: usize = 32;

/// Most rows of a tile at any level: sizes the scores of the attention.
pub(super) const MOST_ROWS: usize = 14;

/// What a projection does with its sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    /// Writes them.
    Store,
    /// Writes GELU of them.
    Gelu,
    /// Adds them to what the output holds: a residual connection.
    Add,
}

/// The f32 functions of one instruction set; a table is handed out only where the processor can run it.
#[derive(Debug)]
pub(super) struct Kernels {
    level: Level,
    project: unsafe fn(*const f32, usize, &Panels, *mut f32, Finish),
    attend: unsafe fn(*const f32, usize, *mut f32, *mut f32, *mut f32),
    layer_norm: unsafe fn(*mut f32, usize, *const f32, *const f32),
}

impl Kernels {
    /// The table of `level`, or `None` if this processor cannot run it.
    pub(super) fn for_level(level: Level) -> Option<&'static Self> {
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

    /// The instruction set of this table.
    pub(super) fn level(&self) -> Level {
        self.level
    }

    /// `output = finish(input * weights + bias)`, row by row.
    ///
    /// # Panics
    /// Where the matrices do not have the same number of rows of the widths of `weights`.
    pub(super) fn project(
        &self,
        input: &[f32],
        weights: &Panels,
        output: &mut [f32],
        finish: Finish,
    ) {
        let rows = input.len() / weights.inputs();
        assert_eq!(input.len(), rows * weights.inputs(), "whole input rows");
        assert_eq!(
            output.len(),
            rows * weights.outputs(),
            "one output row per input row"
        );
        if rows == 0 {
            return;
        }
        // SAFETY: the lengths are as the function requires, and a table exists only where its level is available.
        unsafe { (self.project)(input.as_ptr(), rows, weights, output.as_mut_ptr(), finish) }
    }

    /// Self-attention of the sequence whose queries, keys and values are the rows of `qkv`.
    ///
    /// # Panics
    /// Where `output` does not have one row of [`HIDDEN`] for each, or the scratch space is too small.
    pub(super) fn attend(&self, qkv: &[f32], scratch: &mut AttentionScratch, output: &mut [f32]) {
        let len = qkv.len() / (3 * HIDDEN);
        if len == 0 {
            return;
        }
        assert_eq!(
            qkv.len(),
            len * 3 * HIDDEN,
            "whole rows of queries, keys and values"
        );
        assert_eq!(output.len(), len * HIDDEN, "one output row per token");
        assert!(len <= scratch.tokens, "scratch space for the sequence");
        let (keys, scores) = (scratch.keys.as_mut_ptr(), scratch.scores.as_mut_ptr());
        // SAFETY: the lengths are as the function requires, and a table exists only where its level is available.
        unsafe { (self.attend)(qkv.as_ptr(), len, keys, scores, output.as_mut_ptr()) }
    }

    /// Layer normalisation of each row of [`HIDDEN`] values.
    ///
    /// # Panics
    /// Where `values` are not whole rows, or weight and bias not one value per column.
    pub(super) fn layer_norm(&self, values: &mut [f32], weight: &[f32], bias: &[f32]) {
        let rows = values.len() / HIDDEN;
        assert_eq!(values.len(), rows * HIDDEN, "whole rows");
        assert_eq!(
            (weight.len(), bias.len()),
            (HIDDEN, HIDDEN),
            "one weight and bias per column"
        );
        // SAFETY: the lengths are as the function requires, and a table exists only where its level is available.
        unsafe { (self.layer_norm)(values.as_mut_ptr(), rows, weight.as_ptr(), bias.as_ptr()) }
    }
}

/// Room for the transposed keys of one head and the scores of one tile of queries.
#[derive(Debug)]
pub(super) struct AttentionScratch {
    tokens: usize,
    keys: Buffer<f32>,
    scores: Buffer<f32>,
}

impl AttentionScratch {
    /// Room for sequences of up to `tokens` tokens.
    pub(super) fn new(tokens: usize) -> Self {
        let padded = tokens.next_multiple_of(PANEL);
        Self {
            tokens,
            keys: Buffer::zeroed(HEAD * padded),
            scores: Buffer::zeroed(MOST_ROWS * padded),
        }
    }
}

/// Activations of some rows in int8: a value is `scale * code - shift`, where the row has a scale and a shift of its own.
#[derive(Debug)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "only x86-64 has int8 kernels")
)]
pub(super) struct QuantizedRows {
    codes: Buffer<i8>,
    scales: Buffer<f32>,
    shifts: Buffer<f32>,
    /// The sums of the codes.
    sums: Buffer<i32>,
}

impl QuantizedRows {
    /// Room for `rows` rows of up to `width` values.
    pub(super) fn new(rows: usize, width: usize) -> Self {
        Self {
            codes: Buffer::zeroed(rows * width),
            scales: Buffer::zeroed(rows),
            shifts: Buffer::zeroed(rows),
            sums: Buffer::zeroed(rows),
        }
    }
}

/// The int8 projection of one instruction set.
#[derive(Debug)]
pub(super) struct Int8Kernels {
    quantize: unsafe fn(*const f32, usize, usize, &mut QuantizedRows),
    project: unsafe fn(&QuantizedRows, usize, &QuantizedPanels, *mut f32, Finish),
}

impl Int8Kernels {
    /// The table of `level`, or `None` if int8 is not faster than f32 or the processor has no instructions for it.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn for_level(level: Level) -> Option<&'static Self> {
        let fast = level == Level::Avx512
            && level.is_available()
            && std::is_x86_feature_detected!("avx512vnni");
        fast.then_some(&vnni::KERNELS)
    }

    /// The table of `level`: none on this architecture.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn for_level(_level: Level) -> Option<&'static Self> {
        None
    }

    /// `output = finish(input * weights + bias)`, row by row, through int8.
    ///
    /// # Panics
    /// Where the matrices do not have the same number of rows of the widths of `weights`, or `quantized` is too small.
    pub(super) fn project(
        &self,
        input: &[f32],
        quantized: &mut QuantizedRows,
        weights: &QuantizedPanels,
        output: &mut [f32],
        finish: Finish,
    ) {
        let width = weights.inputs();
        let rows = input.len() / width;
        assert_eq!(input.len(), rows * width, "whole input rows");
        assert_eq!(
            output.len(),
            rows * weights.outputs(),
            "one output row per input row"
        );
        assert!(input.len() <= quantized.codes.len(), "room for the codes");
        assert!(rows <= quantized.scales.len(), "room for the scales");
        if rows == 0 {
            return;
        }
        // SAFETY: the lengths are as the functions require, and a table exists only where its level is available.
        unsafe {
            (self.quantize)(input.as_ptr(), rows, width, quantized);
            (self.project)(quantized, rows, weights, output.as_mut_ptr(), finish);
        }
    }
}

/// The functions of one instruction set, the generic ones compiled with its features, and the imports for its lanes.
macro_rules! kernels {
    ($lanes:ty, $registers:literal, $level:expr $(, $feature:literal)?) => {
        use crate::kernels::lanes::Lanes;
        use crate::kernels::multiply;
        use crate::kernels::tile::Tile;
        use crate::kernels::{Finish, Kernels, layer};
        use crate::kernels::panels::Panels;
        use remora_kernels::Level;

        pub(super) static KERNELS: Kernels = Kernels {
            level: $level,
            project,
            attend,
            layer_norm,
        };

        /// # Safety
        /// As for [`multiply::run`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn tile(rows: usize, of: &Tile) {
            // SAFETY: the caller's promise.
            unsafe { multiply::run::<$lanes, $registers>(rows, of) }
        }

        /// # Safety
        /// As for [`layer::project`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn project(
            input: *const f32,
            rows: usize,
            weights: &Panels,
            output: *mut f32,
            finish: Finish,
        ) {
            // SAFETY: the caller's promise.
            unsafe { layer::project::<$lanes>(input, rows, weights, output, finish) }
        }

        /// # Safety
        /// As for [`layer::attend`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn attend(
            qkv: *const f32,
            len: usize,
            keys: *mut f32,
            scores: *mut f32,
            output: *mut f32,
        ) {
            // SAFETY: the caller's promise.
            unsafe { layer::attend::<$lanes>(qkv, len, keys, scores, output) }
        }

        /// # Safety
        /// As for [`layer::layer_norm`].
        $(#[target_feature(enable = $feature)])?
        unsafe fn layer_norm(values: *mut f32, rows: usize, weight: *const f32, bias: *const f32) {
            // SAFETY: the caller's promise.
            unsafe { layer::layer_norm::<$lanes>(values, rows, weight, bias) }
        }
    };
}
use kernels;
use remora_kernels::Level;
