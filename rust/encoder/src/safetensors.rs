//! The safetensors format: a length, a JSON header of that length, and the tensors' bytes. Nothing in a file is trusted:
//! every range is checked against the file before it is used.

use std::ops::Range;

use serde_json::{Map, Value};

use super::error::EncoderError;

/// Bytes of the header's length at the start of a file.
const LENGTH_BYTES: usize = 8;

/// The tensors of a file.
#[derive(Debug)]
pub(super) struct SafeTensors<'a> {
    file: &'a [u8],
    /// Where the tensors' bytes begin.
    data: usize,
    header: Map<String, Value>,
}

impl<'a> SafeTensors<'a> {
    /// Reads the header.
    pub(super) fn parse(file: &'a [u8]) -> Result<Self, EncoderError> {
        let (length, rest) = file
            .split_first_chunk::<LENGTH_BYTES>()
            .ok_or_else(|| malformed("shorter than the length of its header"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let header = rest
            .get(..length)
            .ok_or_else(|| malformed("its header is longer than the file"))?;
        let header = serde_json::from_slice(header)
            .map_err(|error| malformed(&format!("its header is not a JSON object: {error}")))?;
        Ok(Self {
            file,
            data: LENGTH_BYTES + length,
            header,
        })
    }

    /// The first dimension of a matrix of f32.
    pub(super) fn rows(&self, name: &str) -> Result<usize, EncoderError> {
        let shape = self.tensor(name)?.get("shape").and_then(Value::as_array);
        shape
            .and_then(|shape| usize::try_from(shape.first()?.as_u64()?).ok())
            .ok_or_else(|| wrong(name, "has no rows"))
    }

    /// Where in the file the values of a tensor lie, which must be f32 of exactly this shape.
    pub(super) fn range(&self, name: &str, shape: &[usize]) -> Result<Range<usize>, EncoderError> {
        let tensor = self.tensor(name)?;
        if tensor.get("dtype").and_then(Value::as_str) != Some("F32") {
            return Err(wrong(name, "is not of dtype F32"));
        }
        if tensor.get("shape").and_then(integers).as_deref() != Some(shape) {
            return Err(wrong(name, &format!("is not of shape {shape:?}")));
        }
        let offsets = tensor.get("data_offsets").and_then(integers);
        let range = offsets.and_then(|offsets| self.locate(&offsets));
        let range = range.ok_or_else(|| malformed(&format!("{name} lies outside of the file")))?;
        let bytes = shape
            .iter()
            .try_fold(size_of::<f32>(), |bytes, &dimension| {
                bytes.checked_mul(dimension)
            });
        if bytes != Some(range.len()) {
            return Err(malformed(&format!("{name} has not the bytes of its shape")));
        }
        Ok(range)
    }

    /// The values of a tensor, which must be finite f32 of exactly this shape.
    pub(super) fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EncoderError> {
        let values = read_floats(&self.file[self.range(name, shape)?]).collect::<Vec<_>>();
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(wrong(name, "has values that are not finite"))
        }
    }

    fn tensor(&self, name: &str) -> Result<&Value, EncoderError> {
        self.header
            .get(name)
            .ok_or_else(|| wrong(name, "is missing"))
    }

    /// The range in the file of `[begin, end]`, counted from the first tensor's byte.
    fn locate(&self, offsets: &[usize]) -> Option<Range<usize>> {
        let &[begin, end] = offsets else { return None };
        let (begin, end) = (self.data.checked_add(begin)?, self.data.checked_add(end)?);
        (begin <= end && end <= self.file.len()).then_some(begin..end)
    }
}

/// Little-endian f32 values.
pub(super) fn read_floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    let (values, _) = bytes.as_chunks::<4>();
    values.iter().map(|&value| f32::from_le_bytes(value))
}

fn integers(value: &Value) -> Option<Vec<usize>> {
    let numbers = value.as_array()?.iter();
    numbers
        .map(|number| usize::try_from(number.as_u64()?).ok())
        .collect()
}

fn malformed(reason: &str) -> EncoderError {
    EncoderError::Malformed(reason.to_owned())
}

fn wrong(name: &str, reason: &str) -> EncoderError {
    EncoderError::Architecture(format!("tensor {name} {reason}"))
}
