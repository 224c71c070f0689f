//! What chat messages cost in tokens, and which tools they use.
//!
//! Messages (`remora.v1.Message`) are read where they stand in an encoded list, without copies and only when they are
//! asked for: whoever trims a long history looks at its end alone. The costs are those of CountTokens, images aside.

mod cost;
mod list;
mod message;
#[cfg(test)]
mod tests;
mod wire;

pub use cost::Measure;
pub use list::{ChatList, Costs};
pub use message::{ChatMessage, ToolCall};
pub use wire::Malformed;
