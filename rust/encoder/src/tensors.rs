//! The tensors of a model's file, as the model must have them.

use std::ops::Range;

use safetensors::{Dtype, SafeTensors};

use super::error::EncoderError;

/// The tensors of a file.
#[derive(Debug)]
pub(super) struct Tensors<'a> {
    file: &'a [u8],
    tensors: SafeTensors<'a>,
}

impl<'a> Tensors<'a> {
    /// Reads the header, and checks every range that it names.
    pub(super) fn read(file: &'a [u8]) -> Result<Self, EncoderError> {
        let tensors = SafeTensors::deserialize(file);
        let tensors = tensors.map_err(|error| EncoderError::Malformed(error.to_string()))?;
        Ok(Self { file, tensors })
    }

    /// The first dimension of a matrix.
    pub(super) fn rows(&self, name: &str) -> Result<usize, EncoderError> {
        let tensor = self.tensors.tensor(name).ok();
        let rows = tensor.and_then(|tensor| tensor.shape().first().copied());
        rows.ok_or_else(|| wrong(name, "has no rows"))
    }

    /// Where in the file the values of a tensor lie, which must be f32 of exactly this shape.
    pub(super) fn range(&self, name: &str, shape: &[usize]) -> Result<Range<usize>, EncoderError> {
        let bytes = self.bytes(name, shape)?;
        let begin = bytes.as_ptr().addr() - self.file.as_ptr().addr();
        Ok(begin..begin + bytes.len())
    }

    /// The values of a tensor, which must be finite f32 of exactly this shape.
    pub(super) fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EncoderError> {
        let values = read_floats(self.bytes(name, shape)?).collect::<Vec<_>>();
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(wrong(name, "has values that are not finite"))
        }
    }

    fn bytes(&self, name: &str, shape: &[usize]) -> Result<&'a [u8], EncoderError> {
        let tensor = self.tensors.tensor(name);
        let tensor = tensor.map_err(|_| wrong(name, "is missing"))?;
        if tensor.dtype() != Dtype::F32 {
            return Err(wrong(name, "is not of dtype F32"));
        }
        if tensor.shape() != shape {
            return Err(wrong(name, &format!("is not of shape {shape:?}")));
        }
        Ok(tensor.data())
    }
}

/// Little-endian f32 values.
pub(super) fn read_floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    let (values, _) = bytes.as_chunks::<4>();
    values.iter().map(|&value| f32::from_le_bytes(value))
}

fn wrong(name: &str, reason: &str) -> EncoderError {
    EncoderError::Architecture(format!("tensor {name} {reason}"))
}
