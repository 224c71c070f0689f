//! Text to terms: the words worth searching for, folded and stemmed.

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};

use super::document::Document;
use super::irregular::irregular_forms;
use super::scanner::{Piece, scan};
use super::stem::stem;
use super::stop_words::stop_words;
use super::term::Term;

/// Turns text into terms. It keeps no state between calls, so that threads share one.
///
/// English stop words are left out and words of ASCII letters and digits are stemmed as English, irregular forms as the
/// words that they are forms of ("went" meets "go"). No language is guessed: another language's words in Latin script, whose accents are folded first, take the same way in messages
/// and in questions, which can only bring forms of a word together ("gatos" meets "gato"), and "café" meets "cafe". A
/// word written with accents is never a stop word ("thé" is not "the"). Words of other alphabets stay whole; scripts
/// without spaces give pairs of characters. Time and memory are linear in the text.
pub struct Analyzer {
    stop_words: FxHashSet<&'static str>,
    /// By form, the word that it is a form of.
    irregular: FxHashMap<&'static str, &'static str>,
}

impl Analyzer {
    pub fn new() -> Self {
        Self {
            stop_words: stop_words().collect(),
            irregular: irregular_forms().collect(),
        }
    }

    /// The terms of the text in its order, repeats included.
    pub fn analyze(&self, text: &str) -> Vec<Term> {
        let mut terms = Vec::new();
        self.each_term(text, |term| terms.push(Term::of(term)));
        terms
    }

    /// Those of the text's terms that are pairs of characters. Every second one is no word: it joins two.
    pub fn pairs(&self, text: &str) -> Vec<Term> {
        let mut pairs = Vec::new();
        scan(text, |piece| {
            if let Piece::Pair(pair) = piece {
                pairs.push(Term::of(pair));
            }
        });
        pairs
    }

    /// The terms of the text as they read before they are hashed.
    pub fn words(&self, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        self.each_term(text, |term| words.push(term.to_owned()));
        words
    }

    /// The text as a segment takes it.
    pub fn document(&self, text: &str) -> Document {
        Document::new(self.analyze(text))
    }

    /// The term of a word of ASCII letters in lower case, which is stemmed in place; `None` of a stop word.
    pub fn term(&self, word: &mut String) -> Option<Term> {
        if self.stop_words.contains(word.as_str()) {
            return None;
        }
        self.stem(word);
        Some(Term::of(word))
    }

    fn each_term(&self, text: &str, mut emit: impl FnMut(&str)) {
        scan(text, |piece| match piece {
            Piece::Pair(pair) => emit(pair),
            Piece::Word {
                text,
                accented: false,
            } if self.stop_words.contains(text.as_str()) => {}
            Piece::Word { text, .. } => {
                self.stem(text);
                emit(text);
            }
        });
    }

    fn stem(&self, word: &mut String) {
        if let Some(regular) = self.irregular.get(word.as_str()) {
            (*regular).clone_into(word);
        }
        stem(word);
    }
}

impl Default for Analyzer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Analyzer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Analyzer").finish_non_exhaustive()
    }
}
