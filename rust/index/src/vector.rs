//! Which vectors are accepted, and their unit length.

use remora_kernels::{Block, LANES, as_floats, as_floats_mut};

/// Why a vector is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    /// It has no direction, thus no cosine.
    #[error("the vector is zero, which has no direction")]
    Zero,
    /// One of its values is infinite or not a number.
    #[error("the vector has a value that is infinite or not a number")]
    NotFinite,
    /// It has not the number of values that the index holds.
    #[error("the vector has {actual} values, expected {expected}")]
    Dimension { expected: usize, actual: usize },
}

/// A vector to search for, of unit length.
#[derive(Debug, Clone)]
pub struct Query {
    dim: usize,
    blocks: Vec<Block>,
}

impl Query {
    /// Normalises `vector`, whose values must be finite and not all zero.
    pub fn new(vector: &[f32]) -> Result<Self, VectorError> {
        let dim = vector.len();
        let norm = norm(vector, dim)?;
        let mut blocks = vec![Block::ZERO; dim.div_ceil(LANES)];
        write_unit(vector, norm, as_floats_mut(&mut blocks));
        Ok(Self { dim, blocks })
    }

    /// The number of values.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The unit vector, padded with zeros to whole blocks.
    pub(super) fn padded(&self) -> &[f32] {
        as_floats(&self.blocks)
    }
}

/// The Euclidean norm of a vector that is accepted, in f64, where no square of an f32 overflows or vanishes.
pub(super) fn norm(vector: &[f32], dim: usize) -> Result<f64, VectorError> {
    if vector.len() != dim {
        return Err(VectorError::Dimension {
            expected: dim,
            actual: vector.len(),
        });
    }
    let squares: f64 = vector
        .iter()
        .map(|value| f64::from(*value) * f64::from(*value))
        .sum();
    if !squares.is_finite() {
        return Err(VectorError::NotFinite);
    }
    if squares == 0.0 {
        return Err(VectorError::Zero);
    }
    Ok(squares.sqrt())
}

/// Writes `vector / norm` to the start of `row`, each value rounded once.
pub(super) fn write_unit(vector: &[f32], norm: f64, row: &mut [f32]) {
    for (unit, value) in row.iter_mut().zip(vector) {
        *unit = (f64::from(*value) / norm) as f32;
    }
}
