//! A scope as a whole, and what each of its documents has of itself: the cosine and the words.

use remora_index as index;
use remora_kernels::Kernels;
use remora_lexical::{self as lexical, Analyzer, Parameters, Statistics};

use super::buffers::Buffers;
use super::sheet::ABSENT;
use crate::memory::View;

/// The documents of a scope that is held still, and what it takes to score them.
#[derive(Clone, Copy)]
pub(crate) struct Corpus<'a> {
    pub(crate) views: &'a [View<'a>],
    /// Slots of all views.
    pub(crate) rows: usize,
    pub(crate) analyzer: &'a Analyzer,
    pub(crate) kernels: &'static Kernels,
    pub(crate) buffers: &'a Buffers,
}

impl Corpus<'_> {
    /// The cosine of every document with a vector of the model.
    pub(crate) fn cosines(&self, model: &str, vector: &index::Query) -> Vec<f32> {
        let mut values = self.buffers.columns.take_any(self.rows);
        for view in self.views {
            write_cosines(view, model, vector, &mut values[view.range()]);
        }
        values
    }

    /// (1 + cosine) / 2 of every document with a vector of the model, from 0 to 1 however the cosine is rounded.
    pub(crate) fn similarities(&self, model: &str, vector: &index::Query) -> Vec<f32> {
        let mut values = self.cosines(model, vector);
        for value in &mut values {
            *value = ((1.0 + *value) / 2.0).clamp(0.0, 1.0);
        }
        values
    }

    /// The BM25 of every document.
    pub(crate) fn words(&self, text: &str) -> Vec<f32> {
        let mut statistics = Statistics::new(self.analyzer.analyze(text));
        for view in self.views {
            view.content.words().count_into(&mut statistics);
        }
        let query = lexical::Query::new(&statistics, Parameters::default());
        let mut values = self.buffers.columns.take(self.rows, 0.0);
        for view in self.views {
            view.content
                .words()
                .score_into(&query, &mut values[view.base..]);
        }
        values
    }
}

/// Writes the cosine of each document of a view that has a vector of the model.
pub(crate) fn write_cosines(
    view: &View<'_>,
    model: &str,
    vector: &index::Query,
    values: &mut [f32],
) {
    values.fill(ABSENT);
    if let Some(vectors) = view.content.vectors(model, vector.dim()) {
        vectors.scores(vector, values);
    }
}
