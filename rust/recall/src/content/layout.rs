//! How the documents of one part stand to each other, whatever is asked.

use super::sessions::Sessions;
use super::surroundings::Surroundings;
use super::traits::Arrangement;

/// What the rules need to know of a part besides its documents, by slot.
pub(crate) struct Layout {
    pub(crate) sessions: Sessions,
    pub(crate) surroundings: Surroundings,
}

impl Layout {
    /// What a slot costs, in bytes.
    pub(crate) const SLOT_BYTES: usize = Sessions::SLOT_BYTES + Surroundings::SLOT_BYTES;

    pub(super) fn of(documents: Arrangement<'_>) -> Self {
        let sessions = Sessions::of(documents);
        let surroundings = Surroundings::of(documents, &sessions);
        Self {
            sessions,
            surroundings,
        }
    }

    /// Asks for the memory that rules read of every document.
    pub(crate) fn prefetch(&self) {
        self.sessions.prefetch();
        self.surroundings.prefetch();
    }
}
