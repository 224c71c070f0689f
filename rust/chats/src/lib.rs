//! What chat messages cost in tokens, and which tools they use.
//!
//! Messages (`remora.v1.Message`) are read in place in an encoded list, without copies and only when they are needed: trimming
//! a long history reads only its end. The costs are those of CountTokens, without images. Contexts take messages that are
//! nothing but text from here.
//!
//! Knows: `tokens`. It must not know the journal or the database.

mod cost;
mod list;
mod message;
mod plain;
#[cfg(test)]
mod tests;
mod wire;

pub use cost::Measure;
pub use list::{ChatList, Costs};
pub use message::{ChatMessage, ToolCall};
pub use plain::PlainMessage;
pub use wire::Malformed;
