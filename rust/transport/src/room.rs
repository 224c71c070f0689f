//! A bound on how many of something exist at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what is there, up to a capacity.
pub(super) struct Room {
    taken: AtomicUsize,
    capacity: usize,
}

impl Room {
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            taken: AtomicUsize::new(0),
            capacity,
        })
    }

    /// A slot, if one is free.
    pub(super) fn take(self: &Arc<Self>) -> Option<Slot> {
        let room = Arc::clone(self);
        if room.taken.fetch_add(1, Ordering::Relaxed) >= room.capacity {
            room.taken.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Slot(room))
    }
}

/// A slot that is taken, until this is dropped.
pub(super) struct Slot(Arc<Room>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
