//! Component `newer`: what was said again later goes before what was said first.
//!
//! Where a fact has changed, the newest message has what holds now. A later message takes the place before one of the best
//! if both are of one speaker, it has the words that the question and the other share, and it says nearly the same. If it
//! says that something has changed, less is asked of it: the rarest of the words, the names and numbers among them, and
//! to be about the same thing. Of messages that are merely about one subject, none is newer.
//!
//! What has changed may be said in other words than before ("is due on Friday", "was postponed"). If a sentence of the later
//! message begins with what the question is about, it needs no other word of the question.

use std::cell::OnceCell;

use prost::Message as _;
use remora_lexical::{Analyzer, Term};
use remora_wire as wire;
use rustc_hash::FxHashSet;

use crate::memory::View;
use crate::scoring::{ABSENT, Corpus, Sheet};
use crate::text::english::changes::{hints_at_change, speaks_of_change};
use crate::text::english::subject::{Opening, Subject, asks_whether, is_capital_within, openings};
use crate::text::words::{Word, words};
use crate::values::Symbol;

/// The messages with the best scores, which may go before one another: a search's default.
const COMPARED: usize = 10;

/// Those that may if they say in other words what has become of what the question is about: they have less to be found by.
const COMPARED_BY_SUBJECT: usize = 30;

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

/// Of one that hints at a change, and has a sentence that begins with what the question is about.
const CHANGED_SUBJECT: Demand = Demand {
    alike: 0.35,
    farther: 0.28,
    words: 0.0,
    rarest: 0.0,
};

/// The same where the question asks whether something is so: what says just that is nearest to it by its words.
const CHANGED_WHETHER: Demand = Demand {
    farther: 0.33,
    ..CHANGED_SUBJECT
};

/// Of one where that is who asks: it has a sentence that begins with "I", as many have.
const CHANGED_SELF: Demand = Demand {
    farther: 0.25,
    ..CHANGED_SUBJECT
};

/// The share of the weight of the question's words that the older message has at least: it answers the question.
const MUCH: f64 = 0.3;

/// What is asked.
pub(crate) struct Question<'a> {
    /// Its words with their weights.
    words: &'a [(Term, f64)],
    subject: Subject,
    /// Whether it asks for yes or no.
    whether: bool,
}

impl<'a> Question<'a> {
    /// Of a text without the names of those who speak in the scope: most messages that begin with one of these address them.
    pub(crate) fn of(text: &str, words: &'a [(Term, f64)], analyzer: &Analyzer) -> Self {
        Self {
            words,
            subject: Subject::of(text, analyzer),
            whether: asks_whether(text),
        }
    }

    /// What is asked of a message that says what has become of its subject.
    fn changed(&self) -> Option<&'static Demand> {
        match self.subject {
            Subject::Named(_) if self.whether => Some(&CHANGED_WHETHER),
            Subject::Named(_) => Some(&CHANGED_SUBJECT),
            Subject::Asker => Some(&CHANGED_SELF),
            Subject::Unknown => None,
        }
    }
}

/// A message that is compared.
struct Candidate<'a> {
    /// Its place among the best, from 0.
    place: usize,
    row: usize,
    view: usize,
    time: i64,
    speaker: Symbol,
    by_user: bool,
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
    /// With what its sentences begin.
    openings: FxHashSet<Opening>,
    changes: bool,
    hints: bool,
}

/// The values of all documents of a scope, given the totals of all other components. `model` and `dim` are those of the
/// vectors that are compared.
pub(crate) fn lifts(
    corpus: Corpus<'_>,
    sheet: &Sheet,
    (model, dim): (&str, usize),
    question: &Question<'_>,
) -> Vec<f32> {
    let mut values = corpus.buffers.columns.take(corpus.rows, ABSENT);
    let by_subject = question.changed().is_some();
    let most = if by_subject {
        COMPARED_BY_SUBJECT
    } else {
        COMPARED
    };
    let mut candidates: Vec<_> = best_rows(corpus, sheet.totals(), most)
        .into_iter()
        .enumerate()
        .filter_map(|best| Candidate::of(corpus.views, sheet, best, model, dim))
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
            older.score >= least && newer.replaces(older, corpus.analyzer, question)
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

/// The rows of the `most` documents with the best totals, best first; ties by row.
fn best_rows(corpus: Corpus<'_>, totals: &[f64], most: usize) -> Vec<usize> {
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
    if rows.len() > most {
        rows.select_nth_unstable_by(most, by_total);
        rows.truncate(most);
    }
    rows.sort_unstable_by(by_total);
    rows
}

impl<'a> Candidate<'a> {
    /// The document at a place and its row; `None` if it has no vector of the model.
    fn of(
        views: &'a [View<'a>],
        sheet: &Sheet,
        (place, row): (usize, usize),
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
            place,
            row,
            view: number,
            time: traits.time,
            speaker: traits.speaker,
            by_user: traits.by_user,
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
    fn replaces(&self, older: &Self, analyzer: &Analyzer, question: &Question<'_>) -> bool {
        let same_speaker = self.view != older.view || self.speaker == older.speaker;
        if older.time >= self.time || !same_speaker {
            return false;
        }
        let alike = cosine(older.vector, self.vector);
        let farther = older.near - self.near;
        let is_near = |demand: &&Demand| alike >= demand.alike && farther <= demand.farther;
        let meets = |demand: &Demand| {
            let (text, before) = (self.text(analyzer), older.text(analyzer));
            text.meets(before, demand, question.words)
        };
        let best = self.place.max(older.place) < COMPARED;
        let said = Some(&CHANGED).filter(|_| best && alike >= CHANGED.alike);
        let said = said.map(|changed| match self.text(analyzer).changes {
            true => changed,
            false => &SAID_AGAIN,
        });
        said.filter(is_near).is_some_and(meets)
            || question.changed().filter(is_near).is_some_and(|demand| {
                self.is_about_subject(older, analyzer, question) && meets(demand)
            })
    }

    /// Whether it may say what has become of what the question is about, of which an older message speaks.
    fn is_about_subject(&self, older: &Self, analyzer: &Analyzer, question: &Question<'_>) -> bool {
        let (text, before) = (self.text(analyzer), older.text(analyzer));
        let same = match &question.subject {
            Subject::Named(terms) => text.is_about(before, terms),
            Subject::Asker => {
                let both = [(self.by_user, text), (older.by_user, before)];
                let is_own = |(by_user, text): (bool, &Text)| {
                    by_user && text.openings.contains(&Opening::Speaker)
                };
                older.place == 0 && both.into_iter().all(is_own)
            }
            Subject::Unknown => false,
        };
        same && text.hints
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
            openings: openings(&text, analyzer),
            changes: !text.contains('?') && speaks_of_change(&text),
            hints: !text.contains('?') && hints_at_change(&text),
        }
    }

    /// Whether it has what the text before has of a subject, and a sentence that begins with that.
    fn is_about(&self, before: &Self, subject: &[Term]) -> bool {
        let shared = || subject.iter().filter(|term| before.terms.contains(term));
        let opens = |term: &Term| self.openings.contains(&Opening::Term(*term));
        shared().all(|term| self.terms.contains(term)) && shared().any(opens)
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
    let mut before: Option<Word<'_>> = None;
    let words = words(text).into_iter();
    words.filter_map(move |word| {
        let named = before.is_some_and(|before| is_capital_within(before, word));
        let joined = matches!(word.gap, "-" | "." | "@") || word.text.contains('_');
        before = Some(word);
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
