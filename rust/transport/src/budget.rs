//! Resources that this process holds for peers: counted, and refused beyond a bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bound on what all peers together hold of something: bytes, or calls.
pub(super) struct Budget {
    held: AtomicUsize,
    bound: usize,
}

impl Budget {
    pub(super) fn new(bound: usize) -> Arc<Self> {
        Arc::new(Self {
            held: AtomicUsize::new(0),
            bound,
        })
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// The part that no peer holds.
    pub(super) fn free(&self) -> usize {
        self.bound.saturating_sub(self.held())
    }
}

/// A peer's part of a budget. The peer gets more while it holds no more than is free. So whatever some peers hold, another
/// one gets a part of the rest (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
/// 1998, with a factor of 1).
pub(super) struct Portion {
    all: Arc<Budget>,
    held: AtomicUsize,
}

/// Why no more may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The peer holds as much as it may.
    OfPeer,
    /// All together hold as much as they may.
    OfAll,
}

impl Portion {
    pub(super) fn of(all: &Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            all: Arc::clone(all),
            held: AtomicUsize::new(0),
        })
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether the peer may hold this much more.
    pub(super) fn require(&self, amount: usize) -> Result<(), Full> {
        match self.all.free() {
            free if amount > free => Err(Full::OfAll),
            free if self.held() + amount > free => Err(Full::OfPeer),
            _ => Ok(()),
        }
    }

    /// Whether the peer holds less than an eighth of what is free.
    pub(super) fn is_small(&self) -> bool {
        self.held() < self.all.free() / 8
    }

    /// Counts more, also beyond the bounds.
    pub(super) fn add(&self, amount: usize) {
        self.held.fetch_add(amount, Ordering::Relaxed);
        self.all.held.fetch_add(amount, Ordering::Relaxed);
    }

    /// Counts less.
    pub(super) fn subtract(&self, amount: usize) {
        self.held.fetch_sub(amount, Ordering::Relaxed);
        self.all.held.fetch_sub(amount, Ordering::Relaxed);
    }
}

/// An amount of a peer's portion, held until this is dropped.
pub(super) struct Share {
    portion: Arc<Portion>,
    amount: usize,
}

impl Share {
    /// Nothing yet.
    pub(super) fn of(portion: &Arc<Portion>) -> Self {
        Self {
            portion: Arc::clone(portion),
            amount: 0,
        }
    }

    /// One unit.
    pub(super) fn one(portion: &Arc<Portion>) -> Result<Self, Full> {
        let mut share = Self::of(portion);
        share.grow(1)?;
        Ok(share)
    }

    /// Holds more, if it may. Threads that ask at the same time may exceed the bound by what they ask for.
    pub(super) fn grow(&mut self, amount: usize) -> Result<(), Full> {
        self.portion.require(amount)?;
        self.portion.add(amount);
        self.amount += amount;
        Ok(())
    }

    /// Holds less.
    pub(super) fn shrink(&mut self, amount: usize) {
        let amount = amount.min(self.amount);
        self.portion.subtract(amount);
        self.amount -= amount;
    }

    /// Holds the same amount of another portion.
    pub(super) fn transfer(&mut self, portion: &Arc<Portion>) {
        portion.add(self.amount);
        self.portion.subtract(self.amount);
        self.portion = Arc::clone(portion);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.portion.subtract(self.amount);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use super::*;

    /// What a peer gets that takes one after the other while it may.
    fn taken(portion: &Arc<Portion>) -> Vec<Share> {
        std::iter::from_fn(|| Share::one(portion).ok()).collect()
    }

    #[test]
    fn each_peer_leaves_something_for_the_next() {
        let all = Budget::new(100);
        let portions = [(); 4].map(|()| Portion::of(&all));

        let taken = portions.each_ref().map(taken);

        assert_eq!(taken.each_ref().map(Vec::len), [50, 25, 13, 6]);
        assert_eq!(all.free(), 6);
    }

    #[test]
    fn who_holds_too_much_because_others_came_gets_nothing_until_it_holds_less() {
        let all = Budget::new(100);
        let [first, second] = [(); 2].map(|()| Portion::of(&all));
        let mut of_first = taken(&first);
        let _of_second = taken(&second);
        assert_eq!(first.require(1), Err(Full::OfPeer));

        of_first.truncate(30);

        assert_eq!(first.require(1), Ok(()));
        assert_eq!(first.require(16), Err(Full::OfPeer));
        assert_eq!(first.require(46), Err(Full::OfAll));
    }

    #[test]
    fn what_is_dropped_is_free_again() {
        let all = Budget::new(100);
        let [first, second] = [(); 2].map(|()| Portion::of(&all));
        let mut share = Share::of(&first);
        share.grow(40).unwrap();
        share.shrink(10);
        share.transfer(&second);

        assert_eq!((first.held(), second.held(), all.held()), (0, 30, 30));
        drop(share);
        assert_eq!((second.held(), all.held()), (0, 0));
    }
}
