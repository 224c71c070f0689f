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

/// The fields of a message that have a length (texts, bytes and messages), with their numbers; all others are skipped.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    fn read(&mut self) -> Result<Option<(u32, &'a [u8])>, Malformed> {
        while !self.0.is_empty() {
            let (tag, wire_type) = decode_key(&mut self.0).map_err(|_| Malformed)?;
            if wire_type == WireType::LengthDelimited {
                let len = decode_varint(&mut self.0).map_err(|_| Malformed)?;
                let len = usize::try_from(len).map_err(|_| Malformed)?;
                let (value, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
                self.0 = rest;
                return Ok(Some((tag, value)));
            }
            skip_field(wire_type, tag, &mut self.0, DecodeContext::default())
                .map_err(|_| Malformed)?;
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
