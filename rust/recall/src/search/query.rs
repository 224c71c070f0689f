//! What to search for, where, and how.

use remora_late::Pieces;

use super::filter::Filter;
use crate::memory::Scope;
use crate::values::{Profile, Weights};

/// What to search for, and how.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// Where in the tenant.
    pub scope: Scope<'a>,
    /// The words to search for.
    pub text: &'a str,
    /// Those of the words, in lower case, that may be typing errors.
    pub doubtful: &'a [String],
    /// The message whose text this is, by (uid, sequence).
    pub source: Option<(u64, u64)>,
    /// The vector to search for, finite and not all zero.
    pub vector: Option<&'a [f32]>,
    /// The query's word pieces, for the profile that compares them; without any it is as the one without them.
    pub pieces: &'a Pieces,
    /// The model of the vectors; those of other models do not count.
    pub model: &'a str,
    /// How to rank.
    pub profile: Profile,
    /// How many hits at most.
    pub k: usize,
    /// Only hits of at least this score, in the profile's own measure.
    pub threshold: Option<f64>,
    /// The weights of the hybrid profiles' components.
    pub weights: Weights,
    /// After how many seconds the component `recency` is half; without it, there is none.
    pub half_life: Option<f64>,
    /// Which documents are candidates.
    pub filter: Filter,
    /// Documents that are no candidates, by (uid, sequence). They have no words and no vector either, so that nothing
    /// of them is passed on to others.
    pub exclude: &'a [(u64, u64)],
    /// Roles whose documents are no candidates.
    pub without_roles: &'a [String],
    /// Documents that are no candidates because they were found before, by (uid, sequence).
    pub seen: &'a [(u64, u64)],
    /// How many documents before and after each hit come with it.
    pub around: usize,
    /// The revision up to which changes are visible.
    pub published: u64,
}
