//! Encoded messages as entries of a reply's list: their sizes, those that fit, and the fields of one.

use bytes::{BufMut, Bytes};
use prost::encoding::{DecodeContext, decode_key, encode_varint};
use prost::{DecodeError, Message};

/// The tag of field 1 with a length: where a list of messages holds one.
const ENTRY_TAG: u8 = 1 << 3 | 2;

/// A list of encoded messages that is field 1 of a reply.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Entries {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub messages: Vec<Bytes>,
}

/// Bytes of a message in a list: tag, length and itself.
fn entry_len(message: &[u8]) -> usize {
    1 + prost::length_delimiter_len(message.len()) + message.len()
}

/// Writes a message as an entry of a list of messages that is field 1 of a reply.
fn put_entry(message: &[u8], buffer: &mut impl BufMut) {
    buffer.put_u8(ENTRY_TAG);
    encode_varint(message.len() as u64, buffer);
    buffer.put_slice(message);
}

/// Bytes of messages in a list.
pub fn entries_len<'a>(messages: impl Iterator<Item = &'a [u8]>) -> usize {
    messages.map(entry_len).sum()
}

/// Writes messages as entries of a list.
pub fn put_entries<'a>(messages: impl Iterator<Item = &'a [u8]>, mut buffer: impl BufMut) {
    for message in messages {
        put_entry(message, &mut buffer);
    }
}

/// What a page may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Items at most.
    pub items: usize,
    /// Bytes of entries at most; the first is never left out.
    pub bytes: usize,
}

impl Limits {
    /// The first of the items that fit, and whether others follow; `message` gives what is in memory of one.
    pub fn fitting<T>(
        self,
        items: impl Iterator<Item = T>,
        message: impl Fn(&T) -> Option<&[u8]>,
    ) -> (Vec<T>, bool) {
        let mut fitting = Vec::new();
        let mut bytes = 0;
        for item in items {
            bytes += message(&item).map_or(0, entry_len);
            let is_full = bytes > self.bytes && !fitting.is_empty();
            if is_full || fitting.len() == self.items {
                return (fitting, true);
            }
            fitting.push(item);
        }
        (fitting, false)
    }
}

/// Reads the fields of an encoded message that `M` has, and returns the message without one field.
pub fn read_apart<M: Message + Default>(
    message: &[u8],
    field: u32,
) -> Result<(M, Vec<u8>), DecodeError> {
    let (mut fields, mut others, mut rest) = (M::default(), Vec::new(), message);
    while !rest.is_empty() {
        let begin = rest;
        let (tag, wire_type) = decode_key(&mut rest)?;
        fields.merge_field(tag, wire_type, &mut rest, DecodeContext::default())?;
        if tag != field {
            others.extend_from_slice(&begin[..begin.len() - rest.len()]);
        }
    }
    Ok((fields, others))
}
