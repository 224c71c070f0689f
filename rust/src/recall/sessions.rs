//! Component `session`: the best score in the message's session. And what a session is.
//!
//! Messages with the same session id are one session. Where messages have none, a sitting is one: a run of messages of
//! which no two neighbours were sent more than four hours apart, whatever day it is (which day it is depends on where one
//! is).

use super::content::{Content, Traits};
use super::scope::View;
use super::symbols::Symbol;

/// The longest pause within a sitting, microseconds.
const PAUSE: i64 = 4 * 3_600_000_000;

/// The sessions of all documents of a scope.
pub(super) struct Sessions {
    /// The number of the session of the document at each place.
    numbers: Vec<u32>,
    count: usize,
}

impl Sessions {
    pub(super) fn of(views: &[View<'_>], places: usize) -> Self {
        let mut sessions = Self {
            numbers: vec![0; places],
            count: 0,
        };
        for view in views {
            sessions.number(&view.content, view.base);
        }
        sessions
    }

    /// Whether the documents at two places are of one session.
    pub(super) fn same(&self, left: usize, right: usize) -> bool {
        self.numbers[left] == self.numbers[right]
    }

    /// The best of the totals in the session of each document; `values` has a place for each.
    pub(super) fn best(&self, views: &[View<'_>], totals: &[f64], values: &mut [f32]) {
        let mut best = vec![f64::NEG_INFINITY; self.count];
        let each = || views.iter().flat_map(View::places);
        for place in each() {
            let best = &mut best[self.numbers[place] as usize];
            *best = best.max(totals[place]);
        }
        for place in each() {
            values[place] = best[self.numbers[place] as usize] as f32;
        }
    }

    fn number(&mut self, content: &Content, base: usize) {
        let mut of_ids = vec![None; content.session_symbols()];
        let mut before: Option<Traits> = None;
        let mut sitting = 0;
        for &(_, slot) in content.order() {
            let traits = content.traits(slot);
            let number = match traits.session {
                Some(id) => self.number_of(&mut of_ids, id),
                None if before.is_some_and(|before| is_one_sitting(before, traits)) => sitting,
                None => {
                    sitting = self.next();
                    sitting
                }
            };
            self.numbers[base + slot as usize] = number;
            before = Some(traits);
        }
    }

    fn number_of(&mut self, of_ids: &mut [Option<u32>], id: Symbol) -> u32 {
        let known = of_ids[id as usize];
        let number = known.unwrap_or_else(|| self.next());
        of_ids[id as usize] = Some(number);
        number
    }

    fn next(&mut self) -> u32 {
        self.count += 1;
        (self.count - 1) as u32
    }
}

/// Whether a message without session id goes on with the sitting of the message before.
fn is_one_sitting(before: Traits, after: Traits) -> bool {
    before.session.is_none() && after.time.abs_diff(before.time) <= PAUSE.unsigned_abs()
}
