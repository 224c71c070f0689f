//! The scores that a profile gives to every document of a scope.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use super::Recall;
use super::late::Late;
use super::names::Names;
use super::profile::Profile;
use super::rules::Rules;
use super::scope::{View, speakers};
use super::search::Search;
use super::sheet::{ABSENT, Column, Sheet};
use super::surroundings::divide_by_best;
use crate::index;
use crate::late;
use crate::lexical::{self, Parameters, Statistics};

/// Which documents a profile considers.
#[derive(Clone, Copy)]
enum Candidates {
    All,
    /// Those with a value of the first component.
    Scored,
    /// Those with a score above 0.
    Positive,
}

/// The scores of all documents of a scope.
pub(super) struct Scores {
    pub(super) sheet: Sheet,
    candidates: Candidates,
}

impl Scores {
    /// The score of the document at a place; `None` where the profile does not consider it.
    #[inline]
    pub(super) fn of(&self, place: usize) -> Option<f64> {
        let score = self.sheet.totals()[place];
        let considered = match self.candidates {
            Candidates::All => true,
            Candidates::Scored => self.sheet.has_first(place),
            Candidates::Positive => score > 0.0,
        };
        considered.then_some(score)
    }
}

/// A search of a scope that is held still.
pub(super) struct Scoring<'a> {
    recall: &'a Recall,
    search: &'a Search<'a>,
    vector: Option<&'a index::Query>,
    views: &'a [View<'a>],
    /// Slots of all views.
    places: usize,
}

impl<'a> Scoring<'a> {
    pub(super) fn new(
        recall: &'a Recall,
        search: &'a Search<'a>,
        vector: Option<&'a index::Query>,
        views: &'a [View<'a>],
    ) -> Self {
        let slots = |view: &View<'_>| view.base + view.content.slots();
        Self {
            recall,
            search,
            vector,
            views,
            places: views.last().map_or(0, slots),
        }
    }

    pub(super) fn score(&self) -> Scores {
        match self.search.profile {
            Profile::Lexical => {
                self.one("bm25", self.words(self.search.text), Candidates::Positive)
            }
            Profile::Vector => self.one("similarity", self.similarities(), Candidates::Scored),
            Profile::Hybrid | Profile::HybridLate => self.hybrid(),
        }
    }

    /// The scores of a profile with one component.
    fn one(&self, name: &'static str, values: Vec<f32>, candidates: Candidates) -> Scores {
        let mut sheet = Sheet::new(self.places);
        sheet.add(Column::new(name, 1.0, values));
        Scores { sheet, candidates }
    }

    fn hybrid(&self) -> Scores {
        let weights = &self.search.weights;
        let mut sheet = Sheet::new(self.places);
        let speakers = match weights.speaker {
            0.0 => FxHashSet::default(),
            _ => speakers(self.views),
        };
        let words = self.without_names(&speakers);
        self.add_own(&mut sheet, &words);
        let rules = Rules {
            recall: self.recall,
            words: &words,
            views: self.views,
            places: self.places,
            text: self.search.text,
            speakers: &speakers,
            weights,
        };
        rules.add_to(&mut sheet);
        Scores {
            sheet,
            candidates: match self.vector {
                None => Candidates::Positive,
                Some(_) => Candidates::All,
            },
        }
    }

    /// Adds what a message has of itself: meaning, words and word pieces.
    fn add_own(&self, sheet: &mut Sheet, words: &str) {
        let weights = &self.search.weights;
        let wanted = weights.cosine != 0.0 || self.is_late();
        let cosines = self.vector.filter(|_| wanted);
        let cosines = cosines.map(|vector| self.cosines(vector));
        let late = cosines.as_ref().filter(|_| self.is_late()).cloned();
        if let Some(values) = cosines.filter(|_| weights.cosine != 0.0) {
            sheet.add(Column::new("cosine", weights.cosine, values));
        }
        let words_weight = self.vector.map_or(1.0, |_| weights.bm25);
        if words_weight != 0.0 {
            let values = self.relative_words(words);
            sheet.add(Column::new("bm25", words_weight, values));
        }
        if let Some(mut values) = late {
            self.write_late(sheet.totals(), &mut values);
            sheet.add(Column::new("late", weights.late, values));
        }
    }

    /// Whether word pieces count.
    fn is_late(&self) -> bool {
        self.search.profile == Profile::HybridLate && self.search.weights.late != 0.0
    }

    /// Turns cosines into values of `late`, as far as the question and the documents have pieces.
    fn write_late(&self, scores: &[f64], values: &mut [f32]) {
        let question = late::Query::of(self.search.pieces);
        if let (Some(question), Some(vector)) = (question, self.vector) {
            let late = Late::of(
                self.views,
                self.search.model,
                vector.dim(),
                self.recall.kernels,
            );
            late.write(&question, scores, values);
        }
    }

    /// The words to search for: names are left to the rule about speakers where it has a weight.
    fn without_names(&self, speakers: &FxHashSet<&str>) -> Cow<'a, str> {
        let text = self.search.text;
        if speakers.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(Names::of(speakers.iter().copied()).strip(text))
    }

    /// The cosine of every document with a vector of the model.
    fn cosines(&self, vector: &index::Query) -> Vec<f32> {
        let mut values = self.recall.buffers.take(self.places, ABSENT);
        for view in self.views {
            if let Some(vectors) = view.content.vectors(self.search.model, vector.dim()) {
                vectors.scores(vector, &mut values[view.base..]);
            }
        }
        values
    }

    /// (1 + cosine) / 2 of every document with a vector of the model.
    fn similarities(&self) -> Vec<f32> {
        let Some(vector) = self.vector else {
            return self.recall.buffers.take(self.places, ABSENT);
        };
        let mut values = self.cosines(vector);
        for value in &mut values {
            *value = (1.0 + *value) / 2.0;
        }
        values
    }

    /// The BM25 of every document.
    fn words(&self, text: &str) -> Vec<f32> {
        let mut statistics = Statistics::new(self.recall.analyzer.analyze(text));
        for view in self.views {
            statistics.add(view.content.words());
        }
        let query = lexical::Query::new(&statistics, Parameters::default());
        let mut values = self.recall.buffers.take(self.places, 0.0);
        for view in self.views {
            view.content
                .words()
                .score_into(&query, &mut values[view.base..]);
        }
        values
    }

    /// The BM25 of every document divided by the best.
    fn relative_words(&self, text: &str) -> Vec<f32> {
        let mut values = self.words(text);
        divide_by_best(&mut values);
        values
    }
}
