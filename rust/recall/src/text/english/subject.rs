//! What a question is about, and with what sentences begin: in English, mostly with what they are about.

use remora_lexical::{Analyzer, Term};
use rustc_hash::FxHashSet;

use super::persons::{asks_for_advice, is_in_first_person};
use crate::text::words::{Word, lower_case, words};

/// What a question is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// What it names: words with a capital letter within a sentence, and those behind "my" and "our".
    Named(Vec<Term>),
    /// Who asks, as they are now.
    Asker,
    /// It does not say.
    Unknown,
}

/// With what a sentence begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Opening {
    /// A word, or the one behind "the", "my" or "our".
    Term(Term),
    /// "I" or "we".
    Speaker,
}

/// Words by which speakers speak of what is theirs.
const OWN: [&str; 2] = ["my", "our"];

/// Words by which they speak of themselves.
const SELVES: [&str; 2] = ["i", "we"];

/// Verbs that ask for what was: it stays so, whatever has changed.
const PAST: [&str; 4] = ["did", "had", "was", "were"];

/// Verbs with which a question for yes or no begins.
const WHETHER: [&str; 7] = ["am", "are", "do", "does", "has", "have", "is"];

/// What ends a sentence.
const ENDS: [char; 5] = ['.', '!', '?', ':', '\n'];

impl Subject {
    pub(crate) fn of(question: &str, analyzer: &Analyzer) -> Self {
        let lower = lower_case(question);
        let lower = words(&lower);
        let own = lower
            .windows(2)
            .filter(|pair| is_own(pair[0].text) && pair[1].follows());
        let named = proper_names(question).chain(own.map(|pair| pair[1].text));
        let terms: Vec<Term> = named.flat_map(|name| analyzer.analyze(name)).collect();
        if !terms.is_empty() {
            Self::Named(terms)
        } else if is_in_first_person(&lower) && !asks_for_advice(&lower) && !asks_for_past(&lower) {
            Self::Asker
        } else {
            Self::Unknown
        }
    }
}

/// With what the sentences of a text begin.
pub(crate) fn openings(text: &str, analyzer: &Analyzer) -> FxHashSet<Opening> {
    let words = words(text);
    let starts = (0..words.len()).filter(|at| *at == 0 || words[*at].gap.contains(ENDS));
    let mut found = FxHashSet::default();
    for start in starts {
        let lower = words[start].text.to_lowercase();
        if SELVES.contains(&lower.as_str()) {
            found.insert(Opening::Speaker);
        }
        let follows = words.get(start + 1).filter(|next| next.follows());
        let opening = match follows {
            Some(next) if lower == "the" || is_own(&lower) => next,
            _ => &words[start],
        };
        found.extend(
            analyzer
                .analyze(opening.text)
                .into_iter()
                .map(Opening::Term),
        );
    }
    found
}

/// Whether a question asks whether something is so, now.
pub(crate) fn asks_whether(question: &str) -> bool {
    let words = words(question);
    let first = words.first().map(|word| word.text.to_lowercase());
    first.is_some_and(|first| WHETHER.contains(&first.as_str()))
}

fn asks_for_past(question: &[Word<'_>]) -> bool {
    question.iter().any(|word| PAST.contains(&word.text))
}

fn is_own(word: &str) -> bool {
    OWN.contains(&word)
}

/// Words with a capital letter within a sentence.
fn proper_names(text: &str) -> impl Iterator<Item = &str> {
    let words = words(text);
    let names: Vec<&str> = words
        .windows(2)
        .filter(|pair| is_capital_within(pair[0], pair[1]))
        .map(|pair| pair[1])
        .filter(Word::is_of_letters)
        .map(|name| name.text)
        .collect();
    names.into_iter()
}

/// Whether a word begins with a capital letter within a sentence, behind the word before.
pub(crate) fn is_capital_within(before: Word<'_>, word: Word<'_>) -> bool {
    before.ends_in_lower_case()
        && matches!(word.gap, " " | ", ")
        && word.text.starts_with(char::is_uppercase)
}
