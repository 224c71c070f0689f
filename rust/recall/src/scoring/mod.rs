//! The values of components for every document of a scope, in columns, and what a message has of itself: meaning and words.
//! It knows what is in memory, and no rule.

mod buffers;
mod chance;
mod corpus;
pub(crate) mod late;
pub(crate) mod parallel;
mod sheet;

pub(crate) use buffers::Buffers;
pub(crate) use chance::Chance;
pub(crate) use corpus::{AskedWords, Corpus, PAIR};
pub use sheet::Component;
pub(crate) use sheet::{ABSENT, Column, Draft, Sheet, Write};
