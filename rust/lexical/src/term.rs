//! Terms as 64-bit hashes, the same in every process and on every platform.

use std::hash::{BuildHasherDefault, Hasher};

/// A term's hash: FNV-1a (64 bits) over its UTF-8 bytes, finished by MurmurHash3's `fmix64`, which spreads the bits
/// evenly enough for a table to use the value as it stands.
///
/// Two terms of one vocabulary of a million words meet by chance once in 37 million such vocabularies. A forged
/// collision can only confuse the two words that were forged, in the partition that holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl Term {
    /// The term of a word that has already been folded and stemmed.
    pub fn of(word: &str) -> Self {
        Self(finish(word.bytes().fold(FNV_OFFSET, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
        })))
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn finish(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Builds the hasher of tables keyed by [`Term`], which is already a hash.
pub(super) type TermHasher = BuildHasherDefault<Identity>;

/// Passes one `u64` through; used for [`Term`] only.
#[derive(Default)]
pub(super) struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 << 8) | u64::from(byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
