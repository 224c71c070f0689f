//! Typing errors in questions: words that no message has are read as words that some have.

use remora_lexical::Term;
use rustc_hash::FxHashSet;

use super::rows;
use crate::Recall;
use crate::memory::{Scope, View};
use crate::text::spelling::{count_near, each_near};
use crate::text::words::words;

/// The fewest letters of a word that is corrected. Most shorter words are one error away from many others.
const FEWEST_LETTERS: usize = 5;
/// The most letters.
const MOST_LETTERS: usize = 32;
/// How many spellings are looked up for one text, each in every part of the scope; what that does not suffice for is not
/// corrected.
const MOST_LOOKUPS: usize = 2_000_000;

/// A question that may have typing errors.
#[derive(Debug, Clone, Copy)]
pub struct Typed<'a> {
    pub text: &'a str,
    /// The words that may be errors, in lower case.
    pub doubtful: &'a [&'a str],
    /// Messages that the words may be from, by (uid, sequence): that these have one says nothing for it.
    pub exclude: &'a [(u64, u64)],
}

impl Recall {
    /// The text with those of its doubtful words corrected that no message of the scope has: each becomes the one that most
    /// messages have of the words that differ by one typing error. A word of other characters than ASCII letters stays.
    pub fn corrected(
        &self,
        tenant: &str,
        scope: Scope<'_>,
        typed: Typed<'_>,
        published: u64,
    ) -> String {
        let text = typed.text;
        let doubtful: FxHashSet<_> = typed.doubtful.iter().copied().collect();
        let parts = self.use_parts(tenant, scope);
        let views = self.views(&parts, published);
        let excluded = rows(&views, typed.exclude);
        let mut speller = Speller {
            recall: self,
            views: &views,
            excluded: &excluded,
            lookups: MOST_LOOKUPS,
        };
        let mut corrected = String::with_capacity(text.len());
        let mut from = 0;
        for word in words(text) {
            let lower = word.text.to_ascii_lowercase();
            if doubtful.contains(lower.as_str())
                && let Some(meant) = speller.meant(&lower)
            {
                corrected.push_str(&text[from..word.start]);
                corrected.push_str(&meant);
                from = word.end();
            }
        }
        corrected.push_str(&text[from..]);
        corrected
    }
}

/// Looks spellings up among the words of a scope that is held still.
struct Speller<'a> {
    recall: &'a Recall,
    views: &'a [View<'a>],
    /// The rows of messages that do not count, in ascending order.
    excluded: &'a [usize],
    /// How many more there may be.
    lookups: usize,
}

impl Speller<'_> {
    /// What is meant by a word in lower case; `None` where it stands for itself.
    fn meant(&mut self, word: &str) -> Option<String> {
        let letters = word.len();
        if !(FEWEST_LETTERS..=MOST_LETTERS).contains(&letters)
            || !word.bytes().all(|byte| byte.is_ascii_lowercase())
        {
            return None;
        }
        let mut stemmed = word.to_owned();
        let own = self.recall.analyzer.term(&mut stemmed)?;
        if self.having(&[own])[0] > 0 {
            return None;
        }
        self.lookups = self
            .lookups
            .checked_sub(count_near(letters) * self.views.len())?;
        let mut spellings = Vec::with_capacity(count_near(letters));
        let mut terms = Vec::with_capacity(count_near(letters));
        each_near(word, |near| {
            near.clone_into(&mut stemmed);
            if let Some(term) = self.recall.analyzer.term(&mut stemmed) {
                spellings.push(near.to_owned());
                terms.push(term);
            }
        });
        let having = self.having(&terms);
        let most = having.iter().copied().max().filter(|most| *most > 0)?;
        let best = having.iter().position(|having| *having == most)?;
        Some(spellings.swap_remove(best))
    }

    /// How many messages have each of some terms. Goes view by view, so that a view's words stay in the nearest cache.
    fn having(&self, terms: &[Term]) -> Vec<usize> {
        let mut having = vec![0; terms.len()];
        for view in self.views {
            for (having, term) in having.iter_mut().zip(terms) {
                *having += self.having_in(view, *term);
            }
        }
        having
    }

    fn having_in(&self, view: &View<'_>, term: Term) -> usize {
        let mut having = 0;
        view.content.words().each_posting(term, |slot, _| {
            let row = view.base + slot as usize;
            having += usize::from(self.excluded.binary_search(&row).is_err());
        });
        having
    }
}
