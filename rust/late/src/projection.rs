//! From the hidden state of a word piece to its code: projected to fewer dimensions, at unit length, in int8.
//!
//! The projection is constant, so that codes of any two texts can be compared. Its directions are the first principal ones
//! (uncentred, so that cosines are kept) of the last hidden states that all-MiniLM-L6-v2 gives to the words of its own
//! vocabulary, each alone: it depends on the model and on no text. `late_projection`, an
//! example of `remora-encoder`, computes it.

use std::sync::LazyLock;

use remora_kernels::{CODE, Code, Kernels};

/// Values of a hidden state.
pub const HIDDEN: usize = 384;

/// [`CODE`] directions of [`HIDDEN`] values each, as i16, little-endian, in units of 1 / 32,767.
static STORED: &[u8; 2 * CODE * HIDDEN] = include_bytes!("projection.bin");

/// The directions, one after the other.
static DIRECTIONS: LazyLock<Vec<f32>> = LazyLock::new(|| {
    let (values, _) = STORED.as_chunks();
    let value = |bytes| f32::from(i16::from_le_bytes(bytes)) / f32::from(i16::MAX);
    values.iter().copied().map(value).collect()
});

/// The code of a hidden state: zero where the state has no part in the projection's directions.
///
/// # Panics
/// Where the state has not [`HIDDEN`] values.
pub fn code(state: &[f32], kernels: &Kernels) -> Code {
    let mut projected = [0.0; CODE];
    kernels.dot_rows(state, &DIRECTIONS, &mut projected);
    let norm = kernels.dot(&projected, &projected).sqrt();
    let scale = f32::from(i8::MAX) / norm.max(f32::MIN_POSITIVE);
    projected.map(|value| (value * scale).round() as i8)
}
