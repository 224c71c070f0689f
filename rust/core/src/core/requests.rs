//! Request ids: which requests were committed, so that a repeat is recognised.
//!
//! Ids are kept for an hour, and up to a bound; the oldest are dropped first. The hour is measured by a clock that nobody
//! sets. Ids of the time before the start are loaded separately, and become known all at once. Until then, the caller must
//! ask the database for an id that is not found.

use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasherDefault;
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard};
use remora_fingerprint::{AsIs, Fingerprint, FingerprintMap};

/// One hour in microseconds.
const KEPT: i64 = 3_600_000_000;

/// One attempt of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Of tenant and request id.
    pub(super) key: Fingerprint,
    /// A digest of method and payload.
    pub(super) fingerprint: [u8; 16],
    /// When it came, in microseconds of a clock that never goes back.
    pub(super) time: i64,
}

/// A request that was committed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The revision of its record.
    pub revision: u64,
    /// Whether its method and payload are the same.
    pub is_same: bool,
}

/// The requests that were committed lately.
pub(super) struct Requests {
    state: Mutex<State>,
    /// What is loaded so far of the time before the start. Writers do not wait for this lock.
    loading: Mutex<Table>,
    /// An attempt came to its end.
    ended: Condvar,
    bound: usize,
}

#[derive(Default)]
struct State {
    /// What was committed before the start; `None` until all of that is loaded.
    before: Option<Table>,
    since: Table,
    /// Requests whose record is on its way to the journal.
    reserved: HashSet<Fingerprint, BuildHasherDefault<AsIs>>,
}

/// Requests by their keys.
#[derive(Default)]
struct Table {
    committed: FingerprintMap<Fingerprint, Entry>,
    /// In the order of revisions; one whose revision is not that of the entry was overwritten.
    ages: VecDeque<Age>,
}

struct Entry {
    revision: u64,
    time: i64,
    fingerprint: [u8; 16],
}

struct Age {
    key: Fingerprint,
    revision: u64,
    time: i64,
}

/// What may be done with a request.
pub(super) enum Claim<'a> {
    /// It is new, and nobody else can claim it until this is dropped.
    Reserved(Reservation<'a>),
    Known(Known),
    /// Another attempt was under way until the deadline.
    TimedOut,
}

/// A request on its way to the journal.
pub(super) struct Reservation<'a> {
    requests: &'a Requests,
    key: Fingerprint,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.requests.state.lock().reserved.remove(&self.key);
        self.requests.ended.notify_all();
    }
}

impl Requests {
    pub(super) fn new(bound: usize) -> Self {
        Self {
            state: Mutex::default(),
            loading: Mutex::default(),
            ended: Condvar::new(),
            bound,
        }
    }

    /// The first commit of a request; an id that is older than an hour when the next is remembered is forgotten.
    pub(super) fn find(&self, key: Fingerprint, fingerprint: [u8; 16]) -> Option<Known> {
        let state = self.state.lock();
        Some(state.entry(&key)?.known(fingerprint))
    }

    /// The revision of the oldest request that is remembered; `None` if that is not known, too.
    pub(super) fn oldest(&self) -> Option<u64> {
        let state = self.state.lock();
        state.before.as_ref()?.oldest().or(state.since.oldest())
    }

    /// Takes in a request of the time before the start, in the order of revisions.
    pub(super) fn load(&self, request: &Request, revision: u64) {
        self.loading.lock().insert(request, revision);
    }

    /// Everything of the time before the start is loaded.
    pub(super) fn end_load(&self) {
        let loaded = std::mem::take(&mut *self.loading.lock());
        self.state.lock().before.get_or_insert(loaded);
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.state.lock().before.is_some()
    }

    /// Reserves a request that was not committed, waiting for other attempts of it.
    pub(super) fn claim(&self, request: &Request, deadline: Option<Instant>) -> Claim<'_> {
        let mut state = self.state.lock();
        loop {
            if let Some(known) = state.find(request) {
                return Claim::Known(known);
            }
            if state.reserved.insert(request.key) {
                return Claim::Reserved(Reservation {
                    requests: self,
                    key: request.key,
                });
            }
            if !self.wait(&mut state, deadline) {
                return Claim::TimedOut;
            }
        }
    }

    /// Waits for the end of an attempt; false when the deadline has passed.
    fn wait(&self, state: &mut MutexGuard<'_, State>, deadline: Option<Instant>) -> bool {
        match deadline {
            None => self.ended.wait(state),
            Some(deadline) => return !self.ended.wait_until(state, deadline).timed_out(),
        }
        true
    }

    /// Remembers that a request was committed, in the order of revisions.
    pub(super) fn remember(&self, request: &Request, revision: u64) {
        let mut state = self.state.lock();
        state.since.insert(request, revision);
        state.expire(request.time.saturating_sub(KEPT), self.bound);
    }
}

impl State {
    fn find(&self, request: &Request) -> Option<Known> {
        let entry = self.entry(&request.key)?;
        let is_kept = request.time.saturating_sub(entry.time) <= KEPT;
        is_kept.then(|| entry.known(request.fingerprint))
    }

    fn entry(&self, key: &Fingerprint) -> Option<&Entry> {
        let before = || self.before.as_ref()?.committed.get(key);
        self.since.committed.get(key).or_else(before)
    }

    /// Forgets what is older than `oldest`, and the oldest beyond the bound.
    fn expire(&mut self, oldest: i64, bound: usize) {
        let mut room = bound;
        if let Some(before) = &mut self.before {
            before.expire(oldest, bound.saturating_sub(self.since.ages.len()));
            room -= before.ages.len();
        }
        self.since.expire(oldest, room);
    }
}

impl Table {
    fn oldest(&self) -> Option<u64> {
        Some(self.ages.front()?.revision)
    }

    fn insert(&mut self, request: &Request, revision: u64) {
        let Request {
            key,
            fingerprint,
            time,
        } = *request;
        let entry = Entry {
            revision,
            time,
            fingerprint,
        };
        self.committed.insert(key, entry);
        self.ages.push_back(Age {
            key,
            revision,
            time,
        });
    }

    /// Forgets what is older than `oldest`, and the oldest beyond the bound.
    fn expire(&mut self, oldest: i64, bound: usize) {
        while let Some(age) = self.ages.front()
            && (age.time < oldest || self.ages.len() > bound)
        {
            let entry = self.committed.get(&age.key);
            if entry.is_some_and(|entry| entry.revision == age.revision) {
                self.committed.remove(&age.key);
            }
            self.ages.pop_front();
        }
    }
}

impl Entry {
    fn known(&self, fingerprint: [u8; 16]) -> Known {
        Known {
            revision: self.revision,
            is_same: self.fingerprint == fingerprint,
        }
    }
}
