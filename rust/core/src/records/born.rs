//! The conversations that began in this process, of which everything is in memory.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// How many are remembered; the oldest go first.
const BORN: usize = 100_000;

#[derive(Default)]
pub(super) struct Born(Mutex<BTreeSet<u64>>);

impl Born {
    pub(super) fn add(&self, uid: u64) {
        let mut uids = self.0.lock();
        uids.insert(uid);
        if uids.len() > BORN {
            uids.pop_first();
        }
    }

    /// Says that something of a conversation left memory.
    pub(super) fn forget(&self, uid: u64) {
        self.0.lock().remove(&uid);
    }

    pub(super) fn has(&self, uid: u64) -> bool {
        self.0.lock().contains(&uid)
    }
}
