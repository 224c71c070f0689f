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
    pub fn dim(&self) -> usize {
        self.values.len()
    }

    pub fn values(&self) -> impl Iterator<Item = f32> + Clone {
        self.values.iter().copied()
    }

    pub fn norm(&self) -> f64 {
        self.norm
    }

    /// The cosine to a stored vector of the same dimension, whose norm is given; 0 if one of them is zero.
    pub fn cosine(&self, stored: &[u8], norm: f64) -> f64 {
        let norms = self.norm * norm;
        if norms == 0.0 {
            return 0.0;
        }
        (self.inner_product(stored) / norms).clamp(-1.0, 1.0)
    }

    /// The inner product with a stored vector of the same dimension.
    pub fn inner_product(&self, stored: &[u8]) -> f64 {
        self.sum(stored, |own, other| own * other)
    }

    /// The Euclidean distance to a stored vector of the same dimension.
    pub fn distance(&self, stored: &[u8]) -> f64 {
        self.sum(stored, |own, other| (own - other).powi(2)).sqrt()
    }

    /// The sum over all dimensions. The order of additions is fixed, so that a score has the same bits everywhere.
    fn sum(&self, stored: &[u8], term: impl Fn(f64, f64) -> f64) -> f64 {
        let (others, _) = stored.as_chunks::<{ size_of::<f32>() }>();
        let mut sums = [0.0; LANES];
        for (own, others) in self.values.chunks(LANES).zip(others.chunks(LANES)) {
            for (sum, (own, other)) in sums.iter_mut().zip(own.iter().zip(others)) {
                *sum += term(f64::from(*own), f64::from(f32::from_le_bytes(*other)));
            }
        }
        sums.iter().sum()
    }
}

/// The values of a stored vector.
pub fn floats(stored: &[u8]) -> impl ExactSizeIterator<Item = f32> + Clone {
    let (values, _) = stored.as_chunks::<{ size_of::<f32>() }>();
    values.iter().copied().map(f32::from_le_bytes)
}

/// The Euclidean norm, in f64, where no square of an f32 overflows or vanishes.
pub fn norm(stored: &[u8]) -> f64 {
    let squares: f64 = floats(stored).map(|value| f64::from(value).powi(2)).sum();
    squares.sqrt()
}
