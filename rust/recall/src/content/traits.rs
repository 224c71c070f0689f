//! What filters and rules ask of every document.

use crate::text::signs::Signs;
use crate::values::Symbol;

/// What filters and rules ask of every document of a scope: small, and side by side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traits {
    /// When it was sent, microseconds since 1970.
    pub(crate) time: i64,
    pub(crate) speaker: Symbol,
    /// Its session id; `None` if it has none.
    pub(crate) session: Option<Symbol>,
    pub(crate) by_user: bool,
    pub(crate) has_text: bool,
    /// How long its text is, in terms.
    pub(crate) length: u32,
    pub(crate) signs: Signs,
}

impl Traits {
    /// Of a slot that was not filled yet.
    pub(super) const NONE: Self = Self {
        time: 0,
        speaker: 0,
        session: None,
        by_user: false,
        has_text: false,
        length: 0,
        signs: Signs::NONE,
    };
}

/// The documents of one part in their order.
#[derive(Clone, Copy)]
pub(super) struct Arrangement<'a> {
    /// The sequence and the slot of each document, by sequence.
    pub(super) order: &'a [(u64, u32)],
    /// Of each slot; what is in a free one means nothing.
    pub(super) traits: &'a [Traits],
    /// One more than the highest symbol of a session id.
    pub(super) session_symbols: usize,
}

impl Arrangement<'_> {
    /// Of the document in a slot.
    pub(super) fn traits(&self, slot: u32) -> Traits {
        self.traits[slot as usize]
    }
}
