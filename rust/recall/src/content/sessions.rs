//! Sessions: messages with the same session id are one session. So is a run of messages without an id of which no two
//! neighbours were sent more than four hours apart, whatever day it is (which day it is depends on the time zone).

use remora_kernels::prefetch;

use super::traits::{Arrangement, Traits};
use crate::values::Symbol;

/// The longest pause within a session without an id, microseconds.
const PAUSE: i64 = 4 * 3_600_000_000;

/// The session of a slot without a document.
const NONE: u32 = u32::MAX;

/// The sessions of the documents of one part.
pub(crate) struct Sessions {
    /// The number of the session of the document in each slot.
    numbers: Vec<u32>,
    count: usize,
    /// The slots of all documents, session by session and in order within.
    members: Vec<u32>,
    /// Where each session ends among the members.
    ends: Vec<u32>,
}

impl Sessions {
    pub(crate) const SLOT_BYTES: usize = 2 * size_of::<u32>();

    pub(super) fn of(documents: Arrangement<'_>) -> Self {
        let mut sessions = Self {
            numbers: vec![NONE; documents.traits.len()],
            count: 0,
            members: Vec::new(),
            ends: Vec::new(),
        };
        sessions.number(documents);
        sessions.gather(documents);
        sessions
    }

    /// Whether the documents in two slots are of one session.
    pub(crate) fn same(&self, left: u32, right: u32) -> bool {
        self.numbers[left as usize] == self.numbers[right as usize]
    }

    /// Asks for the memory of all members.
    pub(crate) fn prefetch(&self) {
        prefetch(&self.members);
    }

    /// The slots of each session's documents, in order.
    pub(crate) fn each(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.members[*start as usize..*end as usize])
    }

    /// Gathers the members of the sessions, once these are numbered.
    fn gather(&mut self, documents: Arrangement<'_>) {
        let number = |slot: u32| self.numbers[slot as usize];
        let mut members: Vec<u32> = documents.order.iter().map(|(_, slot)| *slot).collect();
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

    fn number(&mut self, documents: Arrangement<'_>) {
        let mut of_ids = vec![None; documents.session_symbols];
        let mut before: Option<Traits> = None;
        let mut run = 0;
        for &(_, slot) in documents.order {
            let traits = documents.traits(slot);
            let number = match traits.session {
                Some(id) => self.number_of(&mut of_ids, id),
                None if before.is_some_and(|before| is_one_run(before, traits)) => run,
                None => {
                    run = self.next();
                    run
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

/// Whether a message without session id belongs to the session of the message before.
fn is_one_run(before: Traits, after: Traits) -> bool {
    before.session.is_none() && after.time.abs_diff(before.time) <= PAUSE.unsigned_abs()
}
