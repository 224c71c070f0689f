//! What a message costs.

use remora_tokens::{self as tokens, Encoding};

use super::message::ChatMessage;

/// What a chat format costs, as OpenAI's cookbook counts ("How to count tokens with tiktoken").
const TOKENS_PER_MESSAGE: usize = 3;
const TOKENS_PER_NAME: usize = 1;

/// How many roles and names are remembered: a history has few of them, again and again.
const REMEMBERED: usize = 8;

/// How tokens are counted.
#[derive(Clone, Copy, Debug)]
pub enum Measure {
    Exact(Encoding),
    Approximate,
}

impl Measure {
    /// The tokens of bytes that should be UTF-8.
    fn count(self, text: &[u8]) -> usize {
        match self {
            Self::Exact(encoding) => tokens::count_bytes(encoding, text),
            Self::Approximate => tokens::approximate(&String::from_utf8_lossy(text)),
        }
    }
}

/// Counts messages one after the other.
pub(crate) struct Counter<'a> {
    measure: Measure,
    words: Vec<(&'a [u8], usize)>,
}

impl<'a> Counter<'a> {
    pub(crate) fn new(measure: Measure) -> Self {
        Self {
            measure,
            words: Vec::with_capacity(REMEMBERED),
        }
    }

    pub(crate) fn cost(&mut self, message: &ChatMessage<'a>) -> usize {
        let mut cost =
            TOKENS_PER_MESSAGE + self.word(message.role) + self.measure.count(message.text);
        if !message.name.is_empty() {
            cost += TOKENS_PER_NAME + self.word(message.name);
        }
        for call in &message.tool_calls {
            cost += self.word(call.name) + self.measure.count(call.arguments);
        }
        cost
    }

    /// The tokens of a role or a name.
    fn word(&mut self, word: &'a [u8]) -> usize {
        if let Some((_, count)) = self.words.iter().find(|(known, _)| *known == word) {
            return *count;
        }
        let count = self.measure.count(word);
        if self.words.len() < REMEMBERED {
            self.words.push((word, count));
        }
        count
    }
}
