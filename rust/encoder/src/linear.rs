//! A projection in one of the two precisions.

use super::kernels::{
    Buffer, Dense, Finish, Int8Kernels, Kernels, Panels, QuantizedPanels, QuantizedRows,
};

/// Packed weights with the kernels that read them.
#[derive(Debug)]
pub(super) enum Linear {
    F32(&'static Kernels, Panels),
    Int8(&'static Int8Kernels, QuantizedPanels),
}

impl Linear {
    pub(super) fn f32(kernels: &'static Kernels, dense: Dense, memory: &mut Buffer<f32>) -> Self {
        Self::F32(kernels, Panels::pack(dense, memory))
    }

    pub(super) fn int8(
        kernels: &'static Int8Kernels,
        dense: Dense,
        memory: &mut Buffer<u8>,
    ) -> Self {
        Self::Int8(kernels, QuantizedPanels::pack(dense, memory))
    }

    /// `output = finish(input * weights + bias)`, row by row; `quantized` is scratch space.
    pub(super) fn apply(
        &self,
        input: &[f32],
        quantized: &mut QuantizedRows,
        output: &mut [f32],
        finish: Finish,
    ) {
        match self {
            Self::F32(kernels, panels) => kernels.project(input, panels, output, finish),
            Self::Int8(kernels, panels) => {
                kernels.project(input, quantized, panels, output, finish)
            }
        }
    }
}
