//! The values of vectors: little-endian f32 where they are stored, compared in f64.

/// Values that are multiplied side by side.
const LANES: usize = 8;

/// A vector to search for.
#[derive(Debug, Clone)]
pub struct Query {
    values: Vec<f32>,
    norm: f64,
}

impl Query {
    /// A vector of finite values.
    pub fn new(values: Vec<f32>) -> Self {
        let squares: f64 = values.iter().map(|value| f64::from(*value).powi(2)).sum();
        Self {
            values,
            norm: squares.sqrt(),
        }
    }

    /// The number of values.
    pub(crate) fn dim(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = f32> + Clone {
        self.values.iter().copied()
    }

    pub(crate) fn norm(&self) -> f64 {
        self.norm
    }

    /// The cosine to a stored vector of the same dimension, whose norm is given; 0 where one of them is zero. The order
    /// of additions is fixed, so that a score has the same bits everywhere.
    pub(crate) fn cosine(&self, stored: &[u8], norm: f64) -> f64 {
        let norms = self.norm * norm;
        if norms == 0.0 {
            return 0.0;
        }
        let (others, _) = stored.as_chunks::<{ size_of::<f32>() }>();
        let mut sums = [0.0; LANES];
        for (own, others) in self.values.chunks(LANES).zip(others.chunks(LANES)) {
            for (sum, (own, other)) in sums.iter_mut().zip(own.iter().zip(others)) {
                *sum += f64::from(*own) * f64::from(f32::from_le_bytes(*other));
            }
        }
        (sums.iter().sum::<f64>() / norms).clamp(-1.0, 1.0)
    }
}

/// The values of a stored vector.
pub(crate) fn floats(stored: &[u8]) -> impl ExactSizeIterator<Item = f32> + Clone {
    let (values, _) = stored.as_chunks::<{ size_of::<f32>() }>();
    values.iter().copied().map(f32::from_le_bytes)
}

/// The Euclidean norm, in f64, where no square of an f32 overflows or vanishes.
pub(crate) fn norm(stored: &[u8]) -> f64 {
    let squares: f64 = floats(stored).map(|value| f64::from(value).powi(2)).sum();
    squares.sqrt()
}
