//! The vector of a text: as it arrives, and parsed.

use bytes::Bytes;
use remora_late::Pieces;

/// The vector of a text and the model that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The model's name. Vectors of different models, or dimensions, are never compared.
    pub model: String,
    /// Little-endian f32.
    pub values: Bytes,
    /// The text's word pieces for late interaction, as `late::Pieces` writes them; empty if they were not made.
    pub pieces: Bytes,
}

impl Vector {
    /// A vector without word pieces.
    pub fn new(model: String, values: Bytes) -> Self {
        Self {
            model,
            values,
            pieces: Bytes::new(),
        }
    }

    /// The vector, parsed; `None` if the bytes do not divide into values. Word pieces that cannot be read are none.
    pub(crate) fn parsed(self) -> Option<ModelVector> {
        Some(ModelVector {
            values: self.floats()?,
            pieces: Pieces::from_bytes(&self.pieces).unwrap_or_default(),
            model: self.model,
        })
    }

    /// The values; `None` if the bytes do not divide into them.
    fn floats(&self) -> Option<Vec<f32>> {
        let (values, []) = self.values.as_chunks() else {
            return None;
        };
        Some(values.iter().copied().map(f32::from_le_bytes).collect())
    }
}

/// A vector that has been parsed.
pub(crate) struct ModelVector {
    pub(crate) model: String,
    pub(crate) values: Vec<f32>,
    /// The text's word pieces; none if they were not made.
    pub(crate) pieces: Pieces,
}
