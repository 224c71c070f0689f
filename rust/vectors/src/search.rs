//! One search: bounds of all cosines from codes, then the cosines of those that may be among the best.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use bytes::Bytes;
use remora_filter::Expression;

use crate::codes::{Bounds, GROUP, QueryCode};
use crate::content::Content;
use crate::values::Query;

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    pub query: &'a Query,
    /// How many vectors to find at most.
    pub k: usize,
    /// The least score.
    pub threshold: Option<f64>,
    pub filter: Option<&'a Expression>,
}

/// A vector that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// (1 + cosine) / 2, or that of a search by a text.
    pub score: f64,
    /// Its encoded stored form.
    pub body: Bytes,
}

/// The nearest vectors, the nearest first; ties by key.
pub(crate) fn hits(content: &Content, search: &Search<'_>) -> Vec<Hit> {
    if search.query.dim() != content.codes().dim() || search.k == 0 {
        return Vec::new();
    }
    let best = best(content, search, candidates(content, search));
    let hit = |found: Ranked<'_>| Hit {
        score: found.score,
        body: content.body(found.row).clone(),
    };
    best.into_iter().map(hit).collect()
}

fn score(cosine: f64) -> f64 {
    f64::midpoint(1.0, cosine)
}

/// A row, and how large its cosine is at most.
#[derive(Clone, Copy)]
struct Candidate {
    upper: f32,
    row: usize,
}

/// The rows that may be among the best.
fn candidates(content: &Content, search: &Search<'_>) -> Vec<Candidate> {
    let code = QueryCode::new(search.query);
    let mut cut = Cut::new(search);
    let mut candidates = Vec::new();
    let mut dots = [0; GROUP];
    for range in content.passing(search.filter).ranges() {
        let dots = &mut dots[..range.len()];
        let look = |row, Bounds { lower, upper }| {
            if upper >= cut.value() {
                cut.lift(lower);
                candidates.push(Candidate { upper, row });
            }
        };
        let codes = content.codes();
        codes.bounds(content.kernels(), &code, range.start, dots, look);
    }
    let least = cut.value();
    candidates.retain(|candidate| candidate.upper >= least);
    candidates
}

/// The cosine that is reached by as many rows as are looked for: what stays below is not among them.
struct Cut {
    k: usize,
    floor: f32,
    lowest: BinaryHeap<Reverse<Ordered>>,
}

impl Cut {
    fn new(search: &Search<'_>) -> Self {
        let floor = search
            .threshold
            .map_or(f32::NEG_INFINITY, |least| (2.0 * least - 1.0) as f32 - 1e-6);
        Self {
            k: search.k,
            floor,
            lowest: BinaryHeap::new(),
        }
    }

    fn value(&self) -> f32 {
        if self.lowest.len() < self.k {
            return self.floor;
        }
        let reached = self
            .lowest
            .peek()
            .map_or(f32::NEG_INFINITY, |least| least.0.0);
        reached.max(self.floor)
    }

    fn lift(&mut self, lower: f32) {
        if self.lowest.len() < self.k {
            self.lowest.push(Reverse(Ordered(lower)));
        } else if let Some(mut least) = self.lowest.peek_mut()
            && least.0.0 < lower
        {
            *least = Reverse(Ordered(lower));
        }
    }
}

/// Values that are numbers.
#[derive(PartialEq)]
struct Ordered(f32);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A row with its score. The greater one is further behind.
pub(crate) struct Ranked<'a> {
    pub(crate) score: f64,
    pub(crate) key: &'a [u8],
    pub(crate) row: usize,
}

impl PartialEq for Ranked<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked<'_> {}

impl PartialOrd for Ranked<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then_with(|| self.key.cmp(other.key))
    }
}

/// The best of the candidates, the best first.
fn best<'a>(
    content: &'a Content,
    search: &Search<'_>,
    mut candidates: Vec<Candidate>,
) -> Vec<Ranked<'a>> {
    candidates.sort_unstable_by(|a, b| b.upper.total_cmp(&a.upper));
    let mut best = BinaryHeap::new();
    for Candidate { upper, row } in candidates {
        let last = best.peek().filter(|_| best.len() == search.k);
        if last.is_some_and(|last: &Ranked<'_>| score(upper.into()) < last.score) {
            break;
        }
        let (values, norm) = content.vector(row);
        let score = score(search.query.cosine(values, norm));
        if search.threshold.is_some_and(|least| score < least) {
            continue;
        }
        best.push(Ranked {
            score,
            key: content.key(row),
            row,
        });
        if best.len() > search.k {
            best.pop();
        }
    }
    best.into_sorted_vec()
}
