//! Component `late`: how well the word pieces of a message cover those of the question.
//!
//! The coverage is the mean, over the question's pieces, of the best cosine to any piece of the message, each weighted by
//! how rare the piece is in the scope (the idf of BM25). It is moved to the cosine's scale by the mean of what it exceeds
//! the cosine by in the whole scope: a message without pieces has its cosine instead, and is neither ahead of nor behind
//! those that have some. Of long messages, more is taken away: among many pieces, some are near to any question.

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

/// Pieces up to which a message is short: in so few, the best of them has little by chance.
const SHORT: usize = 64;

impl Held<'_> {
    /// How much longer it is than a short message: with the logarithm grows what the best of its pieces has by chance.
    fn size(&self) -> f64 {
        (self.pieces.ids().len().max(SHORT) as f64 / SHORT as f64).ln()
    }
}

/// What it takes for a slope: a dozen long messages give half of it, a single one next to nothing.
const PENALTY: f64 = 20.0;

/// A straight line.
struct Line {
    x: f64,
    y: f64,
    slope: f64,
}

impl Line {
    /// That of the least squares with a penalty ([`PENALTY`]), which does not fall.
    fn through(xs: &[f64], ys: &[f64]) -> Self {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (x, y) = (mean(xs), mean(ys));
        let spread: f64 = xs.iter().map(|one| (one - x).powi(2)).sum();
        let products = xs
            .iter()
            .zip(ys)
            .map(|(one, other)| (one - x) * (other - y));
        let slope = products.sum::<f64>() / (spread + PENALTY);
        Self {
            x,
            y,
            slope: slope.max(0.0),
        }
    }

    fn at(&self, x: f64) -> f64 {
        self.y + self.slope * (x - self.x)
    }
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
        let excess = |(held, covered): (&Held<'_>, &f64)| covered - f64::from(held.cosine);
        let excesses: Vec<f64> = compared.iter().zip(&covered).map(excess).collect();
        let sizes: Vec<f64> = compared.iter().map(Held::size).collect();
        let expected = Line::through(&sizes, &excesses);
        for ((held, covered), size) in compared.iter().zip(covered).zip(sizes) {
            values[held.row] = (covered - expected.at(size)) as f32;
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

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn many_points_give_a_slope_and_few_give_little_of_it() {
        let half = |count| [vec![0.0; count], vec![1.0; count]].concat();
        let rise = |count| {
            let line = Line::through(&half(count), &half(count));
            line.at(1.0) - line.at(0.0)
        };

        assert!(rise(10_000) > 0.99);
        assert!(rise(1) < 0.05);
    }

    #[test]
    fn a_line_that_would_fall_or_stands_at_one_place_is_level() {
        assert_eq!(Line::through(&[0.0, 1.0], &[2.0, 1.0]).at(7.0), 1.5);
        assert_eq!(Line::through(&[1.0, 1.0], &[2.0, 1.0]).at(7.0), 1.5);
    }
}
