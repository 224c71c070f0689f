//! One search: scores over the whole scope, then the best documents that pass the filter.

mod corrections;
mod filter;
mod profiles;
mod query;
mod ranking;

use bytes::Bytes;
use remora_index::{Query, VectorError};
use remora_supervision::failpoints::{self, Point};
use rustc_hash::FxHashSet;

pub use filter::Filter;
pub use query::Search;

use crate::Recall;
use crate::memory::View;
use crate::scoring::{Component, Corpus};
use crate::values::Profile;
use profiles::{Scores, Scoring};
use ranking::{Best, Ranked};

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Best first; ties by (uid, sequence).
    pub hits: Vec<FoundMessage>,
    /// How many documents of the scope have text, came without a vector, and are still to get one of the
    /// model.
    pub pending: usize,
    /// Whether the whole scope was in memory; otherwise there may be better hits that are not.
    pub complete: bool,
    /// What the hits compare with; of the hybrid profiles only.
    pub background: Background,
}

/// What a scope as a whole has of a question: what its hits compare with.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Background {
    /// How many documents the scope has.
    pub documents: f64,
    /// What all words of the question weigh together (idf).
    pub whole: f64,
    /// What those weigh that one document has, at most.
    pub most: f64,
    /// The mean cosine of the documents.
    pub cosine: f64,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundMessage {
    /// Its conversation.
    pub uid: u64,
    /// Its number in the conversation.
    pub sequence: u64,
    /// Its conversation's id.
    pub conversation_id: Box<str>,
    /// Its score in the profile's own measure.
    pub score: f64,
    /// What the score consists of: the sum of value times weight, from left to right.
    pub components: Vec<Component>,
    /// The encoded stored message.
    pub encoded: Bytes,
    /// The messages before it in its part, as many as the search asks for, in their order.
    pub before: Vec<Bytes>,
    /// The messages after it, likewise.
    pub after: Vec<Bytes>,
}

impl Recall {
    /// The best messages of the scope. Statistics of words are those of the scope, before filters. An error where the
    /// query's vector has no direction.
    pub fn search(&self, search: &Search<'_>) -> Result<Found, VectorError> {
        let vector = search.vector.map(Query::new).transpose()?;
        let parts = self.use_parts(search.tenant, search.scope);
        let views = self.views(&parts, search.published);
        failpoints::hit(Point::RecallScoring);
        let excluded = rows(&views, search.exclude);
        let scoring = Scoring {
            corpus: self.corpus(&views, &excluded),
            search,
            vector: vector.as_ref(),
        };
        let scores = scoring.score();
        let hits = hits(&views, search, &scores);
        let background = scores.background;
        scores.sheet.give_back(&self.buffers);
        let pending = views
            .iter()
            .map(|view| view.content.pending(search.model))
            .sum();
        let some_are_empty = views.len() < parts.len();
        drop(views);
        if some_are_empty && let Some(user) = search.scope.user() {
            self.sweep(search.tenant, user);
        }
        self.evict();
        Ok(Found {
            hits,
            pending,
            complete: parts.complete,
            background,
        })
    }

    fn corpus<'a>(&'a self, views: &'a [View<'a>], excluded: &'a [usize]) -> Corpus<'a> {
        Corpus {
            views,
            rows: views.last().map_or(0, |view| view.range().end),
            analyzer: &self.analyzer,
            kernels: self.kernels,
            buffers: &self.buffers,
            excluded,
        }
    }
}

/// The rows of messages, by (uid, sequence), in ascending order.
fn rows(views: &[View<'_>], messages: &[(u64, u64)]) -> Vec<usize> {
    let mut rows: Vec<usize> = views
        .iter()
        .flat_map(|view| {
            let own = messages.iter().filter(|(uid, _)| *uid == view.part.uid());
            own.filter_map(|(_, sequence)| Some(view.base + view.content.slot(*sequence)?))
        })
        .collect();
    rows.sort_unstable();
    rows
}

/// The best candidates that pass the filter and are not excluded.
fn hits(views: &[View<'_>], search: &Search<'_>, scores: &Scores) -> Vec<FoundMessage> {
    if search.k == 0 {
        return Vec::new();
    }
    let excluded: FxHashSet<_> = search.exclude.iter().chain(search.seen).copied().collect();
    let mut best = Best::new(search.k, search.threshold);
    for (number, view) in (0..).zip(views) {
        if !scores
            .totals(view)
            .iter()
            .any(|score| best.may_take(*score))
        {
            continue;
        }
        let barred = view.content.role_symbols(search.without_roles);
        let filter = (!search.filter.is_empty()).then(|| search.filter.passing(&view.content));
        let passes = |sequence, slot| {
            filter.as_ref().is_none_or(|passing| passing[slot as usize])
                && !excluded.contains(&(view.part.uid(), sequence))
                && !view.content.has_role(slot, &barred)
                && can_be_found(view, search, slot)
        };
        offer(number, view, scores, passes, &mut best);
    }
    best.into_sorted()
        .map(|ranked| found(&views[ranked.view as usize], search, scores, ranked))
        .collect()
}

/// Offers the candidates of a view that pass.
fn offer(
    number: u32,
    view: &View<'_>,
    scores: &Scores,
    passes: impl Fn(u64, u32) -> bool,
    best: &mut Best,
) {
    for &(sequence, slot) in view.content.order() {
        let Some(score) = scores.of(view.base + slot as usize) else {
            continue;
        };
        if best.may_take(score) && passes(sequence, slot) {
            best.offer(Ranked {
                score,
                uid: view.part.uid(),
                sequence,
                view: number,
                slot,
            });
        }
    }
}

/// Whether there is anything to find a document by: the rules of a hybrid search score every one, also those that have
/// no text (they call a tool) and no vector.
fn can_be_found(view: &View<'_>, search: &Search<'_>, slot: u32) -> bool {
    !matches!(search.profile, Profile::Hybrid | Profile::HybridLate)
        || view.content.traits(slot).has_text
        || search.vector.is_some_and(|vector| {
            let vectors = view.content.vectors(search.model, vector.len());
            vectors.is_some_and(|vectors| vectors.contains(slot))
        })
}

fn found(view: &View<'_>, search: &Search<'_>, scores: &Scores, ranked: Ranked) -> FoundMessage {
    let (before, after) = view.content.around(ranked.sequence, search.around);
    FoundMessage {
        uid: ranked.uid,
        sequence: ranked.sequence,
        conversation_id: view.part.conversation_id().into(),
        score: ranked.score,
        components: scores.sheet.explain(view.base + ranked.slot as usize),
        encoded: view.content.encoded(ranked.slot),
        before,
        after,
    }
}
