//! A share of all conversations: which are resident, which exist, and how fresh a load must be.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use remora_fingerprint::{AsIs, Fingerprint, FingerprintMap};
use remora_supervision::failpoints::{self, Point};

use super::change::Run;
use super::conversation::Conversation;
use crate::absences::Absences;

pub(super) struct Shard {
    pub(super) residents: FingerprintMap<Fingerprint, Arc<Conversation>>,
    /// Half of the fingerprint of every conversation that is stored; perhaps of some that were deleted.
    known: HashSet<u64, BuildHasherDefault<AsIs>>,
    absences: Absences,
}

impl Shard {
    /// A shard whose conversations were last changed at `revision` or before.
    pub(super) fn new(revision: u64) -> Self {
        Self {
            residents: FingerprintMap::default(),
            known: HashSet::default(),
            absences: Absences::new(revision),
        }
    }

    pub(super) fn know(&mut self, key: Fingerprint) {
        self.known.insert(key.half());
    }

    pub(super) fn may_exist(&self, key: Fingerprint) -> bool {
        self.known.contains(&key.half())
    }

    /// The conversation that a run changes, marked as touched. One that is created becomes resident.
    pub(super) fn touch(&mut self, run: &Run, revision: u64) -> Option<Arc<Conversation>> {
        if run.creates(revision) {
            self.know(run.key);
            self.residents
                .entry(run.key)
                .or_insert_with(|| Arc::new(Conversation::new(revision)));
        }
        let Some(conversation) = self.residents.get(&run.key) else {
            self.absences.note(run.key, revision);
            return None;
        };
        conversation.touched.store(revision, Ordering::Relaxed);
        Some(Arc::clone(conversation))
    }

    /// Makes a conversation resident as it was at `as_of`, unless it changed since; one that is resident stays as it is.
    pub(super) fn admit(
        &mut self,
        key: Fingerprint,
        as_of: u64,
        loaded: Arc<Conversation>,
    ) -> Admission {
        if self.residents.contains_key(&key) {
            return Admission::Resident;
        }
        if as_of < self.absences.needed(key) {
            return Admission::Stale;
        }
        self.residents.insert(key, loaded);
        Admission::Admitted
    }

    /// Drops a conversation that was not used since and that the database has; returns the memory freed.
    pub(super) fn evict(&mut self, key: Fingerprint, used: u64, applied: u64) -> usize {
        let Some(conversation) = self.residents.get(&key) else {
            return 0;
        };
        let touched = conversation.touched.load(Ordering::Relaxed);
        if touched > applied || conversation.used.load(Ordering::Relaxed) != used {
            return 0;
        }
        let bytes = conversation.bytes.load(Ordering::Relaxed);
        self.residents.remove(&key);
        failpoints::hit(Point::WindowsEvicting);
        self.absences.note(key, touched);
        bytes
    }
}

/// What became of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Admitted,
    Resident,
    Stale,
}
