//! The rules that the hybrid profile may add to its scores, in the order in which they build on each other: what a message
//! inherits, who speaks, times, dates, names, the passage, and last the session and what is nearby, which see all others.

mod identified;
mod inheritance;
mod nearby;
pub(crate) mod newer;
mod passages;
pub(crate) mod recency;
mod session;
mod speaker;

use rustc_hash::FxHashSet;

use crate::memory::View;
use crate::scoring::{ABSENT, Column, Corpus, Draft, Write};
use crate::text::english::{dates, named, temporal};
use crate::text::signs::Signs;
use crate::text::words::{Word, lower_case, words};
use crate::values::Weights;
use identified::identified;
use passages::Passages;
use speaker::Asked;

/// A scope, and a question of it.
pub(crate) struct Rules<'a> {
    pub(crate) corpus: Corpus<'a>,
    pub(crate) text: &'a str,
    /// The text by its words: without names where they are left to the rule about speakers.
    pub(crate) words: &'a str,
    /// Those who speak in the scope.
    pub(crate) speakers: &'a FxHashSet<&'a str>,
    pub(crate) weights: &'a Weights,
    /// How far shared words are to be trusted.
    pub(crate) trust: f64,
}

impl<'a> Rules<'a> {
    /// What a message inherits of what words and vectors give to others, as far as that is above `base`.
    pub(crate) fn inherited(&self, base: f64) -> Vec<Draft<'a>> {
        let weights = self.weights;
        let answer = self.rule(
            "answer",
            weights.answer,
            above(base, inheritance::write_answers),
        );
        let next = self.rule("next", weights.next, above(base, inheritance::write_nexts));
        answer.into_iter().chain(next).collect()
    }

    /// What the question asks for, and the passage.
    pub(crate) fn asked(&self) -> Vec<Draft<'a>> {
        let lower = lower_case(self.text);
        let question = words(&lower);
        let weights = self.weights;
        let written = [
            ("speaker", weights.speaker, self.speakers(&question)),
            ("temporal", weights.temporal, times(&question)),
            ("date", weights.date, dates(&question)),
            ("named", weights.named, names(&question)),
            ("identifier", weights.identifier, self.identified()),
        ];
        let rules = written.into_iter();
        let rules = rules.filter_map(|(name, weight, write)| self.rule(name, weight, write?));
        let passages = (weights.passage != 0.0).then(|| self.passages());
        rules.chain(passages).collect()
    }

    /// What the best around a message gives it, as far as that is above `base`.
    pub(crate) fn around(&self, base: f64) -> Vec<Draft<'a>> {
        let weights = self.weights;
        let session = self.rule("session", weights.session, above(base, session::write_best));
        let nearby = self.rule("nearby", weights.nearby, above(base, nearby::write_nearby));
        session.into_iter().chain(nearby).collect()
    }

    /// A rule that writes the values of some documents, if it has a weight.
    fn rule(&self, name: &'static str, weight: f64, write: Write<'a>) -> Option<Draft<'a>> {
        if weight == 0.0 {
            return None;
        }
        Some(Draft {
            column: Column::new(
                name,
                weight,
                self.corpus.buffers.columns.take_any(self.corpus.rows),
            ),
            write: Box::new(move |view, scores, values| {
                values.fill(ABSENT);
                write(view, scores, values);
            }),
        })
    }

    fn speakers(&self, question: &[Word<'_>]) -> Option<Write<'a>> {
        let asked = Asked::of(question, self.speakers);
        if matches!(asked, Asked::Anybody) {
            return None;
        }
        Some(Box::new(move |view, _, values| {
            asked.each_slot(view, |slot| values[slot as usize] = 1.0);
        }))
    }

    /// The identifiers that the question names.
    fn identified(&self) -> Option<Write<'a>> {
        let values = identified(self.corpus, self.text)?;
        Some(Box::new(move |view, _, own| {
            own.copy_from_slice(&values[view.range()]);
        }))
    }

    fn passages(&self) -> Draft<'a> {
        let Corpus {
            analyzer, buffers, ..
        } = self.corpus;
        let mut values = buffers.columns.take(self.corpus.rows, 0.0);
        let mut passages = Passages::of(self.corpus);
        let pairs = analyzer.pairs(self.words);
        let ideal = passages.write(analyzer.analyze(self.words), &pairs, &mut values);
        passages.give_back(buffers);
        Draft::shares("passage", self.weights.passage, values, ideal, self.trust)
    }
}

fn times<'a>(question: &[Word<'_>]) -> Option<Write<'a>> {
    temporal::asks_when(question).then(|| shown(|signs| signs.timed))
}

fn names<'a>(question: &[Word<'_>]) -> Option<Write<'a>> {
    named::asks_for_name(question).then(|| shown(|signs| signs.names))
}

/// 1 for each document that shows a sign.
fn shown<'a>(sign: impl Fn(Signs) -> bool + Send + Sync + 'a) -> Write<'a> {
    Box::new(move |view, _, values| {
        for &(_, slot) in view.content.order() {
            if sign(view.content.traits(slot).signs) {
                values[slot as usize] = 1.0;
            }
        }
    })
}

fn dates<'a>(question: &[Word<'_>]) -> Option<Write<'a>> {
    let dates = dates::named_dates(question);
    if dates.is_empty() {
        return None;
    }
    let write: Write<'a> = Box::new(move |view, _, values| {
        // Most messages are of the day of the one before.
        let mut known = (0, dates::closeness(&dates, 0));
        for &(_, slot) in view.content.order() {
            let day = dates::day_of(view.content.traits(slot).time);
            if day != known.0 {
                known = (day, dates::closeness(&dates, day));
            }
            let (_, closeness) = known;
            if closeness > 0.0 {
                values[slot as usize] = closeness;
            }
        }
    });
    Some(write)
}

/// What a rule passes on, as far as it is above `base`.
fn above<'a>(
    base: f64,
    write: impl Fn(&View<'_>, &[f64], &mut [f32]) + Send + Sync + 'a,
) -> Write<'a> {
    Box::new(move |view, scores, values| {
        write(view, scores, values);
        if base.is_finite() {
            for value in values.iter_mut().filter(|value| !value.is_nan()) {
                *value = (*value - base as f32).max(0.0);
            }
        }
    })
}
