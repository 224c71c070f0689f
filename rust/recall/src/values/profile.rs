//! How messages are ranked: the profiles, and the weights of their components.

use std::str::FromStr;

/// How messages are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A weighted sum of components: the cosine, BM25, and the rules that have a weight. Without a query vector, BM25 has
    /// the weight 1 and messages whose score is not above 0 are left out.
    Hybrid,
    /// As `Hybrid`, with one component more: how well a message's word pieces cover those of the question.
    HybridLate,
    /// (1 + cosine) / 2; only messages with a vector.
    Vector,
    /// BM25; only messages that share a word with the query.
    Lexical,
}

/// A name that no profile has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile {0:?}: expected hybrid, hybrid_late, vector or lexical")]
pub struct UnknownProfile(pub String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        match name {
            "hybrid" => Ok(Self::Hybrid),
            "hybrid_late" => Ok(Self::HybridLate),
            "vector" => Ok(Self::Vector),
            "lexical" => Ok(Self::Lexical),
            _ => Err(UnknownProfile(name.to_owned())),
        }
    }
}

/// The weights of the hybrid profiles' components; one of weight 0 is not computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Of the cosine, from -1 to 1. 1 by default.
    pub cosine: f64,
    /// Of the coverage of the question's word pieces, on the cosine's scale: that of [`Profile::HybridLate`] alone. 0 by
    /// default.
    pub late: f64,
    /// Of shared words: BM25 over the best BM25 of the scope, or over half of what a message of average length would
    /// score that has all words of the question where that is more; to the power of 1.5. 0.3 by default.
    pub bm25: f64,
    /// Of having all words of the question: how much of their weight the message has, to the power of 8, times how little
    /// chance explains that; from 0 to 1. 0 by default, as all that follow.
    pub exact: f64,
    /// Of having the identifiers that the question names, from 0 to 1.
    pub identifier: f64,
    /// Of the question before, if this message follows one: what the four above give it.
    pub answer: f64,
    /// Of the message after: what the same four give it.
    pub next: f64,
    /// Of being by whom the question names, or by the user where it speaks of "I". Names then count less as words.
    pub speaker: f64,
    /// Of speaking of a time, where the question asks when.
    pub temporal: f64,
    /// Of meeting a date that the question names, from 0 to 1.
    pub date: f64,
    /// Of naming somebody or something, where the question asks for a name.
    pub named: f64,
    /// Of the words of the message and its neighbours together, from 0 to 1.
    pub passage: f64,
    /// Of the best around the message in its session: what all above give it.
    pub session: f64,
    /// Of the best of the message's neighbours: what all but `session` give it.
    pub nearby: f64,
    /// Of saying again, later, what one of the best says: what is missing to take the place before it.
    pub newer: f64,
    /// Of being recent, where a search names a half-life.
    pub recency: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            cosine: 1.0,
            late: 0.0,
            bm25: 0.3,
            exact: 0.0,
            identifier: 0.0,
            answer: 0.0,
            next: 0.0,
            speaker: 0.0,
            temporal: 0.0,
            date: 0.0,
            named: 0.0,
            passage: 0.0,
            session: 0.0,
            nearby: 0.0,
            newer: 0.0,
            recency: 0.0,
        }
    }
}

impl Weights {
    /// The weight of a component by its name; `None` for a name that no component has.
    pub fn named(&mut self, name: &str) -> Option<&mut f64> {
        Some(match name {
            "cosine" => &mut self.cosine,
            "late" => &mut self.late,
            "bm25" => &mut self.bm25,
            "exact" => &mut self.exact,
            "identifier" => &mut self.identifier,
            "answer" => &mut self.answer,
            "next" => &mut self.next,
            "speaker" => &mut self.speaker,
            "temporal" => &mut self.temporal,
            "date" => &mut self.date,
            "named" => &mut self.named,
            "passage" => &mut self.passage,
            "session" => &mut self.session,
            "nearby" => &mut self.nearby,
            "newer" => &mut self.newer,
            "recency" => &mut self.recency,
            _ => return None,
        })
    }

    /// Whether only words and vectors count.
    pub(crate) fn have_no_rules(&self) -> bool {
        let plain = Self {
            cosine: self.cosine,
            late: self.late,
            bm25: self.bm25,
            exact: self.exact,
            newer: self.newer,
            recency: self.recency,
            ..Self::default()
        };
        *self == plain
    }
}
