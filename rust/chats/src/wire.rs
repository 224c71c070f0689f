//! The fields of encoded messages, borrowed.

use std::fmt::{self, Display, Formatter};

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Bytes that are no protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl Display for Malformed {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("not an encoded message")
    }
}

impl std::error::Error for Malformed {}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// One that is neither a varint nor has a length.
    Other,
}

/// The next field of a message, of which the rest is left.
pub(crate) fn next_field<'a>(rest: &mut &'a [u8]) -> Result<Option<(u32, Value<'a>)>, Malformed> {
    if rest.is_empty() {
        return Ok(None);
    }
    let (tag, wire_type) = decode_key(rest).map_err(|_| Malformed)?;
    let value = match wire_type {
        WireType::Varint => Value::Number(decode_varint(rest).map_err(|_| Malformed)?),
        WireType::LengthDelimited => Value::Bytes(delimited(rest)?),
        _ => {
            skip_field(wire_type, tag, rest, DecodeContext::default()).map_err(|_| Malformed)?;
            Value::Other
        }
    };
    Ok(Some((tag, value)))
}

fn delimited<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let len = decode_varint(rest).map_err(|_| Malformed)?;
    let len = usize::try_from(len).map_err(|_| Malformed)?;
    let (value, behind) = rest.split_at_checked(len).ok_or(Malformed)?;
    *rest = behind;
    Ok(value)
}

/// The fields of a message that have a length (texts, bytes and messages), with their numbers; all others are skipped.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    fn read(&mut self) -> Result<Option<(u32, &'a [u8])>, Malformed> {
        while let Some((tag, value)) = next_field(&mut self.0)? {
            if let Value::Bytes(bytes) = value {
                return Ok(Some((tag, bytes)));
            }
        }
        Ok(None)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
