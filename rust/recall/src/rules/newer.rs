//! Component `newer`: what was said again later goes before what was said first.
//!
//! Where a fact has changed, the newest message has what holds now. A later message takes the place before one of the best
//! if both are of one speaker, it has the words that the question and the other share, and it says nearly the same. If it
//! says that something has changed, less is asked of it: the rarest of the words, the names and numbers among them, and
//! to be about the same thing. Of messages that are merely about one subject, none is newer.

use std::cell::OnceCell;

use prost::Message as _;
use remora_lexical::{Analyzer, Term};
use remora_wire as wire;
use rustc_hash::FxHashSet;

use crate::memory::View;
use crate::scoring::{ABSENT, Corpus, Sheet};
use crate::text::english::changes::speaks_of_change;
use crate::text::words::words;
use crate::values::Symbol;

/// The messages with the best scores, which may go before one another: a search's default. What is found does not change,
/// only its order.
const COMPARED: usize = 10;

/// The best of these, before which they may go.
const BEST: usize = 3;

/// How much a message gets beyond the score of that before which it goes.
const STEP: f64 = 1e-3;

/// The components by which a message is near to the question.
const NEAR: [&str; 2] = ["cosine", "late"];

/// What a later message needs.
struct Demand {
    /// The least cosine of the two messages.
    alike: f64,
    /// How much farther from the question it may be than the older one.
    farther: f64,
    /// The share that it has of the weight of the question's words that the older one has.
    words: f64,
    /// The least weight of a word that it has, relative to the rarest of these.
    rarest: f64,
}

/// Of a message that says nearly the same.
const SAID_AGAIN: Demand = Demand {
    alike: 0.45,
    farther: 0.3,
    words: 0.98,
    rarest: 1.0,
};

/// Of one that says that something has changed.
const CHANGED: Demand = Demand {
    alike: 0.4,
    farther: 0.4,
    words: 0.3,
    rarest: 0.85,
};

/// The share of the weight of the question's words that the older message has at least: it answers the question.
const MUCH: f64 = 0.3;

/// A message that is compared.
struct Candidate<'a> {
    row: usize,
    view: usize,
    time: i64,
    speaker: Symbol,
    score: f64,
    near: f64,
    vector: &'a [f32],
    encoded: bytes::Bytes,
    read: OnceCell<Text>,
}

/// What is read of a message's text.
struct Text {
    terms: FxHashSet<Term>,
    /// Its names and numbers.
    names: FxHashSet<Term>,
    changes: bool,
}

/// The values of all documents of a scope, given the totals of all other components. `model` and `dim` are those of the
/// vectors that are compared, `asked` the question's words with their weights.
pub(crate) fn lifts(
    corpus: Corpus<'_>,
    sheet: &Sheet,
    (model, dim): (&str, usize),
    asked: &[(Term, f64)],
) -> Vec<f32> {
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
        let goes_before = |older: &Candidate<'_>| {
            older.score >= least && newer.replaces(older, corpus.analyzer, asked)
        };
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
    /// The document at a row; `None` if it has no vector of the model.
    fn of(
        views: &'a [View<'a>],
        sheet: &Sheet,
        row: usize,
        model: &str,
        dim: usize,
    ) -> Option<Self> {
        let number = views.partition_point(|view| view.range().end <= row);
        let view = &views[number];
        let slot = (row - view.base) as u32;
        let traits = view.content.traits(slot);
        let near = sheet.explain(row).into_iter();
        let near = near.filter(|component| NEAR.contains(&component.name));
        Some(Self {
            row,
            view: number,
            time: traits.time,
            speaker: traits.speaker,
            score: sheet.totals()[row],
            near: near
                .map(|component| component.value * component.weight)
                .sum(),
            vector: view.content.vectors(model, dim)?.get(slot)?,
            encoded: view.content.encoded(slot),
            read: OnceCell::new(),
        })
    }

    /// Whether it says what now holds of what an older message says.
    fn replaces(&self, older: &Self, analyzer: &Analyzer, asked: &[(Term, f64)]) -> bool {
        let same_speaker = self.view != older.view || self.speaker == older.speaker;
        let alike = cosine(older.vector, self.vector);
        if older.time >= self.time || !same_speaker || alike < CHANGED.alike {
            return false;
        }
        let (text, before) = (self.text(analyzer), older.text(analyzer));
        let demand = if text.changes { CHANGED } else { SAID_AGAIN };
        alike >= demand.alike
            && older.near - self.near <= demand.farther
            && text.meets(before, &demand, asked)
    }

    fn text(&self, analyzer: &Analyzer) -> &Text {
        self.read.get_or_init(|| Text::of(&self.encoded, analyzer))
    }
}

impl Text {
    fn of(encoded: &[u8], analyzer: &Analyzer) -> Self {
        let text = wire::Message::decode(encoded).map(|message| message.text);
        let text = text.unwrap_or_default();
        Self {
            terms: analyzer.analyze(&text).into_iter().collect(),
            names: names(&text)
                .flat_map(|name| analyzer.analyze(name))
                .collect(),
            changes: !text.contains('?') && speaks_of_change(&text),
        }
    }

    /// Whether it has enough of the question's words that the text before has.
    fn meets(&self, before: &Self, demand: &Demand, asked: &[(Term, f64)]) -> bool {
        let shared = || asked.iter().filter(|(term, _)| before.terms.contains(term));
        let kept = || shared().filter(|(term, _)| self.terms.contains(term));
        let whole: f64 = shared().map(|(_, weight)| weight).sum();
        let all: f64 = asked.iter().map(|(_, weight)| weight).sum();
        let rarest = |words: &mut dyn Iterator<Item = f64>| words.fold(0.0, f64::max);
        let names_kept = shared()
            .filter(|(term, _)| before.names.contains(term))
            .all(|(term, _)| self.terms.contains(term));
        whole > 0.0
            && whole >= MUCH * all
            && names_kept
            && kept().map(|(_, weight)| weight).sum::<f64>() >= demand.words * whole
            && rarest(&mut kept().map(|(_, weight)| *weight))
                >= demand.rarest * rarest(&mut shared().map(|(_, weight)| *weight)) - 1e-9
    }
}

/// Words with digits, joined words, and words with a capital letter within a sentence.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut before = "";
    let words = words(text).into_iter();
    words.filter_map(move |word| {
        let within = before.ends_with(char::is_lowercase) && matches!(word.gap, " " | ", ");
        let joined = matches!(word.gap, "-" | "." | "@") || word.text.contains('_');
        before = word.text;
        let named = within && word.text.starts_with(char::is_uppercase);
        let numbered = word
            .text
            .contains(|character: char| character.is_ascii_digit());
        (named || numbered || joined).then_some(word.text)
    })
}

fn cosine(left: &[f32], right: &[f32]) -> f64 {
    let products = left.iter().zip(right);
    products
        .map(|(left, right)| f64::from(*left) * f64::from(*right))
        .sum()
}
