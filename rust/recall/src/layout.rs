//! How the documents of one thread stand to each other, whatever is asked.

use super::content::Content;
use super::sessions::Sessions;
use super::surroundings::Surroundings;

/// What the rules need to know of a thread besides its documents, by slot.
pub(super) struct Layout {
    pub(super) sessions: Sessions,
    pub(super) surroundings: Surroundings,
}

impl Layout {
    /// What a slot costs, in bytes.
    pub(super) const SLOT_BYTES: usize = Sessions::SLOT_BYTES + Surroundings::SLOT_BYTES;

    pub(super) fn of(content: &Content) -> Self {
        let sessions = Sessions::of(content);
        let surroundings = Surroundings::of(content, &sessions);
        Self {
            sessions,
            surroundings,
        }
    }

    /// Asks for the memory that rules read of every document.
    pub(super) fn prefetch(&self) {
        self.sessions.prefetch();
        self.surroundings.prefetch();
    }
}
