//! Component `late`: how well the word pieces of a message cover those of the question.
//!
//! The coverage is the mean, over the question's pieces, of the best cosine to any piece of the message, each weighted by
//! how rare the piece is in the scope (the idf of BM25). It is moved to the cosine's scale by one offset for the whole
//! scope, the mean of what it exceeds the cosine by: a message without pieces has its cosine instead, and is neither
//! ahead of nor behind those that have some.

use remora_kernels::Kernels;
use remora_late::{Pieces, Query};

use super::corpus::Corpus;
use crate::content::ModelVectors;
use crate::memory::View;

/// Messages of a scope that are all compared; of a larger one as many of those that score best without.
pub(crate) const COMPARED: usize = 2048;

/// The vectors of one model, with the pieces beside them, in all views of a scope that have some.
pub(crate) struct Late<'a> {
    views: Vec<(&'a View<'a>, &'a ModelVectors)>,
    kernels: &'static Kernels,
}

/// A document's row, its cosine and its pieces.
#[derive(Clone, Copy)]
struct Held<'a> {
    row: usize,
    cosine: f32,
    pieces: &'a Pieces,
}

impl<'a> Late<'a> {
    /// `model` and `dim` are those of the vectors.
    pub(crate) fn of(corpus: Corpus<'a>, model: &str, dim: usize) -> Self {
        let vectors_of = |view: &'a View<'a>| Some((view, view.content.model_vectors(model, dim)?));
        Self {
            views: corpus.views.iter().filter_map(vectors_of).collect(),
            kernels: corpus.kernels,
        }
    }

    /// Turns the cosines of the scope's documents into their values of this component: of those that are compared, all or
    /// the best by `scores`.
    pub(crate) fn write(&self, question: &Query, scores: &[f64], values: &mut [f32]) {
        let weights = self.weights(question);
        if weights.iter().sum::<f64>() <= 0.0 {
            return;
        }
        let compared = nearest(self.held(values), scores);
        let mut best = Vec::new();
        let mut coverage =
            |held: &Held<'_>| question.coverage(held.pieces, &weights, self.kernels, &mut best);
        let covered: Vec<f64> = compared.iter().filter_map(&mut coverage).collect();
        let excesses = compared
            .iter()
            .zip(&covered)
            .map(|(held, covered)| covered - f64::from(held.cosine));
        let offset = excesses.sum::<f64>() / covered.len() as f64;
        for (held, covered) in compared.iter().zip(covered) {
            values[held.row] = (covered - offset) as f32;
        }
    }

    /// The documents that have pieces and a cosine, by (uid, sequence).
    fn held(&self, cosines: &[f32]) -> Vec<Held<'a>> {
        let mut held = Vec::new();
        for (view, vectors) in &self.views {
            for &(_, slot) in view.content.order() {
                let row = view.base + slot as usize;
                if let Some(pieces) = vectors.pieces(slot)
                    && !cosines[row].is_nan()
                {
                    held.push(Held {
                        row,
                        cosine: cosines[row],
                        pieces,
                    });
                }
            }
        }
        held
    }

    /// The weight of each of the question's pieces.
    fn weights(&self, question: &Query) -> Vec<f64> {
        let vectors = || self.views.iter().map(|(_, vectors)| vectors);
        let n = vectors()
            .map(|vectors| vectors.with_pieces())
            .sum::<usize>() as f64;
        let weight = |id: &u16| {
            let df = vectors().map(|vectors| vectors.holding(*id)).sum::<usize>() as f64;
            (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
        };
        question.ids().iter().map(weight).collect()
    }
}

/// Those of the documents that are compared, in their order.
fn nearest<'a>(held: Vec<Held<'a>>, scores: &[f64]) -> Vec<Held<'a>> {
    if held.len() <= COMPARED {
        return held;
    }
    let mut numbers: Vec<usize> = (0..held.len()).collect();
    let score = |number: &usize| scores[held[*number].row];
    numbers.select_nth_unstable_by(COMPARED, |left, right| {
        score(right).total_cmp(&score(left)).then(left.cmp(right))
    });
    numbers.truncate(COMPARED);
    numbers.sort_unstable();
    numbers.into_iter().map(|number| held[number]).collect()
}
