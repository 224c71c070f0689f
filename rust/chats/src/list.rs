//! A list of encoded chat messages.

use std::ops::Range;

use super::cost::{Counter, Measure};
use super::message::ChatMessage;
use super::wire::{Fields, Malformed};

/// The field that holds the messages of a list.
const MESSAGES: u32 = 1;

/// What messages cost, and the indexes of those that hold more for a model than what was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    pub tokens: Vec<usize>,
    pub holding_more: Vec<usize>,
}

impl Costs {
    fn add(&mut self, index: usize, tokens: usize, holds_more: bool) {
        self.tokens.push(tokens);
        if holds_more {
            self.holding_more.push(index);
        }
    }
}

/// Messages that are field 1 of an encoded message, whose other fields are skipped.
#[derive(Debug)]
pub struct ChatList<B> {
    bytes: B,
    entries: Vec<Range<usize>>,
}

impl<B: AsRef<[u8]>> ChatList<B> {
    /// Finds where each message stands. What is in them is read when it is asked for.
    pub fn read(bytes: B) -> Result<Self, Malformed> {
        let encoded = bytes.as_ref();
        let mut entries = Vec::new();
        let mut fields = Fields(encoded);
        while let Some(field) = fields.next() {
            let (tag, value) = field?;
            if tag == MESSAGES {
                let end = encoded.len() - fields.0.len();
                entries.push(end - value.len()..end);
            }
        }
        Ok(Self { bytes, entries })
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What each of some messages costs: 3, its role, its text, its tools' names and arguments, and 1 more for a name
    /// with it. `None` for messages that are not there.
    pub fn costs(&self, of: Range<usize>, measure: Measure) -> Option<Result<Costs, Malformed>> {
        let mut counter = Counter::new(measure);
        let mut costs = Costs::default();
        for (index, message) in of.clone().zip(self.messages(of)?) {
            match message {
                Ok(message) => costs.add(index, counter.cost(&message), message.holds_more),
                Err(malformed) => return Some(Err(malformed)),
            }
        }
        Some(Ok(costs))
    }

    /// Some of the messages, one after the other. `None` for messages that are not there.
    pub fn messages(
        &self,
        of: Range<usize>,
    ) -> Option<impl Iterator<Item = Result<ChatMessage<'_>, Malformed>>> {
        let entries = self.entries.get(of)?;
        Some(entries.iter().map(|entry| {
            let encoded = self.bytes.as_ref().get(entry.clone());
            ChatMessage::read(encoded.ok_or(Malformed)?)
        }))
    }
}

impl<'a> ChatList<&'a [u8]> {
    /// All messages, encoded.
    pub fn encoded(&self) -> impl Iterator<Item = &'a [u8]> {
        let bytes = self.bytes;
        self.entries
            .iter()
            .filter_map(move |entry| bytes.get(entry.clone()))
    }
}
