//! One analysed text: what a segment needs to know of it.

use super::term::Term;

/// The distinct terms of a text with their counts, and its length in terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    terms: Box<[(Term, u16)]>,
    length: u32,
}

impl Document {
    /// Counts the terms of a text, in any order. A count stops at 65,535, where BM25 has long ceased to tell it from
    /// more; the length does not.
    pub fn new(mut terms: Vec<Term>) -> Self {
        terms.sort_unstable();
        let length = u32::try_from(terms.len()).unwrap_or(u32::MAX);
        let terms = terms
            .chunk_by(PartialEq::eq)
            .map(|same| (same[0], saturating_count(same.len())))
            .collect();
        Self { terms, length }
    }

    /// The distinct terms in ascending order, each with how often it occurs.
    pub fn terms(&self) -> &[(Term, u16)] {
        &self.terms
    }

    /// The number of terms, repeats included.
    pub fn length(&self) -> u32 {
        self.length
    }
}

fn saturating_count(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
