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

/// The session of a slot without a document.
const NONE: u32 = u32::MAX;

/// The sessions of the documents of one thread.
pub(super) struct Sessions {
    /// The number of the session of the document in each slot.
    numbers: Vec<u32>,
    count: usize,
}

impl Sessions {
    pub(super) const SLOT_BYTES: usize = size_of::<u32>();

    pub(super) fn of(content: &Content) -> Self {
        let mut sessions = Self {
            numbers: vec![NONE; content.slots()],
            count: 0,
        };
        sessions.number(content);
        sessions
    }

    /// Whether the documents in two slots are of one session.
    pub(super) fn same(&self, left: u32, right: u32) -> bool {
        self.numbers[left as usize] == self.numbers[right as usize]
    }

    /// The documents' slots with the numbers of their sessions.
    fn documents(&self) -> impl Iterator<Item = (usize, usize)> {
        let numbers = self.numbers.iter().enumerate();
        numbers
            .filter(|(_, number)| **number != NONE)
            .map(|(slot, number)| (slot, *number as usize))
    }

    fn number(&mut self, content: &Content) {
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
            self.numbers[slot as usize] = number;
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

/// Writes to each document the best score in its session.
pub(super) fn write_best(view: &View<'_>, scores: &[f64], values: &mut [f32]) {
    let sessions = &view.content.layout().sessions;
    let mut best = vec![f64::NEG_INFINITY; sessions.count];
    for (slot, session) in sessions.documents() {
        best[session] = best[session].max(scores[slot]);
    }
    for (slot, session) in sessions.documents() {
        values[slot] = best[session] as f32;
    }
}

/// Whether a message without session id goes on with the sitting of the message before.
fn is_one_sitting(before: Traits, after: Traits) -> bool {
    before.session.is_none() && after.time.abs_diff(before.time) <= PAUSE.unsigned_abs()
}
