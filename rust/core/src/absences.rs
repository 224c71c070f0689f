//! How fresh a load must be: when what is not in memory last changed.

use remora_fingerprint::{Fingerprint, FingerprintMap};

/// Changes that are remembered one by one, for up to twice as many.
const ABSENCES: usize = 512;

/// When what is not resident last changed: what a load of it must have seen.
pub(crate) struct Absences {
    /// Every load must have seen this.
    floor: u64,
    young: FingerprintMap<Fingerprint, u64>,
    old: FingerprintMap<Fingerprint, u64>,
}

impl Absences {
    /// Nothing changed after `floor`.
    pub(crate) fn new(floor: u64) -> Self {
        Self {
            floor,
            young: FingerprintMap::default(),
            old: FingerprintMap::default(),
        }
    }

    /// Says that something that is not resident changed.
    pub(crate) fn note(&mut self, key: Fingerprint, revision: u64) {
        let noted = self.young.entry(key).or_default();
        *noted = revision.max(*noted);
        if self.young.len() >= ABSENCES {
            let forgotten = self.old.values().copied().max().unwrap_or(0);
            self.floor = self.floor.max(forgotten);
            self.old = std::mem::take(&mut self.young);
        }
    }

    /// The revision that a load must have seen.
    pub(crate) fn needed(&self, key: Fingerprint) -> u64 {
        let noted = [&self.young, &self.old].map(|map| map.get(&key).copied().unwrap_or(0));
        self.floor.max(noted[0]).max(noted[1])
    }
}
