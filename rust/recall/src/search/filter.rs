//! Which documents may be found, by roles, times and attributes.

use remora_filter::Expression;
use remora_wire::Between;

use crate::content::{Content, Document, Traits};
use crate::values::Symbol;

/// Which documents are candidates: all that is set must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// One of these roles; any where there is none.
    pub roles: Vec<String>,
    /// When the messages were sent.
    pub sent: Between,
    /// When the server first stored them.
    pub received: Between,
    /// What holds of their attributes.
    pub expression: Option<Expression>,
}

impl Filter {
    /// Whether every document passes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Of each slot whether it holds a document that passes.
    pub(crate) fn passing(&self, content: &Content) -> Vec<bool> {
        let roles = content.role_symbols(&self.roles);
        let mut passing = vec![false; content.slots()];
        for (slot, document) in content.documents() {
            passing[slot as usize] = self.passes(document, content.traits(slot), &roles);
        }
        passing
    }

    fn passes(&self, document: &Document, traits: Traits, roles: &[Symbol]) -> bool {
        (self.roles.is_empty() || roles.contains(&document.role))
            && self.sent.contains(traits.time)
            && self.received.contains(document.received)
            && self
                .expression
                .as_ref()
                .is_none_or(|expression| expression.holds(&|key| document.attribute(key)))
    }
}
