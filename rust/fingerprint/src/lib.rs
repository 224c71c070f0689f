//! Keyed 128-bit fingerprints that stand for names in memory.
//!
//! Two names share a fingerprint with a probability of 2^-128. Nobody can search for such a pair, because the keys are drawn
//! when the process starts. A fingerprint therefore has no meaning outside the process.
//!
//! Knows no other crate.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};

/// A pair of SipHash functions with keys of their own.
#[derive(Default)]
pub struct Fingerprints {
    high: RandomState,
    low: RandomState,
}

/// Stands for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u64; 2]);

impl Fingerprints {
    /// The fingerprint of a sequence of names: `["a", "b"]` and `["ab", ""]` differ.
    pub fn of(&self, names: [&str; 2]) -> Fingerprint {
        self.of_parts(names)
    }

    /// The fingerprint of a name of several parts.
    pub fn of_parts(&self, parts: impl Hash + Copy) -> Fingerprint {
        Fingerprint([self.high.hash_one(parts), self.low.hash_one(parts)])
    }
}

impl Fingerprint {
    /// Half of it, where the room is worth more than the certainty.
    pub fn half(self) -> u64 {
        self.0[0]
    }
}

impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.half());
    }
}

/// A map whose keys are hashes already.
pub type FingerprintMap<K, V> = HashMap<K, V, BuildHasherDefault<AsIs>>;

/// Takes a 64-bit hash for what it is.
#[derive(Default)]
pub struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_by_where_they_end() {
        let fingerprints = Fingerprints::default();
        assert_ne!(fingerprints.of(["a", "b"]), fingerprints.of(["ab", ""]));
        assert_ne!(fingerprints.of(["a", "b"]), fingerprints.of(["b", "a"]));
        assert_eq!(fingerprints.of(["a", "b"]), fingerprints.of(["a", "b"]));
    }
}
