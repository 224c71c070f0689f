//! How messages are ranked: the profiles, and the weights of their components.

use std::str::FromStr;

/// How messages are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A weighted sum of components, the cosine and BM25 first. Without a query vector, BM25 has the weight 1 and messages
    /// whose score is 0 are left out.
    Hybrid,
    /// (1 + cosine) / 2; only messages with a vector.
    Vector,
    /// BM25; only messages that share a word with the query.
    Lexical,
}

/// A name that no profile has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile {0:?}: expected hybrid, vector or lexical")]
pub struct UnknownProfile(pub String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        match name {
            "hybrid" => Ok(Self::Hybrid),
            "vector" => Ok(Self::Vector),
            "lexical" => Ok(Self::Lexical),
            _ => Err(UnknownProfile(name.to_owned())),
        }
    }
}

/// The weights of the hybrid profile's components; one of weight 0 is not computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// Of the cosine, from -1 to 1.
    pub cosine: f64,
    /// Of BM25 divided by the best BM25 of the scope, from 0 to 1.
    pub bm25: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            cosine: 1.0,
            bm25: 0.3,
        }
    }
}

impl Weights {
    /// The weight of a component by its name; `None` for a name that no component has.
    pub fn named(&mut self, name: &str) -> Option<&mut f64> {
        match name {
            "cosine" => Some(&mut self.cosine),
            "bm25" => Some(&mut self.bm25),
            _ => None,
        }
    }
}
