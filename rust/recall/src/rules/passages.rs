//! Component `passage`: the BM25 of a message and its neighbours together, among all passages of the scope.

use remora_lexical::{Parameters, Term};

use crate::memory::View;
use crate::scoring::{Buffers, Corpus, PAIR};

/// The passages of a scope, and a count for each of them.
pub(crate) struct Passages<'a> {
    views: &'a [View<'a>],
    /// The rows of messages whose words do not count, in ascending order.
    excluded: &'a [usize],
    documents: usize,
    /// What each passage's length adds to the denominator.
    norms: Vec<f64>,
    /// How often each passage has the term at hand; 0 in between.
    counts: Vec<u32>,
}

impl<'a> Passages<'a> {
    pub(crate) fn of(corpus: Corpus<'a>) -> Self {
        let Corpus {
            views,
            rows,
            buffers,
            excluded,
            ..
        } = corpus;
        for view in views {
            view.content.layout().surroundings.prefetch();
        }
        let lengths = || {
            let layouts = views.iter().map(|view| view.content.layout());
            layouts.flat_map(|layout| layout.surroundings.passage_lengths())
        };
        let documents = views.iter().map(|view| view.content.order().len()).sum();
        let whole: u64 = lengths().copied().map(u64::from).sum();
        let average = whole as f64 / documents as f64;
        let mut norms = buffers.sums.take(rows, 0.0);
        for (norm, length) in norms.iter_mut().zip(lengths()) {
            *norm = Parameters::default().norm(f64::from(*length) / average);
        }
        Self {
            views,
            excluded,
            documents,
            norms,
            counts: buffers.counts.take(rows, 0),
        }
    }

    /// Adds to each value the BM25 of the document's passage; returns what a passage of average length scores that has
    /// each of the terms once; of one that is a pair of characters, a share.
    pub(crate) fn write(
        &mut self,
        mut terms: Vec<Term>,
        pairs: &[Term],
        values: &mut [f32],
    ) -> f64 {
        terms.sort_unstable();
        terms.dedup();
        let expected = |term: Term| if pairs.contains(&term) { PAIR } else { 1.0 };
        let terms = terms.into_iter();
        terms
            .map(|term| expected(term) * self.add(term, values))
            .sum()
    }

    pub(crate) fn give_back(self, buffers: &Buffers) {
        buffers.sums.give_back(self.norms);
        buffers.counts.give_back(self.counts);
    }

    /// Adds what a term gives to the passages that have it; returns its weight.
    fn add(&mut self, term: Term, values: &mut [f32]) -> f64 {
        let views = self.views.iter();
        let having: Vec<_> = views
            .filter(|view| count(view, term, self.excluded, &mut self.counts[view.range()]))
            .collect();
        let counts = having.iter().flat_map(|view| &self.counts[view.range()]);
        let passages = counts.filter(|count| **count > 0).count();
        let weight = Parameters::weight(self.documents as u64, passages as u64);
        for range in having.iter().map(|view| view.range()) {
            let counts = self.counts[range.clone()].iter_mut();
            let passages = counts.zip(&self.norms[range.clone()]);
            for ((count, norm), value) in passages.zip(&mut values[range]) {
                let count = f64::from(std::mem::take(count));
                *value += (weight * Parameters::default().saturated(count, *norm)) as f32;
            }
        }
        weight
    }
}

/// Counts a term in the passages of a view; whether there is any.
fn count(view: &View<'_>, term: Term, excluded: &[usize], counts: &mut [u32]) -> bool {
    let surroundings = &view.content.layout().surroundings;
    let mut some = false;
    view.content.words().each_posting(term, |slot, count| {
        let slot = slot as usize;
        if excluded.binary_search(&(view.base + slot)).is_ok() {
            return;
        }
        some = true;
        counts[slot] += u32::from(count);
        for other in surroundings.around(slot) {
            counts[other] += u32::from(count);
        }
    });
    some
}
