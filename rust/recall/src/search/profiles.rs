//! The scores that a profile gives to every document of a scope.

use std::borrow::Cow;

use remora_index as index;
use remora_late as late;
use remora_lexical::Parameters;
use rustc_hash::FxHashSet;

use super::Background;
use super::corrections::corrected;
use super::query::Search;
use crate::memory::{View, speakers};
use crate::rules::{Rules, newer, recency};
use crate::scoring::late::Late;
use crate::scoring::parallel::{join, scope};
use crate::scoring::{ABSENT, AskedWords, Chance, Column, Corpus, Draft, Sheet};
use crate::text::names::Names;
use crate::values::Profile;

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
pub(crate) struct Scores {
    pub(crate) sheet: Sheet,
    pub(crate) background: Background,
    candidates: Candidates,
}

impl Scores {
    /// The score of the document at a row; `None` if the profile does not consider it.
    #[inline]
    pub(crate) fn of(&self, row: usize) -> Option<f64> {
        let score = self.sheet.totals()[row];
        let considered = match self.candidates {
            Candidates::All => true,
            Candidates::Scored => self.sheet.has_first(row),
            Candidates::Positive => score > 0.0,
        };
        considered.then_some(score)
    }

    /// The scores of a view's slots, those that the profile does not consider included.
    pub(crate) fn totals(&self, view: &View<'_>) -> &[f64] {
        &self.sheet.totals()[view.range()]
    }
}

/// The mean of the values that there are; 0 if there is none.
fn mean(values: &[f32]) -> f64 {
    let known = || values.iter().filter(|value| !value.is_nan());
    let sum: f64 = known().map(|value| f64::from(*value)).sum();
    sum / known().count().max(1) as f64
}

/// In a scope of more messages than these, only so many of the best pass something on: among many, what is not far ahead
/// of the others is so by chance.
const PASSING_ON: usize = 1_000;

/// The total above which messages pass something on; none if all do.
fn least_passed_on(sheet: &Sheet) -> f64 {
    if sheet.totals().len() <= PASSING_ON {
        return f64::NEG_INFINITY;
    }
    let mut totals = sheet.totals().to_vec();
    let by_total = |left: &f64, right: &f64| right.total_cmp(left);
    *totals.select_nth_unstable_by(PASSING_ON, by_total).1
}

/// A search of a scope that is held still.
pub(crate) struct Scoring<'a> {
    pub(crate) corpus: Corpus<'a>,
    pub(crate) search: &'a Search<'a>,
    pub(crate) vector: Option<&'a index::Query>,
}

impl<'a> Scoring<'a> {
    pub(crate) fn score(&self) -> Scores {
        scope(self.corpus.rows, || self.score_by_profile())
    }

    fn score_by_profile(&self) -> Scores {
        match self.search.profile {
            Profile::Lexical => {
                let words = self.corpus.words(self.search.text);
                self.one("bm25", words, Candidates::Positive)
            }
            Profile::Vector => self.one("similarity", self.similarities(), Candidates::Scored),
            Profile::Hybrid | Profile::HybridLate => self.hybrid(),
        }
    }

    /// The scores of a profile with one component.
    fn one(&self, name: &'static str, values: Vec<f32>, candidates: Candidates) -> Scores {
        let mut sheet = Sheet::new(self.corpus.rows, self.corpus.buffers);
        sheet.add(Column::new(name, 1.0, values));
        Scores {
            sheet,
            candidates,
            background: Background::default(),
        }
    }

    fn hybrid(&self) -> Scores {
        let weights = &self.search.weights;
        let mut sheet = Sheet::new(self.corpus.rows, self.corpus.buffers);
        let speakers = match weights.speaker {
            0.0 => FxHashSet::default(),
            _ => speakers(self.corpus.views),
        };
        let names = Names::of(speakers.iter().copied());
        let corrected = corrected(self.search, self.corpus.views, self.corpus.analyzer, &names);
        let words = match speakers.is_empty() {
            true => Cow::Borrowed(&*corrected.text),
            false => Cow::Owned(names.strip(&corrected.text)),
        };
        let asked = AskedWords::of(self.corpus, &corrected.text, &words).doubting(corrected.terms);
        let present = self.corpus.present(&asked);
        let most = f64::from(present.iter().copied().fold(0.0, f32::max));
        let chance = Chance::among(asked.documents());
        let trust = match self.vector {
            Some(_) => chance.trust(most, asked.whole()),
            None => 1.0,
        };
        let rules = Rules {
            corpus: self.corpus,
            words: &words,
            text: self.search.text,
            speakers: &speakers,
            weights,
            trust,
        };
        let has_rules = !weights.have_no_rules();
        let (own, rules_asked) = join(
            || self.own(&asked, present, trust, chance),
            || has_rules.then(|| rules.asked()),
        );
        sheet.add_stages(self.corpus.views, vec![own]);
        if self.is_late() {
            self.add_late(&mut sheet);
        }
        if let Some(rules_asked) = rules_asked {
            let inherited = rules.inherited(least_passed_on(&sheet));
            sheet.add_stages(self.corpus.views, vec![inherited, rules_asked]);
            let around = rules.around(least_passed_on(&sheet));
            sheet.add_stages(self.corpus.views, vec![around]);
        }
        let background = Background {
            documents: asked.documents(),
            whole: asked.whole(),
            most,
            cosine: mean(sheet.values("cosine").unwrap_or_default()),
        };
        self.add_recency(&mut sheet);
        self.add_newer(&mut sheet, &asked, &words);
        Scores {
            sheet,
            background,
            candidates: match self.vector {
                None => Candidates::Positive,
                Some(_) => Candidates::All,
            },
        }
    }

