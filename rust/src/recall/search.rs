//! One search: scores over the whole scope, then the best documents that pass the filter.

use bytes::Bytes;
use rustc_hash::FxHashSet;

use super::Recall;
use super::filter::Filter;
use super::profile::{Profile, Weights};
use super::ranking::{Best, Ranked};
use super::scope::{Scope, View};
use super::sheet::{ABSENT, Column, Component, Sheet};
use crate::index::{self, IdSet, VectorError};
use crate::lexical::{self, Parameters, Statistics};

/// What to search for, and how.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// Where in the tenant.
    pub scope: Scope<'a>,
    /// The words to search for.
    pub text: &'a str,
    /// The vector to search for, finite and not all zero.
    pub vector: Option<&'a [f32]>,
    /// The model of the vectors; those of other models do not count.
    pub model: &'a str,
    /// How to rank.
    pub profile: Profile,
    /// How many hits at most.
    pub k: usize,
    /// Only hits of at least this score, in the profile's own measure.
    pub threshold: Option<f64>,
    /// The weights of the hybrid profile's components.
    pub weights: Weights,
    /// Which documents are candidates.
    pub filter: Filter,
    /// Documents that are no candidates, by (uid, sequence).
    pub exclude: &'a [(u64, u64)],
    /// The revision up to which changes are visible.
    pub published: u64,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Best first; ties by (uid, sequence).
    pub hits: Vec<FoundMessage>,
    /// How many documents of the scope have text, came without a vector, and have none of the model yet.
    pub pending: usize,
    /// Whether the whole scope was in memory; otherwise there may be better hits that are not.
    pub complete: bool,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundMessage {
    /// Its conversation.
    pub uid: u64,
    /// Its place in the conversation.
    pub sequence: u64,
    /// Its conversation's id.
    pub conversation_id: Box<str>,
    /// Its score in the profile's own measure.
    pub score: f64,
    /// The parts of the score: the sum of value times weight, from left to right, is the score.
    pub components: Vec<Component>,
    /// The encoded stored message.
    pub encoded: Bytes,
}

impl Recall {
    /// The best messages of the scope. Statistics of words are those of the scope, before filters. An error where the
    /// query's vector has no direction.
    pub fn search(&self, search: &Search<'_>) -> Result<Found, VectorError> {
        let vector = search
            .vector
            .map(|vector| index::Query::new(vector, vector.len()));
        let vector = vector.transpose()?;
        let threads = self.threads(search.tenant, search.scope);
        let views = self.views(&threads, search.published);
        let scoring = Scoring {
            recall: self,
            search,
            vector,
            places: views
                .last()
                .map_or(0, |view| view.base + view.content.slots()),
            views: &views,
        };
        let (sheet, candidates) = scoring.score();
        let hits = hits(&views, search, &sheet, candidates);
        self.buffers.give_back(sheet);
        let pending = views
            .iter()
            .map(|view| view.content.pending(search.model))
            .sum();
        drop(views);
        self.evict();
        Ok(Found {
            hits,
            pending,
            complete: threads.complete,
        })
    }
}

/// Which documents a profile considers.
#[derive(Clone, Copy)]
enum Candidates {
    All,
    /// Those with a value of the first component.
    Scored,
    /// Those with a score above 0.
    Positive,
}

struct Scoring<'a> {
    recall: &'a Recall,
    search: &'a Search<'a>,
    vector: Option<index::Query>,
    views: &'a [View<'a>],
    /// Slots of all views.
    places: usize,
}

