//! Whether a panic may have left half of a change in memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[derive(Default)]
pub(super) struct Torn(AtomicBool);

impl Torn {
    pub(super) fn is_so(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// To be held while something is changed.
    pub(super) fn where_panicking(&self) -> impl Drop + use<'_> {
        WherePanicking(self)
    }
}

struct WherePanicking<'a>(&'a Torn);

impl Drop for WherePanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.0.store(true, Ordering::Release);
        }
    }
}
