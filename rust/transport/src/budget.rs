//! Bytes that peers make this process hold: counted, and refused beyond a bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bound on bytes.
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

    pub(super) fn is_spent(&self) -> bool {
        self.held() >= self.bound
    }
}

/// Bytes that are held, until this is dropped.
pub(super) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// None yet.
    pub(super) fn of(budget: &Arc<Budget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// Holds more; false, and unchanged, where the budget does not allow it.
    #[must_use]
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let before = self.budget.held.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.budget.bound {
            self.budget.held.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.bytes += bytes;
        true
    }

    /// Holds more, beyond the bound too.
    pub(super) fn force(&mut self, bytes: usize) {
        self.budget.held.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }

    /// Holds less.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.budget.held.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes -= bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
