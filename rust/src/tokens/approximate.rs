//! The approximate count.

/// Characters of a token in the estimate.
const CHARACTERS: usize = 4;

/// A quarter of a text's characters, rounded up: what LangChain's `count_tokens_approximately`
/// (`langchain_core.messages.utils`, `chars_per_token=4.0`) takes for a text, before it adds 3 for each message.
pub fn approximate(text: &str) -> usize {
    text.chars().count().div_ceil(CHARACTERS)
}
