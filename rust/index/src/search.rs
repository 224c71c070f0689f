//! The best hits of a search, in one segment or in many.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{IdSet, Query, Segment};

/// A vector that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The slot under which it is stored.
    pub slot: u32,
    /// Its cosine to the query, from -1 to 1 within rounding.
    pub score: f32,
}

/// A vector that was found in one of several segments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SegmentHit {
    /// The number that the caller gave to the segment.
    pub segment: u32,
    /// The slot under which the segment stores it.
    pub slot: u32,
    /// Its cosine to the query, from -1 to 1 within rounding.
    pub score: f32,
}

/// One segment of a search over many.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The number by which hits name the segment; the smaller one comes first among equal scores.
    pub number: u32,
    /// Where to search.
    pub segment: &'a Segment,
    /// The slots that may be found; all of them where there is none.
    pub filter: Option<&'a IdSet>,
}

/// The best `k` hits of all scopes whose score is at least `threshold`: by score descending, then segment number ascending,
/// then slot ascending. Fewer where there are fewer.
///
/// # Panics
/// Where a segment has another dimension than the query.
pub fn search_many<'a>(
    scopes: impl IntoIterator<Item = Scope<'a>>,
    query: &Query,
    k: usize,
    threshold: Option<f32>,
) -> Vec<SegmentHit> {
    let mut best = Best::new(k, threshold);
    for scope in scopes {
        scope
            .segment
            .offer(scope.number, query, scope.filter, &mut best);
    }
    best.into_sorted()
}

/// The best hits so far.
#[derive(Debug)]
pub(super) struct Best {
    k: usize,
    /// No lower score can become a hit.
    floor: f32,
    /// The hits, the worst on top.
    hits: BinaryHeap<Reverse<Ranked>>,
}

impl Best {
    pub(super) fn new(k: usize, threshold: Option<f32>) -> Self {
        let floor = if k == 0 {
            f32::INFINITY
        } else {
            threshold.unwrap_or(f32::NEG_INFINITY)
        };
        Self {
            k,
            floor,
            hits: BinaryHeap::new(),
        }
    }

    /// Whether a hit of this score may be among the best; a cheap test before [`Best::offer`].
    #[inline]
    pub(super) fn may_take(&self, score: f32) -> bool {
        score >= self.floor
    }

    /// Takes the hit if it is among the best. Its score has passed [`Best::may_take`].
    pub(super) fn offer(&mut self, segment: u32, slot: u32, score: f32) {
        // The sum turns -0 into +0, so that equal scores are equal to the order too.
        let hit = Ranked(SegmentHit {
            segment,
            slot,
            score: score + 0.0,
        });
        if self.hits.len() < self.k {
            self.hits.push(Reverse(hit));
        } else if let Some(mut worst) = self.hits.peek_mut().filter(|worst| hit > worst.0) {
            *worst = Reverse(hit);
        }
        self.raise_floor();
    }

    pub(super) fn into_sorted(self) -> Vec<SegmentHit> {
        self.hits
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse(Ranked(hit))| hit)
            .collect()
    }

    fn raise_floor(&mut self) {
        if let Some(Reverse(Ranked(worst))) = self.hits.peek().filter(|_| self.hits.len() == self.k)
        {
            self.floor = worst.score;
        }
    }
}

/// A hit, ordered by its rank: the better one is the greater one.
#[derive(Debug, Clone, Copy)]
struct Ranked(SegmentHit);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.0, &other.0);
        a.score
            .total_cmp(&b.score)
            .then_with(|| (b.segment, b.slot).cmp(&(a.segment, a.slot)))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}
