//! The items nearest to a query: bounds of all scores from codes, then the scores of those that may be among the best.

use remora_kernels::Kernels;
use remora_vectors::{self as vectors, Bounds, GROUP, QueryCode};

use crate::tables::Table;

/// How similar two vectors are. More is nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Similarity {
    Cosine,
    InnerProduct,
    /// The negative Euclidean distance.
    L2,
}

/// What to look for.
#[derive(Debug, Clone)]
pub struct Query {
    /// The model of the vectors that are compared.
    pub model: String,
    pub vector: vectors::Query,
    pub similarity: Similarity,
}

impl Query {
    /// The score of a vector.
    fn score(&self, (values, norm): (&[u8], f64)) -> f64 {
        match self.similarity {
            Similarity::Cosine => self.vector.cosine(values, norm),
            Similarity::InnerProduct => self.vector.inner_product(values),
            Similarity::L2 => -self.vector.distance(values),
        }
    }

    /// The score of a vector with a norm, if its cosine were this one. It grows with the cosine.
    fn score_at(&self, cosine: f64, norm: f64) -> f64 {
        let own = self.vector.norm();
        match self.similarity {
            Similarity::Cosine => cosine,
            Similarity::InnerProduct => cosine * own * norm,
            Similarity::L2 => {
                let square = own.powi(2) + norm.powi(2) - 2.0 * cosine * own * norm;
                -square.max(0.0).sqrt()
            }
        }
    }
}

/// A slot, and how high the score of its vector is at most.
struct Candidate {
    upper: f64,
    slot: usize,
}

/// The scores of the rows that may be among the best `count` of those that are wanted; no others have a higher one.
/// `slots` are those of the wanted rows, ascending.
pub(crate) fn best(
    kernels: &Kernels,
    table: &Table,
    query: &Query,
    slots: &[u32],
    count: usize,
) -> Vec<(u32, f64)> {
    let mut scores: Vec<_> = candidates(kernels, table, query, slots, count)
        .into_iter()
        .map(|slot| (table.row(slot), query.score(table.vector(slot))))
        .collect();
    // Of each row the highest.
    scores.sort_unstable_by(|one, other| {
        let by_row = one.0.cmp(&other.0);
        by_row.then(other.1.total_cmp(&one.1))
    });
    scores.dedup_by_key(|(row, _)| *row);
    scores
}

/// The slots that may hold the highest score of one of the best rows.
fn candidates(
    kernels: &Kernels,
    table: &Table,
    query: &Query,
    slots: &[u32],
    count: usize,
) -> Vec<usize> {
    let mut bounded = Vec::with_capacity(slots.len());
    let mut lowers = Vec::with_capacity(slots.len());
    let code = QueryCode::new(&query.vector);
    let mut dots = [0; GROUP];
    for range in ranges(slots) {
        let dots = &mut dots[..range.len()];
        let look = |slot: usize, Bounds { lower, upper }| {
            let norm = table.norm(slot);
            let upper = query.score_at(upper.into(), norm);
            lowers.push((table.row(slot), query.score_at(lower.into(), norm)));
            bounded.push(Candidate { upper, slot });
        };
        table.codes.bounds(kernels, &code, range.start, dots, look);
    }
    let least = reached(lowers, count);
    let may_be_best = bounded.into_iter().filter(|each| each.upper >= least);
    may_be_best.map(|each| each.slot).collect()
}

/// The score that so many rows reach at least.
fn reached(mut lowers: Vec<(u32, f64)>, count: usize) -> f64 {
    lowers.sort_unstable_by(|one, other| other.1.total_cmp(&one.1));
    let mut rows = hashbrown::HashSet::new();
    for (row, lower) in lowers {
        rows.insert(row);
        if rows.len() == count {
            return lower;
        }
    }
    f64::NEG_INFINITY
}

/// Slots that follow each other, none of which reaches from one group of codes into another.
fn ranges(slots: &[u32]) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut slots = slots.iter().map(|slot| *slot as usize).peekable();
    std::iter::from_fn(move || {
        let begin = slots.next()?;
        let mut end = begin + 1;
        while !end.is_multiple_of(GROUP) && slots.next_if_eq(&end).is_some() {
            end += 1;
        }
        Some(begin..end)
    })
}
