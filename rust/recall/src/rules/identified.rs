//! Component `identifier`: messages that have the identifiers of the question.
//!
//! A message has one if it has all of its parts. One that many messages have identifies little: its value is the square
//! of its weight (idf) over that of what one message has.

use remora_lexical::Parameters;

use crate::scoring::{AskedWords, Corpus};
use crate::text::identifiers::identifiers;

/// The share of the weight of an identifier's parts that says that a message has all of them, however sums are rounded.
const ALL: f32 = 0.9999;

/// The values of all documents of a scope; `None` if the question names nothing that one of them has.
pub(crate) fn identified(corpus: Corpus<'_>, text: &str) -> Option<Vec<f32>> {
    let mut values = vec![0.0; corpus.rows];
    let mut found = 0;
    for identifier in identifiers(text) {
        found += usize::from(add(corpus, identifier, &mut values));
    }
    for value in &mut values {
        *value /= found as f32;
    }
    (found > 0).then_some(values)
}

/// Adds what an identifier gives to the messages that have it; whether there are any.
fn add(corpus: Corpus<'_>, identifier: &str, values: &mut [f32]) -> bool {
    let asked = AskedWords::of(corpus, identifier, identifier);
    let all = asked.whole() as f32 * ALL;
    let scores = corpus.present(&asked);
    let has = |score: &&f32| all > 0.0 && **score >= all;
    let having = scores.iter().filter(has).count() as u64;
    let documents = asked.documents() as u64;
    let weight = |having| Parameters::weight(documents, having);
    let share = (weight(having) / weight(1)) as f32;
    for (value, score) in values.iter_mut().zip(&scores) {
        if has(&score) {
            *value += share * share;
        }
    }
    corpus.buffers.columns.give_back(scores);
    having > 0
}
