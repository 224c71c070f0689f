//! One message: as it arrives, analysed and not yet in a slot, and as a part holds it.

use bytes::Bytes;
use prost::Message as _;
use remora_lexical::{self as lexical, Analyzer};
use remora_wire as wire;

use crate::text::signs::Signs;
use crate::values::{Scalar, Symbol};

/// A message that has been read and analysed, ready for a slot.
pub(crate) struct Reading {
    pub(crate) sequence: u64,
    pub(crate) revision: u64,
    pub(crate) time: i64,
    pub(crate) received: i64,
    pub(crate) role: String,
    pub(crate) name: String,
    pub(crate) session_id: String,
    pub(crate) signs: Signs,
    pub(crate) has_text: bool,
    pub(crate) attributes: Box<[(Box<str>, Scalar)]>,
    pub(crate) terms: lexical::Document,
    pub(crate) encoded: Bytes,
}

impl Reading {
    /// Reads an encoded stored message; `None` if it is none.
    pub(crate) fn of(encoded: Bytes, analyzer: &Analyzer) -> Option<Self> {
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
    pub(crate) fn speaker(&self) -> &str {
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
pub(crate) struct Document {
    /// The revision that last wrote the message.
    pub(crate) revision: u64,
    pub(crate) role: Symbol,
    /// When the server first stored it, microseconds since 1970.
    pub(crate) received: i64,
    /// Whether the server's model is to embed it: it has text and came without a vector of its own.
    pub(crate) embeddable: bool,
    /// By key.
    pub(crate) attributes: Box<[(Box<str>, Scalar)]>,
    /// The encoded stored message.
    pub(crate) encoded: Bytes,
}

impl Document {
    pub(crate) fn attribute(&self, key: &str) -> Option<&Scalar> {
        let found = self
            .attributes
            .binary_search_by(|(other, _)| other.as_ref().cmp(key));
        found.ok().map(|index| &self.attributes[index].1)
    }

    /// The memory held, in bytes, the encoded message included.
    pub(crate) fn bytes(&self) -> usize {
        let attribute = |(key, value): &(Box<str>, Scalar)| {
            size_of::<(Box<str>, Scalar)>() + key.len() + value.heap_bytes()
        };
        let attributes: usize = self.attributes.iter().map(attribute).sum();
        size_of::<Self>() + attributes + self.encoded.len()
    }
}
