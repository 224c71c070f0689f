//! The word pieces of a text: their ids and their codes, in memory and as bytes.

use remora_kernels::{CODE, Code, Kernels, WideCode, widened};

/// Bytes of an id.
const ID: usize = 2;

/// What a code counts as 1: codes are directions of about this length.
const UNIT: f64 = 127.0;

/// The word pieces of a text, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pieces {
    ids: Box<[u16]>,
    codes: Box<[Code]>,
}

impl Pieces {
    /// Pieces with their codes.
    pub fn new(pieces: impl IntoIterator<Item = (u16, Code)>) -> Self {
        let (ids, codes): (Vec<_>, Vec<_>) = pieces.into_iter().unzip();
        Self {
            ids: ids.into(),
            codes: codes.into(),
        }
    }

    /// Reads what [`Pieces::to_bytes`] has written; `None` if the bytes do not divide into pieces.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let count = Self::count(bytes.len())?;
        let (ids, codes) = bytes.split_at(count * ID);
        let (ids, _) = ids.as_chunks();
        let (codes, _) = codes.as_chunks::<CODE>();
        Some(Self {
            ids: ids.iter().copied().map(u16::from_le_bytes).collect(),
            codes: codes.iter().map(|code| code.map(u8::cast_signed)).collect(),
        })
    }

    /// How many pieces so many bytes hold; `None` if they do not divide into pieces.
    pub fn count(bytes: usize) -> Option<usize> {
        let size = ID + CODE;
        bytes.is_multiple_of(size).then_some(bytes / size)
    }

    /// The ids, two bytes each, little-endian, then the codes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let ids = self.ids.iter().flat_map(|id| id.to_le_bytes());
        let codes = self.codes.as_flattened().iter();
        ids.chain(codes.map(|value| value.cast_unsigned()))
            .collect()
    }

    /// The ids of the pieces.
    pub fn ids(&self) -> &[u16] {
        &self.ids
    }

    /// The memory held beside the struct itself, in bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of_val::<[u16]>(&self.ids) + size_of_val::<[Code]>(&self.codes)
    }
}

/// The pieces of a question, each of them once, ready to be compared.
#[derive(Debug)]
pub struct Query {
    ids: Vec<u16>,
    codes: Vec<WideCode>,
}

impl Query {
    /// `None` if there are no pieces.
    pub fn of(pieces: &Pieces) -> Option<Self> {
        let codes = pieces.codes.iter().map(widened).collect();
        (!pieces.ids.is_empty()).then(|| Self {
            ids: pieces.ids.to_vec(),
            codes,
        })
    }

    /// The ids of the pieces.
    pub fn ids(&self) -> &[u16] {
        &self.ids
    }

    /// The weighted mean, over the question's pieces, of the best cosine to any piece of the text, from -1 to 1 within
    /// what int8 leaves of a cosine. `None` if the text has no pieces. There is a weight per piece of the question, not
    /// all of them 0; `best` is scratch space.
    pub fn coverage(
        &self,
        text: &Pieces,
        weights: &[f64],
        kernels: &Kernels,
        best: &mut Vec<i32>,
    ) -> Option<f64> {
        if text.codes.is_empty() {
            return None;
        }
        best.resize(self.codes.len(), 0);
        kernels.best_dots(&self.codes, &text.codes, best);
        let products = best.iter().zip(weights);
        let sum: f64 = products.map(|(dot, weight)| f64::from(*dot) * weight).sum();
        Some(sum / (UNIT * UNIT * weights.iter().sum::<f64>()))
    }
}
