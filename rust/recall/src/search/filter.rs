//! Which documents may be found, by roles, times and attributes.

use std::cmp::Ordering;
use std::str::FromStr;

use remora_wire::Between;

use crate::content::{Content, Document, Traits};
use crate::values::{Scalar, Symbol};

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

/// What holds of a document's attributes.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// All of these hold; so do none.
    All(Vec<Expression>),
    /// One of these holds, or more; of none, none does.
    Any(Vec<Expression>),
    /// This does not hold.
    Not(Box<Expression>),
    /// The condition holds.
    Condition(Condition),
}

/// A condition on one attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The attribute's key.
    pub key: String,
    /// How it compares.
    pub operator: Operator,
    /// What it is compared with: one value for most operators, any number for `In`, none for `Present` and `Absent`.
    pub values: Vec<Scalar>,
}

/// How a condition compares. A missing attribute, and one of another type than the condition's value, match only `Ne` and,
/// where it is missing, `Absent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Equal.
    Eq,
    /// Not equal, of another type, or missing.
    Ne,
    /// Less; numbers and text only, as the three that follow.
    Lt,
    /// Less or equal.
    Lte,
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
    /// Equal to one of the values.
    In,
    /// There, whatever its value.
    Present,
    /// Not there.
    Absent,
}

/// A name that no operator has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown operator {0:?}: expected eq, ne, lt, lte, gt, gte, in, present or absent")]
pub struct UnknownOperator(pub String);

impl FromStr for Operator {
    type Err = UnknownOperator;

    /// Parses an operator's name in either case.
    fn from_str(name: &str) -> Result<Self, UnknownOperator> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "eq" => Self::Eq,
            "ne" => Self::Ne,
            "lt" => Self::Lt,
            "lte" => Self::Lte,
            "gt" => Self::Gt,
            "gte" => Self::Gte,
            "in" => Self::In,
            "present" => Self::Present,
            "absent" => Self::Absent,
            _ => return Err(UnknownOperator(name.to_owned())),
        })
    }
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
                .is_none_or(|expression| expression.holds(document))
    }
}

impl Expression {
    fn holds(&self, document: &Document) -> bool {
        match self {
            Self::All(all) => all.iter().all(|each| each.holds(document)),
            Self::Any(any) => any.iter().any(|each| each.holds(document)),
            Self::Not(negated) => !negated.holds(document),
            Self::Condition(condition) => condition.holds(document.attribute(&condition.key)),
        }
    }
}

impl Condition {
    fn holds(&self, value: Option<&Scalar>) -> bool {
        let Some(value) = value else {
            return matches!(self.operator, Operator::Ne | Operator::Absent);
        };
        match self.operator {
            Operator::Present => true,
            Operator::Absent => false,
            Operator::Eq | Operator::In => self.equals_any(value),
            Operator::Ne => !self.equals_any(value),
            Operator::Lt => self.compares(value, Ordering::is_lt),
            Operator::Lte => self.compares(value, Ordering::is_le),
            Operator::Gt => self.compares(value, Ordering::is_gt),
            Operator::Gte => self.compares(value, Ordering::is_ge),
        }
    }

    fn equals_any(&self, value: &Scalar) -> bool {
        let equal = |other| value.compare(other) == Some(Ordering::Equal);
        self.values.iter().any(equal)
    }

    fn compares(&self, value: &Scalar, accept: fn(Ordering) -> bool) -> bool {
        let ordering = self.values.first().and_then(|other| value.compare(other));
        value.is_ordered() && ordering.is_some_and(accept)
    }
}
