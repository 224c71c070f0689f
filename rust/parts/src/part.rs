//! One part in memory, with the changes that wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use remora_supervision::failpoints::{self, Point};

use crate::Cold;
use crate::inbox::{Change, Inbox};
use crate::name::Name;

/// What a part holds.
pub trait Content {
    type Change: Change;

    /// Takes in a change, also one that the database has.
    fn apply(&mut self, change: Self::Change);

    /// The memory held, in bytes.
    fn bytes(&self) -> usize;
}

pub(crate) struct Part<C: Content> {
    user: Box<str>,
    name_bytes: usize,
    state: RwLock<State<C>>,
    inbox: Mutex<Inbox<C::Change>>,
    /// Whether all of it is here: not before it is loaded, and not after a panic within a change.
    is_whole: AtomicBool,
    /// When it was last used, in ticks.
    used: AtomicU64,
    content_bytes: AtomicUsize,
    /// Whether a change came since it was settled.
    is_waiting: AtomicBool,
    /// What all parts hold, and this one's share of it.
    total: Arc<AtomicUsize>,
    counted: AtomicUsize,
}

struct State<C> {
    content: C,
    /// Up to which revision changes are taken in.
    revision: u64,
}

impl<C: Content> Part<C> {
    pub(crate) fn new(
        name: &Name<'_>,
        user: &str,
        content: C,
        used: u64,
        total: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            user: user.into(),
            name_bytes: name.tenant.len() + name.partition.len() + user.len(),
            state: RwLock::new(State {
                content,
                revision: 0,
            }),
            inbox: Mutex::default(),
            is_whole: AtomicBool::new(false),
            used: AtomicU64::new(used),
            content_bytes: AtomicUsize::new(0),
            is_waiting: AtomicBool::new(false),
            total,
            counted: AtomicUsize::new(0),
        }
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn use_at(&self, tick: u64) {
        self.used.fetch_max(tick, Ordering::Relaxed);
    }

    /// The memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let content = self.content_bytes.load(Ordering::Relaxed);
        size_of::<Self>() + self.name_bytes + content + self.inbox.lock().bytes()
    }

    /// Whether it is not all here.
    pub(crate) fn is_lost(&self) -> bool {
        !self.is_whole.load(Ordering::Acquire)
    }

    /// Takes in a change, of a revision or behind all that wait; whether it is the first since the part was settled.
    pub(crate) fn push(&self, revision: Option<u64>, change: C::Change) -> bool {
        let mut inbox = self.inbox.lock();
        match revision {
            Some(revision) => inbox.push(revision, change),
            None => inbox.push_behind(change),
        }
        !self.is_waiting.swap(true, Ordering::AcqRel)
    }

    /// Takes in what the database has.
    pub(crate) fn fill(&self, rows: impl Iterator<Item = C::Change>) {
        let mut state = self.state.write();
        for row in rows {
            state.content.apply(row);
            failpoints::hit(Point::PartsFilling);
        }
        self.count(&state);
    }

    pub(crate) fn finish(&self) {
        self.is_whole.store(true, Ordering::Release);
    }

    /// Reads what a revision that is published shows, or a later one, and says which.
    pub(crate) fn read<T>(
        &self,
        published: u64,
        read: impl FnOnce(&C) -> T,
    ) -> Result<(T, u64), Cold> {
        let state = self.drained(published);
        if self.is_lost() {
            return Err(Cold);
        }
        failpoints::hit(Point::PartsReading);
        Ok((read(&state.content), state.revision.max(published)))
    }

    /// Takes in what waits up to a revision, if all of the part is here.
    pub(crate) fn settle(&self, published: u64) {
        self.is_waiting.store(false, Ordering::Release);
        drop(self.drained(published));
        self.recount();
    }

    fn recount(&self) {
        let bytes = self.bytes();
        let before = self.counted.swap(bytes, Ordering::Relaxed);
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.total.fetch_sub(before, Ordering::Relaxed);
    }

    /// The state with what waits up to a revision, unless not all of the part is here.
    fn drained(&self, published: u64) -> RwLockReadGuard<'_, State<C>> {
        let state = self.state.read();
        if self.is_lost() || !self.inbox.lock().has_up_to(published) {
            return state;
        }
        drop(state);
        let mut state = self.state.write();
        if self.is_lost() {
            return RwLockWriteGuard::downgrade(state);
        }
        let changes = self.inbox.lock().take_up_to(published);
        self.is_whole.store(false, Ordering::Release);
        for change in changes {
            state.content.apply(change);
            failpoints::hit(Point::PartsDraining);
        }
        state.revision = state.revision.max(published);
        self.count(&state);
        self.is_whole.store(true, Ordering::Release);
        RwLockWriteGuard::downgrade(state)
    }

    fn count(&self, state: &State<C>) {
        let bytes = state.content.bytes();
        self.content_bytes.store(bytes, Ordering::Relaxed);
        self.recount();
    }
}

impl<C: Content> Drop for Part<C> {
    fn drop(&mut self) {
        self.total
            .fetch_sub(*self.counted.get_mut(), Ordering::Relaxed);
    }
}