    /// What a message has of itself: meaning and words.
    fn own(
        &self,
        asked: &AskedWords,
        present: Vec<f32>,
        trust: f64,
        chance: Chance,
    ) -> Vec<Draft<'_>> {
        let weights = &self.search.weights;
        let cosines = self.vector.filter(|_| weights.cosine != 0.0);
        let words_weight = self.vector.map_or(1.0, |_| weights.bm25);
        let cosines = cosines.map(|vector| Draft {
            column: Column::new(
                "cosine",
                weights.cosine,
                self.corpus.buffers.columns.take_any(self.corpus.rows),
            ),
            write: Box::new(|view, _, values| {
                self.corpus
                    .write_cosines(view, self.search.model, vector, values);
            }),
        });
        let words = (words_weight != 0.0).then(|| {
            let values = self.corpus.word_scores(&asked.query(Parameters::default()));
            Draft::shares("bm25", words_weight, values, asked.ideal(), trust)
        });
        let exact = (weights.exact != 0.0).then(|| {
            let sureness = chance.sureness(asked.whole());
            Draft::coverage("exact", weights.exact, present, asked.whole(), sureness)
        });
        cosines.into_iter().chain(words).chain(exact).collect()
    }

    /// Adds how well word pieces cover those of the question, as far as it and the documents have some.
    fn add_late(&self, sheet: &mut Sheet) {
        let Some(vector) = self.vector else {
            return;
        };
        let known = sheet.values("cosine").map(<[f32]>::to_vec);
        let mut values = known.unwrap_or_else(|| self.corpus.cosines(self.search.model, vector));
        if let Some(question) = late::Query::of(self.search.pieces) {
            let late = Late::of(self.corpus, self.search.model, vector.dim());
            late.write(&question, sheet.totals(), &mut values);
        }
        sheet.add(Column::new("late", self.search.weights.late, values));
    }

    /// Adds what messages get for being recent: 1 for the newest of the scope, half for those that are older by the half-life.
    fn add_recency(&self, sheet: &mut Sheet) {
        let weight = self.search.weights.recency;
        let Some(half_life) = self.search.half_life.filter(|_| weight != 0.0) else {
            return;
        };
        let Corpus {
            views,
            rows,
            buffers,
            ..
        } = self.corpus;
        let mut values = buffers.columns.take(rows, ABSENT);
        recency::write(views, half_life, &mut values);
        sheet.add(Column::new("recency", weight, values));
    }

    /// Adds what later messages get that say again what the best say, as far as vectors are compared.
    /// `words` is the question without the names of speakers.
    fn add_newer(&self, sheet: &mut Sheet, asked: &AskedWords, words: &str) {
        let weight = self.search.weights.newer;
        if let Some(vector) = self.vector.filter(|_| weight != 0.0) {
            let vectors = (self.search.model, vector.dim());
            let weights = asked.weights();
            let question = newer::Question::of(words, &weights, self.corpus.analyzer);
            let lifts = newer::lifts(self.corpus, sheet, vectors, &question);
            sheet.add(Column::new("newer", weight, lifts));
        }
    }

    /// Whether word pieces count.
    fn is_late(&self) -> bool {
        self.search.profile == Profile::HybridLate && self.search.weights.late != 0.0
    }

    /// How near every document with a vector of the model is to the query's.
    fn similarities(&self) -> Vec<f32> {
        match self.vector {
            Some(vector) => self.corpus.similarities(self.search.model, vector),
            None => {
                let Corpus { buffers, rows, .. } = self.corpus;
                buffers.columns.take(rows, ABSENT)
            }
        }
    }
}
