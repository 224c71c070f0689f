//! Which messages of a page pass a filter on their attributes.

use bytes::Bytes;
use prost::{DecodeError, Message};
use remora_filter::{Expression, Scalar};
use remora_wire::{Entries, FilteredMessage};

/// The messages of a page, as entries of field 1, that pass, with their sequences, ascending.
pub fn passing(page: Bytes, expression: &Expression) -> Result<Vec<(u64, Bytes)>, DecodeError> {
    let mut passing = Vec::new();
    for message in Entries::decode(page)?.messages {
        let read = FilteredMessage::decode(message.clone())?;
        let attributes = read.attributes.into_iter();
        let attributes: Vec<(String, Scalar)> =
            attributes.map(|(key, value)| (key, value.into())).collect();
        let value = |wanted: &str| {
            let found = attributes.iter().find(|(key, _)| key == wanted);
            found.map(|(_, value)| value)
        };
        if expression.holds(&value) {
            passing.push((read.sequence, message));
        }
    }
    Ok(passing)
}