impl Scoring<'_> {
    fn score(&self) -> (Sheet, Candidates) {
        let mut sheet = Sheet::new(self.places);
        let candidates = match (self.search.profile, &self.vector) {
            (Profile::Lexical, _) => {
                sheet.add(self.column("bm25", 1.0, self.words()));
                Candidates::Positive
            }
            (Profile::Vector, vector) => {
                let similarity = self.similarities(vector.as_ref());
                sheet.add(self.column("similarity", 1.0, similarity));
                Candidates::Scored
            }
            (Profile::Hybrid, None) => {
                sheet.add(self.column("bm25", 1.0, self.relative_words()));
                Candidates::Positive
            }
            (Profile::Hybrid, Some(vector)) => {
                self.add_weighted(&mut sheet, vector);
                Candidates::All
            }
        };
        (sheet, candidates)
    }

    fn add_weighted(&self, sheet: &mut Sheet, vector: &index::Query) {
        let weights = &self.search.weights;
        if weights.cosine != 0.0 {
            sheet.add(self.column("cosine", weights.cosine, self.cosines(vector)));
        }
        if weights.bm25 != 0.0 {
            sheet.add(self.column("bm25", weights.bm25, self.relative_words()));
        }
    }

    fn column(&self, name: &'static str, weight: f64, values: Vec<f32>) -> Column {
        Column {
            name,
            weight,
            values,
        }
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

    fn similarities(&self, vector: Option<&index::Query>) -> Vec<f32> {
        let Some(vector) = vector else {
            return self.recall.buffers.take(self.places, ABSENT);
        };
        let mut values = self.cosines(vector);
        for value in &mut values {
            *value = (1.0 + *value) / 2.0;
        }
        values
    }

    /// The BM25 of every document.
    fn words(&self) -> Vec<f32> {
        let mut statistics = Statistics::new(self.recall.analyzer.analyze(self.search.text));
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
    fn relative_words(&self) -> Vec<f32> {
        let mut values = self.words();
        let best = values.iter().copied().fold(0.0, f32::max);
        if best > 0.0 {
            for value in &mut values {
                *value /= best;
            }
        }
        values
    }
}

/// The best candidates that pass the filter and are not excluded.
fn hits(
    views: &[View<'_>],
    search: &Search<'_>,
    sheet: &Sheet,
    candidates: Candidates,
) -> Vec<FoundMessage> {
    if search.k == 0 {
        return Vec::new();
    }
    let excluded: FxHashSet<_> = search.exclude.iter().copied().collect();
    let mut best = Best::new(search.k, search.threshold);
    for (number, view) in (0..).zip(views) {
        let filter = (!search.filter.is_empty()).then(|| search.filter.slots(&view.content));
        offer(
            number,
            view,
            sheet,
            candidates,
            filter.as_ref(),
            &excluded,
            &mut best,
        );
    }
    best.into_sorted()
        .map(|ranked| found(&views[ranked.view as usize], sheet, ranked))
        .collect()
}

fn offer(
    number: u32,
    view: &View<'_>,
    sheet: &Sheet,
    candidates: Candidates,
    filter: Option<&IdSet>,
    excluded: &FxHashSet<(u64, u64)>,
    best: &mut Best,
) {
    let uid = view.thread.uid();
    for &(sequence, slot) in view.content.order() {
        let place = view.base + slot as usize;
        let score = sheet.totals()[place];
        if best.may_take(score)
            && is_candidate(candidates, sheet, place, score)
            && filter.is_none_or(|slots| slots.contains(slot))
            && !excluded.contains(&(uid, sequence))
        {
            best.offer(Ranked {
                score,
                uid,
                sequence,
                view: number,
                slot,
            });
        }
    }
}

fn is_candidate(candidates: Candidates, sheet: &Sheet, place: usize, score: f64) -> bool {
    match candidates {
        Candidates::All => true,
        Candidates::Scored => sheet.has_first(place),
        Candidates::Positive => score > 0.0,
    }
}

fn found(view: &View<'_>, sheet: &Sheet, ranked: Ranked) -> FoundMessage {
    FoundMessage {
        uid: ranked.uid,
        sequence: ranked.sequence,
        conversation_id: view.thread.conversation_id().into(),
        score: ranked.score,
        components: sheet.explain(view.base + ranked.slot as usize),
        encoded: view.content.encoded(ranked.slot),
    }
}
