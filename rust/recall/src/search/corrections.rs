//! Typing errors in questions: words that no message has are read as words that some have.

use std::borrow::Cow;
use std::ops::Range;

use remora_lexical::{Analyzer, Term};
use rustc_hash::FxHashSet;

use super::query::Search;
use crate::memory::View;
use crate::text::identifiers::identifiers;
use crate::text::names::Names;
use crate::text::spelling::{count_near, each_near};
use crate::text::words::{Word, words};
use crate::values::Symbol;

/// The fewest letters of a word that is corrected. Most shorter words are one error away from many others.
const FEWEST_LETTERS: usize = 5;
/// The most letters.
const MOST_LETTERS: usize = 32;
/// How many spellings are looked up for one text, each in every part of the scope; what that does not suffice for is not
/// corrected.
const MOST_LOOKUPS: usize = 2_000_000;

/// A question as it is searched for by words.
pub(super) struct Corrected<'a> {
    /// The text with its errors corrected.
    pub(super) text: Cow<'a, str>,
    /// The terms of the words that were put in.
    pub(super) terms: FxHashSet<Term>,
}

/// The question with those of its doubtful words corrected that no message has: each becomes the one that most messages have
/// of the words that differ by one typing error. Only messages count that may be found, and not the one that is the question.
/// What stays: words of other characters than ASCII letters, names of speakers, parts of identifiers and contractions.
pub(super) fn corrected<'a>(
    search: &Search<'a>,
    views: &[View<'_>],
    analyzer: &Analyzer,
    names: &Names,
) -> Corrected<'a> {
    let mut terms = FxHashSet::default();
    let Some(mut speller) = Speller::of(search, views, analyzer) else {
        let text = Cow::Borrowed(search.text);
        return Corrected { text, terms };
    };
    let mut corrected = String::with_capacity(search.text.len());
    let mut from = 0;
    for word in plain_words(search.text) {
        let lower = word.text.to_ascii_lowercase();
        if names.has(&lower) {
            continue;
        }
        if let Some((meant, term)) = speller.meant(&lower) {
            corrected.push_str(&search.text[from..word.start]);
            corrected.push_str(&meant);
            terms.insert(term);
            from = word.end();
        }
    }
    corrected.push_str(&search.text[from..]);
    Corrected {
        text: Cow::Owned(corrected),
        terms,
    }
}

/// The words of a text that stand by themselves: no parts of identifiers, and none that an apostrophe joins to another, but
/// for the possessive "'s".
fn plain_words(text: &str) -> Vec<Word<'_>> {
    let taken: Vec<Range<usize>> = identifiers(text)
        .map(|identifier| {
            let start = identifier.as_ptr().addr() - text.as_ptr().addr();
            start..start + identifier.len()
        })
        .collect();
    let words = words(text);
    let joins = |word: &Word<'_>| matches!(word.gap, "'" | "’");
    let plain = words
        .iter()
        .enumerate()
        .filter(|(index, word)| {
            let next = words.get(index + 1);
            !joins(word)
                && next.is_none_or(|next| !joins(next) || next.text.eq_ignore_ascii_case("s"))
                && !taken.iter().any(|range| range.contains(&word.start))
        })
        .map(|(_, word)| *word);
    plain.collect()
}

/// The messages of a part that may be found.
struct Candidates<'a> {
    view: &'a View<'a>,
    /// Of each slot, whether its message passes the filter; none if there is no filter.
    passing: Option<Vec<bool>>,
    barred: Vec<Symbol>,
    /// The slot of the message that is the question.
    source: Option<usize>,
}

impl<'a> Candidates<'a> {
    fn of(search: &Search<'_>, view: &'a View<'a>) -> Self {
        let source = search.source.filter(|(uid, _)| *uid == view.part.uid());
        Self {
            view,
            passing: (!search.filter.is_empty()).then(|| search.filter.passing(&view.content)),
            barred: view.content.role_symbols(search.without_roles),
            source: source.and_then(|(_, sequence)| view.content.slot(sequence)),
        }
    }

    /// How many have a term.
    fn having(&self, term: Term) -> usize {
        let mut having = 0;
        self.view.content.words().each_posting(term, |slot, _| {
            let passing = self.passing.as_ref();
            having += usize::from(
                self.source != Some(slot as usize)
                    && passing.is_none_or(|passing| passing[slot as usize])
                    && !self.view.content.has_role(slot, &self.barred),
            );
        });
        having
    }
}

/// Looks spellings up among the words of a scope that is held still.
struct Speller<'a> {
    analyzer: &'a Analyzer,
    doubtful: FxHashSet<&'a str>,
    parts: Vec<Candidates<'a>>,
    /// How many more lookups there may be.
    lookups: usize,
}

impl<'a> Speller<'a> {
    /// `None` where no word is doubtful.
    fn of(search: &Search<'a>, views: &'a [View<'a>], analyzer: &'a Analyzer) -> Option<Self> {
        let doubtful: FxHashSet<_> = search.doubtful.iter().map(String::as_str).collect();
        (!doubtful.is_empty()).then(|| Self {
            analyzer,
            doubtful,
            parts: views
                .iter()
                .map(|view| Candidates::of(search, view))
                .collect(),
            lookups: MOST_LOOKUPS,
        })
    }

    /// What is meant by a word in lower case, and its term; `None` where the word stands for itself.
    fn meant(&mut self, word: &str) -> Option<(String, Term)> {
        let letters = word.len();
        if !(FEWEST_LETTERS..=MOST_LETTERS).contains(&letters)
            || !word.bytes().all(|byte| byte.is_ascii_lowercase())
            || !self.doubtful.contains(word)
        {
            return None;
        }
        let mut stemmed = word.to_owned();
        let own = self.analyzer.term(&mut stemmed)?;
        if self.having(&[own])[0] > 0 {
            return None;
        }
        self.lookups = self
            .lookups
            .checked_sub(count_near(letters) * self.parts.len())?;
        let mut spellings = Vec::with_capacity(count_near(letters));
        let mut terms = Vec::with_capacity(count_near(letters));
        each_near(word, |near| {
            near.clone_into(&mut stemmed);
            if let Some(term) = self.analyzer.term(&mut stemmed) {
                spellings.push(near.to_owned());
                terms.push(term);
            }
        });
        let having = self.having(&terms);
        let most = having.iter().copied().max().filter(|most| *most > 0)?;
        let best = having.iter().position(|having| *having == most)?;
        Some((spellings.swap_remove(best), terms[best]))
    }

    /// How many messages have each of some terms. Goes part by part, so that a part's words stay in the nearest cache.
    fn having(&self, terms: &[Term]) -> Vec<usize> {
        let mut having = vec![0; terms.len()];
        for part in &self.parts {
            for (having, term) in having.iter_mut().zip(terms) {
                *having += part.having(*term);
            }
        }
        having
    }
}
