//! The scores that a profile gives to every document of a scope.

use std::borrow::Cow;

use remora_index as index;
use remora_late as late;
use remora_lexical::{self as lexical, Parameters, Statistics};
use rustc_hash::FxHashSet;

use super::Recall;
use super::late::Late;
use super::names::Names;
use super::parallel::{join, scope};
use super::profile::Profile;
use super::rules::Rules;
use super::scope::{View, speakers};
use super::search::Search;
use super::sheet::{ABSENT, Column, Draft, Sheet};

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

    /// The scores of a view's slots, those that the profile does not consider included.
    pub(super) fn totals(&self, view: &View<'_>) -> &[f64] {
        &self.sheet.totals()[view.range()]
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
        scope(self.places, || self.score_by_profile())
    }

    fn score_by_profile(&self) -> Scores {
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
        let mut sheet = Sheet::new(self.places, &self.recall.buffers);
        sheet.add(Column::new(name, 1.0, values));
        Scores { sheet, candidates }
    }

    fn hybrid(&self) -> Scores {
        let weights = &self.search.weights;
        let mut sheet = Sheet::new(self.places, &self.recall.buffers);
        let speakers = match weights.speaker {
            0.0 => FxHashSet::default(),
            _ => speakers(self.views),
        };
        let words = self.without_names(&speakers);
        let rules = Rules {
            recall: self.recall,
            words: &words,
            views: self.views,
            places: self.places,
            text: self.search.text,
            speakers: &speakers,
            weights,
        };
        let (own, others) = join(|| self.own(&words), || rules.stages());
        let mut stages = vec![own];
        if self.is_late() {
            sheet.add_stages(self.views, std::mem::take(&mut stages));
            self.add_late(&mut sheet);
        }
        stages.extend(others);
        sheet.add_stages(self.views, stages);
        Scores {
            sheet,
            candidates: match self.vector {
                None => Candidates::Positive,
                Some(_) => Candidates::All,
            },
        }
    }

    /// What a message has of itself: meaning and words.
    fn own(&self, words: &str) -> Vec<Draft<'_>> {
        let weights = &self.search.weights;
        let cosines = self.vector.filter(|_| weights.cosine != 0.0);
        let words_weight = self.vector.map_or(1.0, |_| weights.bm25);
        let cosines = cosines.map(|vector| Draft {
            column: Column::new(
                "cosine",
                weights.cosine,
                self.recall.buffers.columns.take_any(self.places),
            ),
            write: Box::new(|view, _, values| self.write_cosines(view, vector, values)),
        });
        let words =
            (words_weight != 0.0).then(|| Draft::shares("bm25", words_weight, self.words(words)));
        cosines.into_iter().chain(words).collect()
    }

    /// Adds how well word pieces cover those of the question, as far as it and the documents have some.
    fn add_late(&self, sheet: &mut Sheet) {
        let Some(vector) = self.vector else {
            return;
        };
        let known = sheet.values("cosine").map(<[f32]>::to_vec);
        let mut values = known.unwrap_or_else(|| self.cosines(vector));
        if let Some(question) = late::Query::of(self.search.pieces) {
            let (model, kernels) = (self.search.model, self.recall.kernels);
            let late = Late::of(self.views, model, vector.dim(), kernels);
            late.write(&question, sheet.totals(), &mut values);
        }
        sheet.add(Column::new("late", self.search.weights.late, values));
    }

    /// Whether word pieces count.
    fn is_late(&self) -> bool {
        self.search.profile == Profile::HybridLate && self.search.weights.late != 0.0
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
        let mut values = self.recall.buffers.columns.take_any(self.places);
        for view in self.views {
            self.write_cosines(view, vector, &mut values[view.range()]);
        }
        values
    }

    fn write_cosines(&self, view: &View<'_>, vector: &index::Query, values: &mut [f32]) {
        values.fill(ABSENT);
        if let Some(vectors) = view.content.vectors(self.search.model, vector.dim()) {
            vectors.scores(vector, values);
        }
    }

    /// (1 + cosine) / 2 of every document with a vector of the model, from 0 to 1 however the cosine is rounded.
    fn similarities(&self) -> Vec<f32> {
        let Some(vector) = self.vector else {
            return self.recall.buffers.columns.take(self.places, ABSENT);
        };
        let mut values = self.cosines(vector);
        for value in &mut values {
            *value = ((1.0 + *value) / 2.0).clamp(0.0, 1.0);
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
        let mut values = self.recall.buffers.columns.take(self.places, 0.0);
        for view in self.views {
            view.content
                .words()
                .score_into(&query, &mut values[view.base..]);
        }
        values
    }
}
