//! One message: as it arrives, analysed and not yet placed, and as a thread holds it.

use bytes::Bytes;
use prost::Message as _;

use super::scalar::Scalar;
use super::symbols::Symbol;
use crate::lexical::{self, Analyzer};
use crate::wire;

/// A vector and the model that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The model's name. Vectors of different models, or dimensions, are never compared.
    pub model: String,
    /// Little-endian f32.
    pub values: Bytes,
}

impl Vector {
    /// The values; `None` where the bytes do not divide into them.
    pub(super) fn floats(&self) -> Option<Vec<f32>> {
        let (values, []) = self.values.as_chunks() else {
            return None;
        };
        Some(values.iter().copied().map(f32::from_le_bytes).collect())
    }
}

/// A message that has been read and analysed, ready to be placed.
pub(super) struct Reading {
    pub(super) sequence: u64,
    pub(super) revision: u64,
    pub(super) time: i64,
    pub(super) role: String,
    pub(super) has_text: bool,
    pub(super) attributes: Box<[(Box<str>, Scalar)]>,
    pub(super) terms: lexical::Document,
    pub(super) encoded: Bytes,
}

impl Reading {
    /// Reads an encoded stored message; `None` where it is none.
    pub(super) fn of(encoded: Bytes, analyzer: &Analyzer) -> Option<Self> {
        let message = wire::Message::decode(encoded.as_ref()).ok()?;
        Some(Self {
            sequence: message.sequence,
            revision: message.revision,
            time: time_of(&message),
            has_text: !message.text.is_empty(),
            terms: analyzer.document(&message.text),
            attributes: attributes(message.attributes),
            role: message.role,
            encoded,
        })
    }
}

/// When it was said, microseconds since 1970: the caller's time, else the server's.
fn time_of(message: &wire::Message) -> i64 {
    let time = message.sent_time.or(message.create_time);
    time.unwrap_or_default().micros()
}

fn attributes(
    stored: impl IntoIterator<Item = (String, wire::Scalar)>,
) -> Box<[(Box<str>, Scalar)]> {
    stored
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}

/// A message in its slot.
#[derive(Debug)]
pub(super) struct Document {
    /// The revision that last wrote the message.
    pub(super) revision: u64,
    /// When it was sent, microseconds since 1970.
    pub(super) time: i64,
    pub(super) role: Symbol,
    /// Whether the server's model is to embed it: it has text and came without a vector of its own.
    pub(super) embeddable: bool,
    /// By key.
    pub(super) attributes: Box<[(Box<str>, Scalar)]>,
    /// The encoded stored message.
    pub(super) encoded: Bytes,
}

impl Document {
    pub(super) fn attribute(&self, key: &str) -> Option<&Scalar> {
        let found = self
            .attributes
            .binary_search_by(|(other, _)| other.as_ref().cmp(key));
        found.ok().map(|place| &self.attributes[place].1)
    }

    /// The memory held, in bytes, the encoded message included.
    pub(super) fn bytes(&self) -> usize {
        let attribute = |(key, value): &(Box<str>, Scalar)| {
            size_of::<(Box<str>, Scalar)>() + key.len() + value.heap_bytes()
        };
        let attributes: usize = self.attributes.iter().map(attribute).sum();
        size_of::<Self>() + attributes + self.encoded.len()
    }
}
