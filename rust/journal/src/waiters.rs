//! Threads that wait for a revision to be published. A publication wakes only the threads whose revision it reaches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use remora_supervision::caught;
use remora_supervision::failpoints::{self, Point};

use super::JournalError;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The revision is published.
    Published,
    /// The time ran out first.
    TimedOut,
}

/// The last published revision, and who waits for a later one.
pub(super) struct Waiters {
    published: AtomicU64,
    waiting: Mutex<Waiting>,
    follower: OnceLock<Follower>,
}

/// Called after each change of what is published, and at the end.
type Follower = Arc<dyn Fn() + Send + Sync>;

/// The revision waited for, and the order of arrival.
type Ticket = (u64, u64);

#[derive(Default)]
struct Waiting {
    threads: BTreeMap<Ticket, Arc<Parked>>,
    arrivals: u64,
    /// Why nothing will be published any more.
    ended: Option<JournalError>,
}

struct Parked {
    thread: Thread,
    woken: AtomicBool,
}

impl Waiters {
    pub(super) fn new(published: u64) -> Self {
        Self {
            published: AtomicU64::new(published),
            waiting: Mutex::default(),
            follower: OnceLock::new(),
        }
    }

    pub(super) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Publishes every revision up to `revision` and wakes the threads that wait for one of them.
    pub(super) fn publish(&self, revision: u64) {
        self.published.store(revision, Ordering::Release);
        let mut waiting = self.waiting.lock();
        let later = waiting.threads.split_off(&(revision + 1, 0));
        let completed = std::mem::replace(&mut waiting.threads, later);
        drop(waiting);
        wake(completed);
        self.tell();
    }

    /// Has `changed` called from now on; false if another follows already.
    pub(super) fn follow(&self, changed: Follower) -> bool {
        self.follower.set(changed).is_ok()
    }

    /// A follower that panics follows on: nothing of the journal is half done by it.
    fn tell(&self) {
        if let Some(changed) = self.follower.get() {
            let _ = caught(|| {
                failpoints::hit(Point::PublicationFollowed);
                changed();
            });
        }
    }

    /// Ends every wait, now and later, for a revision that was not published. The first reason stays.
    pub(super) fn end(&self, reason: JournalError) {
        let mut waiting = self.waiting.lock();
        waiting.ended.get_or_insert(reason);
        let threads = std::mem::take(&mut waiting.threads);
        drop(waiting);
        wake(threads);
        self.tell();
    }

    pub(super) fn ended(&self) -> Option<JournalError> {
        self.waiting.lock().ended.clone()
    }

    /// Waits until `revision` is published, the time runs out or the journal ends.
    pub(super) fn wait(
        &self,
        revision: u64,
        timeout: Option<Duration>,
    ) -> Result<Waited, JournalError> {
        if self.published() >= revision {
            return Ok(Waited::Published);
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let Some((ticket, parked)) = self.enter(revision)? else {
            return Ok(Waited::Published);
        };
        if !parked.park_until(deadline) {
            self.waiting.lock().threads.remove(&ticket);
        }
        self.outcome(revision)
    }

    /// Queues the calling thread, unless the revision was published meanwhile.
    fn enter(&self, revision: u64) -> Result<Option<(Ticket, Arc<Parked>)>, JournalError> {
        let mut waiting = self.waiting.lock();
        if self.published() >= revision {
            return Ok(None);
        }
        if let Some(reason) = &waiting.ended {
            return Err(reason.clone());
        }
        let parked = Arc::new(Parked {
            thread: thread::current(),
            woken: AtomicBool::new(false),
        });
        let ticket = (revision, waiting.arrivals);
        waiting.arrivals += 1;
        waiting.threads.insert(ticket, Arc::clone(&parked));
        Ok(Some((ticket, parked)))
    }

    fn outcome(&self, revision: u64) -> Result<Waited, JournalError> {
        if self.published() >= revision {
            return Ok(Waited::Published);
        }
        self.ended().map_or(Ok(Waited::TimedOut), Err)
    }
}

impl Parked {
    /// Parks the calling thread; false when the deadline passed before it was woken.
    fn park_until(&self, deadline: Option<Instant>) -> bool {
        while !self.woken.load(Ordering::Acquire) {
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(Duration::ZERO) => return false,
                Some(left) => thread::park_timeout(left),
            }
        }
        true
    }
}

fn wake(threads: BTreeMap<Ticket, Arc<Parked>>) {
    for parked in threads.into_values() {
        parked.woken.store(true, Ordering::Release);
        parked.thread.unpark();
    }
}
