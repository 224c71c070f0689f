//! One message: as it arrives, analysed and not yet placed, and as a thread holds it.

use bytes::Bytes;
use prost::Message as _;
use remora_lexical::{self as lexical, Analyzer};
use remora_wire as wire;

use super::english::{named, temporal};
use super::inheritance;
use super::scalar::Scalar;
use super::symbols::Symbol;

/// The vector of a text and the model that made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The model's name. Vectors of different models, or dimensions, are never compared.
    pub model: String,
    /// Little-endian f32.
    pub values: Bytes,
    /// The text's word pieces for late interaction, as `late::Pieces` writes them; empty where they were not made.
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

    /// The values; `None` where the bytes do not divide into them.
    pub(super) fn floats(&self) -> Option<Vec<f32>> {
        let (values, []) = self.values.as_chunks() else {
            return None;
        };
        Some(values.iter().copied().map(f32::from_le_bytes).collect())
    }
}

/// What rules look for in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signs {
    /// Whether it asks a question.
    pub(super) asks: bool,
    /// Whether it speaks of a time.
    pub(super) timed: bool,
    /// Whether it names somebody or something.
    pub(super) names: bool,
    /// Whether it is short enough to inherit.
    pub(super) short: bool,
}

impl Signs {
    fn of(text: &str) -> Self {
        Self {
            asks: inheritance::asks(text),
            timed: temporal::speaks_of_time(text),
            names: named::names_something(text),
            short: inheritance::is_short(text),
        }
    }
}

/// A message that has been read and analysed, ready to be placed.
pub(super) struct Reading {
    pub(super) sequence: u64,
    pub(super) revision: u64,
    pub(super) time: i64,
    pub(super) received: i64,
    pub(super) role: String,
    pub(super) name: String,
    pub(super) session_id: String,
    pub(super) signs: Signs,
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
            received: message.create_time.unwrap_or_default().micros(),
            has_text: !message.text.is_empty(),
            terms: analyzer.document(&message.text),
            attributes: attributes(message.attributes),
            signs: Signs::of(&message.text),
            role: message.role,
            name: message.name,
            session_id: message.session_id,
            encoded,
        })
    }

    /// Who speaks: the name, else the role.
    pub(super) fn speaker(&self) -> &str {
        if self.name.is_empty() {
            &self.role
        } else {
            &self.name
        }
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
    pub(super) role: Symbol,
    /// When the server first stored it, microseconds since 1970.
    pub(super) received: i64,
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
