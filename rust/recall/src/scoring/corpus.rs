//! A scope as a whole, and what each of its documents has of itself: the cosine and the words.

use remora_index as index;
use remora_kernels::Kernels;
use remora_lexical::{self as lexical, Analyzer, Parameters, Statistics, Term};

use rustc_hash::FxHashSet;

use super::buffers::Buffers;
use super::sheet::ABSENT;
use crate::memory::View;

/// How much of its weight the name of somebody who speaks in the scope has among the words of a question: it may ask for
/// what they say, or for what others say of them.
const NAME: f64 = 0.6;

/// How much of its weight a word has that is in place of a typing error.
const CORRECTED: f64 = 0.8;

/// The documents of a scope that is held still, and what it takes to score them.
#[derive(Clone, Copy)]
pub(crate) struct Corpus<'a> {
    pub(crate) views: &'a [View<'a>],
    /// Slots of all views.
    pub(crate) rows: usize,
    pub(crate) analyzer: &'a Analyzer,
    pub(crate) kernels: &'static Kernels,
    pub(crate) buffers: &'a Buffers,
    /// The rows of documents that count as if they had no words and no vector, in ascending order.
    pub(crate) excluded: &'a [usize],
}

impl Corpus<'_> {
    /// The cosine of every document with a vector of the model.
    pub(crate) fn cosines(&self, model: &str, vector: &index::Query) -> Vec<f32> {
        let mut values = self.buffers.columns.take_any(self.rows);
        for view in self.views {
            self.write_cosines(view, model, vector, &mut values[view.range()]);
        }
        values
    }

    /// Writes the cosine of each document of a view that has a vector of the model.
    pub(crate) fn write_cosines(
        &self,
        view: &View<'_>,
        model: &str,
        vector: &index::Query,
        values: &mut [f32],
    ) {
        values.fill(ABSENT);
        if let Some(vectors) = view.content.vectors(model, vector.dim()) {
            vectors.scores(vector, values);
        }
        let range = view.range();
        for row in self.excluded.iter().filter(|row| range.contains(row)) {
            values[row - view.base] = ABSENT;
        }
    }

    /// How much of the weight of a question's words every document has.
    pub(crate) fn present(&self, asked: &AskedWords) -> Vec<f32> {
        self.word_scores(&asked.query(Parameters::PRESENCE))
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
        let asked = AskedWords::of(*self, text, text);
        self.word_scores(&asked.query(Parameters::default()))
    }

    /// The score of every document's words.
    pub(crate) fn word_scores(&self, query: &lexical::Query) -> Vec<f32> {
        let mut values = self.buffers.columns.take(self.rows, 0.0);
        for view in self.views {
            view.content
                .words()
                .score_into(query, &mut values[view.base..]);
        }
        for row in self.excluded {
            values[*row] = 0.0;
        }
        values
    }
}

/// The words of a question, and how many of the scope's documents have them.
pub(crate) struct AskedWords {
    statistics: Statistics,
    /// Those that are no names.
    plain: FxHashSet<Term>,
    /// Those that are pairs of characters.
    pairs: FxHashSet<Term>,
    /// Those that are in place of typing errors.
    corrected: FxHashSet<Term>,
}

/// How much of its weight a pair of characters has in what can be expected of a message: every second pair of a question
/// joins two words, which stand beside each other by chance.
pub(crate) const PAIR: f64 = 0.5;

impl AskedWords {
    /// `plain` is the text without the names that count less.
    pub(crate) fn of(corpus: Corpus<'_>, text: &str, plain: &str) -> Self {
        let mut statistics = Statistics::new(corpus.analyzer.analyze(text));
        for view in corpus.views {
            view.content.words().count_into(&mut statistics);
        }
        Self {
            statistics,
            plain: corpus.analyzer.analyze(plain).into_iter().collect(),
            pairs: corpus.analyzer.pairs(text).into_iter().collect(),
            corrected: FxHashSet::default(),
        }
    }

    /// The same, where some words are in place of typing errors. They may be wrong: a message that has them gets only a share
    /// of their weight, and what is expected of one stays.
    pub(crate) fn doubting(self, corrected: FxHashSet<Term>) -> Self {
        Self { corrected, ..self }
    }

    /// The words with their weights.
    pub(crate) fn query(&self, parameters: Parameters) -> lexical::Query {
        lexical::Query::weighted(&self.statistics, parameters, |term| self.sure_share(term))
    }

    /// What a message of average length scores that has all words once.
    pub(crate) fn ideal(&self) -> f64 {
        self.statistics
            .ideal(|term| match self.pairs.contains(&term) {
                true => PAIR * self.share(term),
                false => self.share(term),
            })
    }

    /// The weight of each word, by term in ascending order.
    pub(crate) fn weights(&self) -> Vec<(Term, f64)> {
        let weights = self.statistics.weights();
        weights
            .map(|(term, weight)| (term, weight * self.sure_share(term)))
            .collect()
    }

    /// How many documents there are.
    pub(crate) fn documents(&self) -> f64 {
        self.statistics.documents() as f64
    }

    /// The weight of all words.
    pub(crate) fn whole(&self) -> f64 {
        self.statistics.ideal(|term| self.share(term))
    }

    /// How much of its weight a word gives to a message that has it.
    fn sure_share(&self, term: Term) -> f64 {
        if self.corrected.contains(&term) {
            CORRECTED * self.share(term)
        } else {
            self.share(term)
        }
    }

    /// How much of its weight a word has.
    fn share(&self, term: Term) -> f64 {
        if self.plain.contains(&term) {
            1.0
        } else {
            NAME
        }
    }
}
