//! A question against a scope of segments: what its terms weigh there.
//!
//! Okapi BM25 as Lucene scores it (Robertson & Zaragoza, "The Probabilistic Relevance Framework", 2009, with an idf
//! that cannot be negative): the sum over the query's distinct terms of
//! `ln(1 + (n - df + 0.5) / (df + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average_length))`.

use super::term::Term;

/// BM25's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// How slowly a repeated term saturates, at least 0.
    pub k1: f64,
    /// How much a document's length counts, from 0 (not at all) to 1.
    pub b: f64,
}

impl Parameters {
    /// What a term weighs that `with_term` of the documents have.
    pub fn weight(documents: u64, with_term: u64) -> f64 {
        inverse_document_frequency(documents, with_term)
    }

    /// What a term that a document has `count` times adds to its score, in units of the term's weight; `norm` is what
    /// [`Parameters::norm`] says of the document.
    pub fn saturated(self, count: f64, norm: f64) -> f64 {
        count * (self.k1 + 1.0) / (count + norm)
    }

    /// How a document's length, relative to the average, holds its terms down.
    pub fn norm(self, relative_length: f64) -> f64 {
        let Self { k1, b } = self;
        k1 * (1.0 - b + b * relative_length)
    }
}

impl Parameters {
    /// Those with which a document's score is the sum of what those of the query's terms weigh that it has.
    pub const PRESENCE: Self = Self { k1: 0.0, b: 0.0 };
}

impl Default for Parameters {
    fn default() -> Self {
        Self { k1: 0.9, b: 0.75 }
    }
}

/// What a query needs to know of the documents that it is asked of, summed over their segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    documents: u64,
    total_length: u64,
    /// The query's distinct terms in ascending order, each with the number of documents that have it.
    frequencies: Vec<(Term, u64)>,
}

impl Statistics {
    /// The statistics of no documents yet, for a query's terms in any order.
    pub fn new(mut terms: Vec<Term>) -> Self {
        terms.sort_unstable();
        terms.dedup();
        Self {
            documents: 0,
            total_length: 0,
            frequencies: terms.into_iter().map(|term| (term, 0)).collect(),
        }
    }

    /// Adds so many documents, whose lengths have this sum; `having` says how many of them have a term.
    pub(super) fn add(&mut self, documents: u64, total_length: u64, having: impl Fn(Term) -> u32) {
        self.documents += documents;
        self.total_length += total_length;
        for (term, documents) in &mut self.frequencies {
            *documents += u64::from(having(*term));
        }
    }

    /// What a document of average length scores that has each of the terms once, also those that no document has; `share`
    /// is how much of its weight each term has.
    pub fn ideal(&self, share: impl Fn(Term) -> f64) -> f64 {
        let weight = |&(term, documents): &(Term, u64)| {
            share(term) * inverse_document_frequency(self.documents, documents)
        };
        self.frequencies.iter().map(weight).sum()
    }

    /// The weight of each of the terms, in their order, also those that no document has.
    pub fn weights(&self) -> impl Iterator<Item = (Term, f64)> {
        let frequencies = self.frequencies.iter();
        frequencies
            .map(|&(term, documents)| (term, inverse_document_frequency(self.documents, documents)))
    }

    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The mean length of a document in terms; 0 without documents.
    pub fn average_length(&self) -> f64 {
        if self.documents == 0 {
            0.0
        } else {
            self.total_length as f64 / self.documents as f64
        }
    }
}

/// A query's terms with their weights, ready to score segments.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    terms: Vec<WeightedTerm>,
    /// `k1 * (1 - b)`.
    norm: f32,
    /// `k1 * b / average_length`.
    norm_per_length: f32,
}

/// One term and `idf * (k1 + 1)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WeightedTerm {
    pub(super) term: Term,
    weight: f32,
}

impl Query {
    /// Weighs the terms that the statistics were made for. Terms that no document has are dropped.
    pub fn new(statistics: &Statistics, parameters: Parameters) -> Self {
        Self::weighted(statistics, parameters, |_| 1.0)
    }

    /// The same; `share` is how much of its weight each term has.
    pub fn weighted(
        statistics: &Statistics,
        parameters: Parameters,
        share: impl Fn(Term) -> f64,
    ) -> Self {
        let Parameters { k1, b } = parameters;
        let weight = |&(term, documents): &(Term, u64)| {
            share(term) * inverse_document_frequency(statistics.documents, documents)
        };
        let weighted = |frequency: &(Term, u64)| WeightedTerm {
            term: frequency.0,
            weight: (weight(frequency) * (k1 + 1.0)) as f32,
        };
        Self {
            terms: statistics
                .frequencies
                .iter()
                .filter(|(_, documents)| *documents > 0)
                .map(weighted)
                .collect(),
            norm: (k1 * (1.0 - b)) as f32,
            norm_per_length: (k1 * b / statistics.average_length().max(f64::MIN_POSITIVE)) as f32,
        }
    }

    /// Whether no document can match.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub(super) fn terms(&self) -> &[WeightedTerm] {
        &self.terms
    }

    /// One term's part of the score of a document that has it `count` times.
    pub(super) fn score(&self, term: &WeightedTerm, count: u16, length: u32) -> f32 {
        let count = f32::from(count);
        term.weight * count / (count + self.norm + self.norm_per_length * length as f32)
    }
}

fn inverse_document_frequency(documents: u64, with_term: u64) -> f64 {
    let without = documents.saturating_sub(with_term) as f64;
    (1.0 + (without + 0.5) / (with_term as f64 + 0.5)).ln()
}
