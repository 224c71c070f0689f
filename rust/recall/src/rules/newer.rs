//! Component `newer`: what was said again later goes before what was said first.
//!
//! Where a fact has changed, the newest message has what holds now. A later message takes the place before one of the best
//! if it says nearly the same (their cosine), has nearly as much of the question's words, and says by itself nearly as much
//! to the question. All three are asked for: of messages that are merely about one subject, none is newer.

use crate::memory::View;
use crate::scoring::{ABSENT, Corpus, Sheet};

/// The messages with the best scores, which may go before one another: a search's default. What is found does not change,
/// only its order.
const COMPARED: usize = 10;

/// The best of these, before which they may go.
const BEST: usize = 3;

/// How much less than the older message it may have by itself.
const NEARLY_AS_MUCH: f64 = 0.15;

/// The share of the older message's coverage that it has at least: nine tenths of the words' weight, to the power of 8.
const NEARLY_AS_MANY_WORDS: f64 = 0.43;

/// The least cosine of two messages of which one says what the other says.
const NEARLY_THE_SAME: f64 = 0.6;

/// How much a message gets beyond the score of that before which it goes.
const STEP: f64 = 1e-3;

/// The components that a message has by itself.
const OWN: [&str; 4] = ["cosine", "late", "bm25", "exact"];

/// A message that is compared.
struct Candidate<'a> {
    row: usize,
    time: i64,
    score: f64,
    /// What it has by itself.
    own: f64,
    /// How much of the question's words it has.
    coverage: f64,
    vector: &'a [f32],
}

/// The values of all documents of a scope, given the totals of all other components. `model` and `dim` are those of the
/// vectors that are compared.
pub(crate) fn lifts(corpus: Corpus<'_>, sheet: &Sheet, model: &str, dim: usize) -> Vec<f32> {
    let mut values = corpus.buffers.columns.take(corpus.rows, ABSENT);
    let mut candidates: Vec<_> = best_rows(corpus, sheet.totals())
        .into_iter()
        .filter_map(|row| Candidate::of(corpus.views, sheet, row, model, dim))
        .collect();
    let worst = candidates
        .iter()
        .map(|candidate| candidate.score)
        .nth(BEST - 1);
    let least = worst.unwrap_or(f64::NEG_INFINITY);
    candidates.sort_by_key(|candidate| (candidate.time, candidate.row));
    let mut lifted: Vec<f64> = candidates.iter().map(|candidate| candidate.score).collect();
    for (at, newer) in candidates.iter().enumerate() {
        let goes_before = |older: &Candidate<'_>| older.score >= least && newer.replaces(older);
        let older = candidates[..at].iter().zip(&lifted);
        let passed = older.filter(|(older, _)| goes_before(older));
        let score = passed
            .map(|(_, score)| *score)
            .fold(f64::NEG_INFINITY, f64::max);
        if score >= newer.score {
            lifted[at] = score + STEP;
            values[newer.row] = (lifted[at] - newer.score) as f32;
        }
    }
    values
}

/// The rows of the documents with the best totals, best first; ties by row.
fn best_rows(corpus: Corpus<'_>, totals: &[f64]) -> Vec<usize> {
    let rows = corpus.views.iter().flat_map(|view| {
        let order = view.content.order().iter();
        order.map(|&(_, slot)| view.base + slot as usize)
    });
    let mut rows: Vec<usize> = rows.collect();
    let by_total = |left: &usize, right: &usize| {
        totals[*right]
            .total_cmp(&totals[*left])
            .then(left.cmp(right))
    };
    if rows.len() > COMPARED {
        rows.select_nth_unstable_by(COMPARED, by_total);
        rows.truncate(COMPARED);
    }
    rows.sort_unstable_by(by_total);
    rows
}

impl<'a> Candidate<'a> {
    /// The document at a row; `None` where it has no vector of the model.
    fn of(
        views: &'a [View<'a>],
        sheet: &Sheet,
        row: usize,
        model: &str,
        dim: usize,
    ) -> Option<Self> {
        let view = &views[views.partition_point(|view| view.range().end <= row)];
        let slot = (row - view.base) as u32;
        let own = sheet.explain(row).into_iter();
        let own = own.filter(|component| OWN.contains(&component.name));
        Some(Self {
            row,
            time: view.content.traits(slot).time,
            score: sheet.totals()[row],
            own: own
                .map(|component| component.value * component.weight)
                .sum(),
            coverage: sheet
                .values("exact")
                .map_or(1.0, |values| f64::from(values[row])),
            vector: view.content.vectors(model, dim)?.get(slot)?,
        })
    }

    /// Whether it says what an older message says.
    fn replaces(&self, older: &Self) -> bool {
        older.time < self.time
            && older.own - self.own <= NEARLY_AS_MUCH
            && self.coverage >= older.coverage * NEARLY_AS_MANY_WORDS
            && cosine(older.vector, self.vector) >= NEARLY_THE_SAME
    }
}

fn cosine(left: &[f32], right: &[f32]) -> f64 {
    let products = left.iter().zip(right);
    products
        .map(|(left, right)| f64::from(*left) * f64::from(*right))
        .sum()
}
