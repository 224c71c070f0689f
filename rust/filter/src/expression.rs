//! Trees of conditions on attributes.

use std::cmp::Ordering;
use std::str::FromStr;

use crate::scalar::{Scalar, ScalarRef};

/// What holds of a thing's attributes.
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

impl Expression {
    /// Tells the key of each condition.
    pub fn each_key(&self, tell: &mut impl FnMut(&str)) {
        match self {
            Self::All(several) | Self::Any(several) => {
                several.iter().for_each(|each| each.each_key(tell));
            }
            Self::Not(negated) => negated.each_key(tell),
            Self::Condition(condition) => tell(&condition.key),
        }
    }

    /// Whether it holds of a thing that has these attributes.
    pub fn holds<'a>(&self, attribute: &impl Fn(&str) -> Option<&'a Scalar>) -> bool {
        match self {
            Self::All(all) => all.iter().all(|each| each.holds(attribute)),
            Self::Any(any) => any.iter().any(|each| each.holds(attribute)),
            Self::Not(negated) => !negated.holds(attribute),
            Self::Condition(condition) => {
                condition.holds(attribute(&condition.key).map(Scalar::borrowed))
            }
        }
    }
}

impl Condition {
    /// Whether it holds of a value; `None`: of a missing one.
    pub(crate) fn holds(&self, value: Option<ScalarRef<'_>>) -> bool {
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

    fn equals_any(&self, value: ScalarRef<'_>) -> bool {
        let equal = |other: &Scalar| value.compare(other.borrowed()) == Some(Ordering::Equal);
        self.values.iter().any(equal)
    }

    fn compares(&self, value: ScalarRef<'_>, accept: fn(Ordering) -> bool) -> bool {
        let other = self.values.first();
        let ordering = other.and_then(|other| value.compare(other.borrowed()));
        value.is_ordered() && ordering.is_some_and(accept)
    }
}
