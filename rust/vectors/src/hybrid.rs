//! One search by a text: the cosine to its vector, and the words that a row shares with it.

use remora_filter::Expression;

use crate::content::{Content, Passing};
use crate::search::{Hit, Ranked};
use crate::values::Query;

/// The weight of words beside that of the cosine, which is 1.
const WORDS: f64 = 0.5;

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct TextSearch<'a> {
    pub text: &'a str,
    /// The vector of the text; without one, rows are found by words alone.
    pub query: Option<&'a Query>,
    /// How many rows to find at most.
    pub k: usize,
    /// The least score.
    pub threshold: Option<f64>,
    pub filter: Option<&'a Expression>,
    /// Whose vectors are compared with the query: those of its model.
    pub comparable: Option<&'a Expression>,
}

/// The best rows, the best first; ties by key. Scores are from 0 to 1.
pub(crate) fn hits(content: &Content, search: &TextSearch<'_>) -> Vec<Hit> {
    let shares = content.word_shares(search.text);
    let cosines = search
        .query
        .map(|query| (query, content.passing(search.comparable)));
    let least = search.threshold.unwrap_or(f64::NEG_INFINITY);
    let ranked = |row: usize| {
        let words = f64::from(shares[row]);
        let score = match &cosines {
            Some((query, comparable)) => {
                (cosine(content, query, comparable, row) + WORDS * words) / (1.0 + WORDS)
            }
            None => words,
        };
        let key = content.key(row);
        Ranked { score, key, row }
    };
    let is_found =
        |found: &Ranked<'_>| found.score >= least && (search.query.is_some() || found.score > 0.0);
    let passing = content.passing(search.filter);
    let mut best: Vec<_> = passing.rows().map(ranked).filter(is_found).collect();
    best.sort_unstable();
    best.truncate(search.k);
    let hit = |found: Ranked<'_>| Hit {
        score: found.score,
        body: content.body(found.row).clone(),
    };
    best.into_iter().map(hit).collect()
}

/// From 0 to 1; 0 also where the vectors cannot be compared.
fn cosine(content: &Content, query: &Query, comparable: &Passing, row: usize) -> f64 {
    let (values, norm) = content.vector(row);
    if !comparable.has(row) || values.len() != query.dim() * size_of::<f32>() {
        return 0.0;
    }
    query.cosine(values, norm).max(0.0)
}
