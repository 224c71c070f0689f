//! Component `session`: the best score around the message in its session. And what a session is.
//!
//! Messages with the same session id are one session. Where messages have none, a sitting is one: a run of messages of
//! which no two neighbours were sent more than four hours apart, whatever day it is (which day it is depends on where one
//! is).

use remora_kernels::prefetch;

use super::content::{Content, Traits};
use super::scope::View;
use super::symbols::Symbol;

/// The longest pause within a sitting, microseconds.
const PAUSE: i64 = 4 * 3_600_000_000;

/// Messages of a session, before and after one, among which the best counts for it: a conversation that nothing divides is
/// about many things.
const REACH: usize = 16;

/// The session of a slot without a document.
const NONE: u32 = u32::MAX;

/// The sessions of the documents of one thread.
pub(super) struct Sessions {
    /// The number of the session of the document in each slot.
    numbers: Vec<u32>,
    count: usize,
    /// The slots of all documents, session by session and in order within.
    members: Vec<u32>,
    /// Where each session ends among the members.
    ends: Vec<u32>,
}

impl Sessions {
    pub(super) const SLOT_BYTES: usize = 2 * size_of::<u32>();

    pub(super) fn of(content: &Content) -> Self {
        let mut sessions = Self {
            numbers: vec![NONE; content.slots()],
            count: 0,
            members: Vec::new(),
            ends: Vec::new(),
        };
        sessions.number(content);
        sessions.gather(content);
        sessions
    }

    /// Whether the documents in two slots are of one session.
    pub(super) fn same(&self, left: u32, right: u32) -> bool {
        self.numbers[left as usize] == self.numbers[right as usize]
    }

    /// Asks for the memory that [`write_best`] reads.
    pub(super) fn prefetch(&self) {
        prefetch(&self.members);
    }

    /// The slots of each session's documents, in order.
    fn each(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.members[*start as usize..*end as usize])
    }

    /// Gathers the members of the sessions, once these are numbered.
    fn gather(&mut self, content: &Content) {
        let number = |slot: u32| self.numbers[slot as usize];
        let mut members: Vec<u32> = content.order().iter().map(|(_, slot)| *slot).collect();
        members.sort_by_key(|slot| number(*slot));
        let sessions = members.chunk_by(|left, right| number(*left) == number(*right));
        let lengths = sessions.map(|session| session.len() as u32);
        self.ends = lengths
            .scan(0, |end, length| {
                *end += length;
                Some(*end)
            })
            .collect();
        self.members = members;
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

/// Writes to each document the best score around it in its session.
pub(super) fn write_best(view: &View<'_>, scores: &[f64], values: &mut [f32]) {
    let (mut best, mut joined) = (Vec::new(), Vec::new());
    for members in view.content.layout().sessions.each() {
        let scores = members.iter().map(|slot| scores[*slot as usize] as f32);
        if members.len() <= REACH + 1 {
            let best = scores.fold(f32::NEG_INFINITY, greater);
            for slot in members {
                values[*slot as usize] = best;
            }
        } else {
            best_around(scores, &mut best, &mut joined);
            for (slot, best) in members.iter().zip(&best) {
                values[*slot as usize] = *best;
            }
        }
    }
}

/// Writes to `best` for each score the best of those up to [`REACH`] before and after it; `joined` is working memory.
/// The windows grow from 1 to their length by joining two of the length that they have, which overlap at the last.
fn best_around(scores: impl Iterator<Item = f32>, best: &mut Vec<f32>, joined: &mut Vec<f32>) {
    const LENGTH: usize = 2 * REACH + 1;
    let beyond = || std::iter::repeat_n(f32::NEG_INFINITY, REACH);
    best.clear();
    best.extend(beyond().chain(scores).chain(beyond()));
    let mut length = 1;
    while length < LENGTH {
        let step = length.min(LENGTH - length);
        let windows = best.iter().zip(&best[step..]);
        joined.clear();
        joined.extend(windows.map(|(left, right)| greater(*left, *right)));
        std::mem::swap(best, joined);
        length += step;
    }
}

/// The greater of two numbers, as one instruction; `f32::max` asks for NaN besides.
fn greater(left: f32, right: f32) -> f32 {
    if left < right { right } else { left }
}

/// Whether a message without session id goes on with the sitting of the message before.
fn is_one_sitting(before: Traits, after: Traits) -> bool {
    before.session.is_none() && after.time.abs_diff(before.time) <= PAUSE.unsigned_abs()
}
