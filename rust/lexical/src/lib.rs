//! BM25 over one partition, in memory: text to terms, terms to postings, postings to scores.
//!
//! [`Analyzer`] turns text into hashed [`Term`]s and holds no lock. A [`Segment`] holds the postings of one set of
//! documents and is changed in place. A question over several segments sums their [`Statistics`] first, so that a
//! document's score does not depend on how the documents are divided.
//!
//! Knows no other crate.

mod analyzer;
mod characters;
mod document;
mod irregular;
mod postings;
mod query;
mod scanner;
mod segment;
mod stem;
mod stop_words;
mod term;

#[cfg(test)]
mod tests;

pub use analyzer::Analyzer;
pub use document::Document;
pub use query::{Parameters, Query, Statistics};
pub use segment::Segment;
pub use stop_words::stop_words;
pub use term::Term;
