//! The rules that the hybrid profile may add to its scores, in the order in which they build on each other: what a message
//! inherits, who speaks, times, dates, the passage, and last the session and what is nearby, which see all others.

use rustc_hash::FxHashSet;

use super::Recall;
use super::profile::Weights;
use super::scope::View;
use super::sessions::Sessions;
use super::sheet::{ABSENT, Column, Sheet};
use super::speaker::Asked;
use super::surroundings::Surroundings;
use super::words::{Word, words};
use super::{dates, inheritance, temporal};

/// A scope, and a question of it.
pub(super) struct Rules<'a> {
    pub(super) recall: &'a Recall,
    pub(super) views: &'a [View<'a>],
    /// Slots of all views.
    pub(super) places: usize,
    pub(super) text: &'a str,
    /// The text by its words: without names where they are left to the rule about speakers.
    pub(super) words: &'a str,
    /// Those who speak in the scope.
    pub(super) speakers: &'a FxHashSet<&'a str>,
    pub(super) weights: &'a Weights,
}

impl Rules<'_> {
    /// Adds the rules that have a weight to a sheet that holds what words and vectors say.
    pub(super) fn add_to(&self, sheet: &mut Sheet) {
        if self.weights.have_no_rules() {
            return;
        }
        let lower = self.text.to_lowercase();
        let question = words(&lower);
        let sessions = self
            .weights
            .need_sessions()
            .then(|| Sessions::of(self.views, self.places));
        if let Some(sessions) = &sessions {
            self.add_inherited(sheet, sessions);
        }
        self.add_speakers(sheet, &question);
        self.add_times(sheet, &question);
        self.add_dates(sheet, &question);
        if let Some(sessions) = &sessions {
            self.add_surroundings(sheet, sessions);
        }
    }

    /// Adds what is said around a message: the passage first, then what all before give to the session and nearby.
    fn add_surroundings(&self, sheet: &mut Sheet, sessions: &Sessions) {
        let weights = self.weights;
        let around = (weights.passage != 0.0 || weights.nearby != 0.0)
            .then(|| Surroundings::of(self.views, sessions, self.places));
        if let Some(around) = around.as_ref().filter(|_| weights.passage != 0.0) {
            let mut values = self.recall.buffers.take(self.places, 0.0);
            around.write_passages(self.recall, self.words, &mut values);
            sheet.add(Column::new("passage", weights.passage, values));
        }
        let mut columns = Vec::new();
        if weights.session != 0.0 {
            let mut values = self.absent();
            sessions.best(self.views, sheet.totals(), &mut values);
            columns.push(Column::new("session", weights.session, values));
        }
        if let Some(around) = around.filter(|_| weights.nearby != 0.0) {
            let mut values = self.absent();
            around.write_nearby(sheet.totals(), &mut values);
            columns.push(Column::new("nearby", weights.nearby, values));
        }
        columns.into_iter().for_each(|column| sheet.add(column));
    }

    fn add_inherited(&self, sheet: &mut Sheet, sessions: &Sessions) {
        let mut columns = Vec::new();
        if self.weights.answer != 0.0 {
            let mut values = self.absent();
            inheritance::answers(self.views, sessions, sheet.totals(), &mut values);
            columns.push(Column::new("answer", self.weights.answer, values));
        }
        if self.weights.next != 0.0 {
            let mut values = self.absent();
            inheritance::nexts(self.views, sessions, sheet.totals(), &mut values);
            columns.push(Column::new("next", self.weights.next, values));
        }
        columns.into_iter().for_each(|column| sheet.add(column));
    }

    fn add_speakers(&self, sheet: &mut Sheet, question: &[Word<'_>]) {
        if self.weights.speaker == 0.0 {
            return;
        }
        let asked = Asked::of(question, self.speakers);
        if matches!(asked, Asked::Anybody) {
            return;
        }
        let mut values = self.absent();
        for view in self.views {
            asked.each_slot(view, |slot| values[view.base + slot as usize] = 1.0);
        }
        sheet.add(Column::new("speaker", self.weights.speaker, values));
    }

    fn add_times(&self, sheet: &mut Sheet, question: &[Word<'_>]) {
        if self.weights.temporal == 0.0 || !temporal::asks_when(question) {
            return;
        }
        let mut values = self.absent();
        for view in self.views {
            for &(_, slot) in view.content.order() {
                if view.content.traits(slot).signs.timed {
                    values[view.base + slot as usize] = 1.0;
                }
            }
        }
        sheet.add(Column::new("temporal", self.weights.temporal, values));
    }

    fn add_dates(&self, sheet: &mut Sheet, question: &[Word<'_>]) {
        if self.weights.date == 0.0 {
            return;
        }
        let dates = dates::named_dates(question);
        if dates.is_empty() {
            return;
        }
        let mut values = self.absent();
        for view in self.views {
            for &(_, slot) in view.content.order() {
                let closeness = dates::closeness(&dates, view.content.traits(slot).time);
                if closeness > 0.0 {
                    values[view.base + slot as usize] = closeness;
                }
            }
        }
        sheet.add(Column::new("date", self.weights.date, values));
    }

    fn absent(&self) -> Vec<f32> {
        self.recall.buffers.take(self.places, ABSENT)
    }
}
