//! Deliberate mistakes in reading a journal. Tests use them to prove that the tests of damage would find such mistakes.
//! Outside of tests they do not exist.

/// A check that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    HeaderChecksum,
    BodyChecksum,
    SegmentOrder,
    StoreId,
    LaterBatch,
    Reach,
    CutReport,
}

#[cfg(test)]
pub(super) use planted::{is_planted, plant};

#[cfg(not(test))]
#[inline(always)]
pub(super) fn is_planted(_fault: Fault) -> bool {
    false
}

#[cfg(test)]
mod planted {
    use std::cell::Cell;

    use super::Fault;

    thread_local! {
        static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Lets this thread make the mistake until it is told otherwise.
    pub(crate) fn plant(fault: Option<Fault>) {
        PLANTED.set(fault);
    }

    pub(crate) fn is_planted(fault: Fault) -> bool {
        PLANTED.get() == Some(fault)
    }
}
