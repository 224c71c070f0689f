//! One resident conversation: its incarnations under one lock, and what the eviction needs to know of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::Bounds;
use super::change::{Change, ChangeKind};
use super::head::Head;
use super::incarnation::Incarnation;
use super::messages::Messages;

/// A resident conversation holds all its messages' metadata, or knows that it is not there.
pub(super) struct Conversation {
    state: Mutex<State>,
    /// The last revision that touched it; set under the lock of its shard.
    pub(super) touched: AtomicU64,
    /// When it was last used, in ticks.
    pub(super) used: AtomicU64,
    /// An estimate of the memory held, as it was last measured.
    pub(super) bytes: AtomicUsize,
    /// How many messages it held when it was last measured.
    pub(super) messages: AtomicUsize,
}

/// Incarnations in order; all but the last are deleted. None: the conversation is not there.
#[derive(Default)]
pub(super) struct State {
    incarnations: Vec<Incarnation>,
}

impl Conversation {
    /// Nothing is there yet, and nothing is counted.
    pub(super) fn new(touched: u64) -> Self {
        Self {
            state: Mutex::default(),
            touched: AtomicU64::new(touched),
            used: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
            messages: AtomicUsize::new(0),
        }
    }

    /// The state, to be read.
    pub(super) fn read(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Changes the state; returns how the memory held has changed.
    pub(super) fn change(&self, change: impl FnOnce(&mut State)) -> isize {
        let mut state = self.state.lock();
        change(&mut state);
        self.measure(&state)
    }

    fn measure(&self, state: &State) -> isize {
        let bytes = size_of::<Self>() + state.bytes();
        self.messages.store(state.len(), Ordering::Relaxed);
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        bytes as isize - before as isize
    }
}

impl State {
    pub(super) fn load(&mut self, incarnation: Option<Incarnation>) {
        self.incarnations = incarnation.into_iter().collect();
    }

    /// Applies a change. One of an incarnation that is not the last has no effect.
    pub(super) fn apply(&mut self, change: &Change, revision: u64) {
        let current = self.incarnations.last_mut();
        match (&change.kind, current) {
            (_, Some(current)) if current.uid() == change.uid => current.apply(change, revision),
            (ChangeKind::Put(row), _) if change.uid == revision => {
                let head = Arc::new(Head::new(change.uid, row, revision));
                let created = Incarnation::new(change.uid, revision, Some(head));
                self.incarnations.push(created);
            }
            _ => {}
        }
    }

    /// Drops heads that no reader sees any more, so that a state in use stays small between two calls of `settle`.
    pub(super) fn forget_heads(&mut self, published: u64) {
        if let Some(current) = self.incarnations.last_mut() {
            current.forget_heads(published);
        }
    }

    /// The head and the messages that a writer builds on.
    pub(super) fn accepted(&self) -> Option<(&Arc<Head>, &Messages)> {
        let current = self.incarnations.last()?;
        Some((current.head()?, &current.messages))
    }

    /// The head and the messages that a reader sees.
    pub(super) fn visible(&self, published: u64) -> Option<(&Arc<Head>, &Messages)> {
        let mut newest_first = self.incarnations.iter().rev();
        let (head, incarnation) = newest_first
            .find_map(|incarnation| Some((incarnation.head_at(published)?, incarnation)))?;
        Some((head?, &incarnation.messages))
    }

    /// Drops what no reader sees any more, and what the database has by now.
    pub(super) fn settle(&mut self, applied: u64, published: u64, bounds: &Bounds) {
        let visible = |incarnation: &Incarnation| incarnation.head_at(published).is_some();
        if let Some(current) = self.incarnations.iter().rposition(visible) {
            self.incarnations.drain(..current);
        }
        for incarnation in &mut self.incarnations {
            incarnation.settle(applied, published, bounds);
        }
    }

    fn len(&self) -> usize {
        self.incarnations.iter().map(|i| i.messages.len()).sum()
    }

    fn bytes(&self) -> usize {
        self.incarnations.iter().map(Incarnation::bytes).sum()
    }
}
