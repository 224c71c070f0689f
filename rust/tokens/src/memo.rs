//! The counts of short pieces seen before. Most pieces of a text are short and come again, and looking them up here
//! touches one cache line, where the vocabulary takes several.

use std::sync::atomic::{AtomicU64, Ordering};

/// A power of two; 256 KiB together, which a core's second cache holds.
const SLOTS: usize = 1 << 15;

const LENGTH_BITS: u32 = 56;
const COUNT_BITS: u32 = 59;
const KEY: u64 = (1 << COUNT_BITS) - 1;

/// 2^64 over the golden ratio: Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// One slot for each hash. A slot holds the whole piece of at most 7 bytes, its length (3 bits) and its count (5 bits):
/// one word, so that threads share it without locks, and what is found is exact.
pub(super) struct Memo {
    slots: Box<[AtomicU64]>,
}

impl Memo {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The count of a piece: as remembered, or as `count` finds it.
    #[inline]
    pub(super) fn count(&self, piece: &[u8], count: impl FnOnce() -> usize) -> usize {
        let Some(key) = key(piece) else {
            return count();
        };
        let slot = &self.slots[(key.wrapping_mul(SPREAD) >> (64 - SLOTS.ilog2())) as usize];
        let held = slot.load(Ordering::Relaxed);
        if held & KEY == key {
            return (held >> COUNT_BITS) as usize;
        }
        let found = count();
        slot.store(key | (found as u64) << COUNT_BITS, Ordering::Relaxed);
        found
    }
}

/// A piece of 1 to 7 bytes with its length. Of 4 bytes and more the first and the last 4 are joined: where they overlap
/// they agree.
#[inline]
fn key(piece: &[u8]) -> Option<u64> {
    let length = piece.len();
    let bytes = match *piece {
        [] => return None,
        [first] => u64::from(first),
        [first, second] => u64::from(first) | u64::from(second) << 8,
        [first, second, third] => {
            u64::from(first) | u64::from(second) << 8 | u64::from(third) << 16
        }
        [..] if length < 8 => {
            let (head, tail) = (piece.first_chunk()?, piece.last_chunk()?);
            u64::from(u32::from_le_bytes(*head))
                | u64::from(u32::from_le_bytes(*tail)) << (8 * (length - 4))
        }
        [..] => return None,
    };
    Some(bytes | (length as u64) << LENGTH_BITS)
}
