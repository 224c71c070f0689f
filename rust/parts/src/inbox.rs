//! Changes that wait for a part: accepted in order, taken in when a reader comes.

use std::collections::VecDeque;

/// A change of a part.
pub trait Change {
    /// What it holds beside itself while it waits, in bytes.
    fn heap_bytes(&self) -> usize;
}

/// Changes with their revisions, in order.
#[derive(Debug)]
pub(crate) struct Inbox<C> {
    changes: VecDeque<(u64, C)>,
    bytes: usize,
}

impl<C> Default for Inbox<C> {
    fn default() -> Self {
        Self {
            changes: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<C: Change> Inbox<C> {
    /// Adds a change whose revision is at least that of the last.
    pub(crate) fn push(&mut self, revision: u64, change: C) {
        self.bytes += held(&change);
        self.changes.push_back((revision, change));
    }

    /// Adds a change that has no revision: it follows all that wait.
    pub(crate) fn push_behind(&mut self, change: C) {
        let last = self.changes.back().map_or(0, |(revision, _)| *revision);
        self.push(last, change);
    }

    /// Whether changes up to a revision wait.
    pub(crate) fn has_up_to(&self, revision: u64) -> bool {
        self.changes
            .front()
            .is_some_and(|(first, _)| *first <= revision)
    }

    /// Takes the changes up to a revision.
    pub(crate) fn take_up_to(&mut self, revision: u64) -> Vec<C> {
        let count = self
            .changes
            .partition_point(|(other, _)| *other <= revision);
        let taken: Vec<_> = self.changes.drain(..count).map(|(_, each)| each).collect();
        self.bytes -= taken.iter().map(held).sum::<usize>();
        taken
    }

    /// The memory that the changes hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn held<C: Change>(change: &C) -> usize {
    size_of::<(u64, C)>() + change.heap_bytes()
}
