//! The best documents of a scope.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A document with its score.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranked {
    pub(crate) score: f64,
    pub(crate) uid: u64,
    pub(crate) sequence: u64,
    /// Which of the scope's views holds it.
    pub(crate) view: u32,
    pub(crate) slot: u32,
}

/// The better one is the greater one: by score, then by ascending (uid, sequence).
impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |ranked: &Self| (ranked.uid, ranked.sequence);
        self.score
            .total_cmp(&other.score)
            .then_with(|| key(other).cmp(&key(self)))
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

/// The best `k` documents so far.
pub(crate) struct Best {
    k: usize,
    /// No lower score can become a hit.
    floor: f64,
    /// The worst on top.
    heap: BinaryHeap<Reverse<Ranked>>,
}

impl Best {
    pub(crate) fn new(k: usize, threshold: Option<f64>) -> Self {
        Self {
            k,
            floor: threshold.unwrap_or(f64::NEG_INFINITY),
            heap: BinaryHeap::new(),
        }
    }

    /// Whether a document of this score may be among the best: a cheap test before [`Best::offer`].
    #[inline]
    pub(crate) fn may_take(&self, score: f64) -> bool {
        score >= self.floor
    }

    /// Takes the document if it is among the best. Its score has passed [`Best::may_take`].
    pub(crate) fn offer(&mut self, ranked: Ranked) {
        if self.heap.len() < self.k {
            self.heap.push(Reverse(ranked));
        } else if let Some(mut worst) = self.heap.peek_mut().filter(|worst| ranked > worst.0) {
            *worst = Reverse(ranked);
        }
        if self.heap.len() == self.k
            && let Some(Reverse(worst)) = self.heap.peek()
        {
            self.floor = worst.score;
        }
    }

    /// The documents, best first.
    pub(crate) fn into_sorted(self) -> impl Iterator<Item = Ranked> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|Reverse(ranked)| ranked)
    }
}
