//! The memory of all parts, counted as they grow and shrink.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of one holder, which are part of a total until it is dropped.
#[derive(Debug)]
pub(crate) struct Account {
    own: AtomicUsize,
    total: Arc<AtomicUsize>,
}

impl Account {
    pub(crate) fn new(total: Arc<AtomicUsize>, bytes: usize) -> Self {
        let account = Self {
            own: AtomicUsize::new(0),
            total,
        };
        account.add(bytes);
        account
    }

    pub(crate) fn bytes(&self) -> usize {
        self.own.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.own.fetch_add(bytes, Ordering::Relaxed);
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, bytes: usize) {
        self.own.fetch_sub(bytes, Ordering::Relaxed);
        self.total.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.total.fetch_sub(*self.own.get_mut(), Ordering::Relaxed);
    }
}
