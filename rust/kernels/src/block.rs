//! The unit in which vectors are stored: sixteen values on a cache line of their own.
#![allow(
    unsafe_code,
    reason = "a slice of blocks is read as the floats that it is made of"
)]

use std::slice;

/// Partial sums of a dot product, and values in a block.
pub const LANES: usize = 16;

/// Sixteen values on one cache line. A vector is stored in whole blocks, its last one padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub struct Block(pub [f32; LANES]);

impl Block {
    /// A block of padding.
    pub const ZERO: Self = Self([0.0; LANES]);
}

const _: () = assert!(
    size_of::<Block>() == LANES * size_of::<f32>(),
    "blocks lie one after the other, without gaps"
);

/// The values of `blocks`, in order, padding included.
pub fn as_floats(blocks: &[Block]) -> &[f32] {
    // SAFETY: a block is exactly `LANES` floats without padding bytes, and the borrow is handed on.
    unsafe { slice::from_raw_parts(blocks.as_ptr().cast(), blocks.len() * LANES) }
}

/// The values of `blocks`, in order, padding included, to be written.
pub fn as_floats_mut(blocks: &mut [Block]) -> &mut [f32] {
    // SAFETY: a block is exactly `LANES` floats without padding bytes, and the unique borrow is handed on.
    unsafe { slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), blocks.len() * LANES) }
}
