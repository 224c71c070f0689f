//! BERT's WordPiece tokenizer, from the `tokenizer.json` of the hub: the same ids as Hugging Face's `tokenizers`, with one
//! rule of its own: the name of a special token in a text, such as `[SEP]`, is text.

mod normalize;
#[cfg(test)]
mod tests;
mod vocabulary;

use remora_lexical::{Analyzer, Term, stop_words};
use rustc_hash::FxHashSet;
use serde_json::Value;

use super::error::EncoderError;
use normalize::{is_punctuation, normalized};
use vocabulary::Vocabulary;

/// Characters of the longest word that is cut into pieces.
const MAX_WORD: usize = 100;

/// Settings that `tokenizer.json` must have, by JSON pointer, and their values.
const SETTINGS: [(&str, &str); 8] = [
    ("/model/type", r#""WordPiece""#),
    ("/model/continuing_subword_prefix", r###""##""###),
    ("/model/unk_token", r#""[UNK]""#),
    ("/model/max_input_chars_per_word", "100"),
    ("/normalizer/type", r#""BertNormalizer""#),
    ("/normalizer/clean_text", "true"),
    ("/normalizer/lowercase", "true"),
    ("/pre_tokenizer/type", r#""BertPreTokenizer""#),
];

/// Texts to ids.
#[derive(Debug)]
pub(super) struct Tokenizer {
    vocabulary: Vocabulary,
    unknown: u32,
    begin: u32,
    end: u32,
    /// The largest id.
    last: u32,
    /// Pieces that say nothing by themselves: stop words, punctuation and `[UNK]`.
    silent: FxHashSet<u32>,
    analyzer: Analyzer,
    /// The terms of the pieces that may be words.
    words: FxHashSet<Term>,
}

impl Tokenizer {
    /// Reads a `tokenizer.json`; its settings of truncation and padding are not used.
    pub(super) fn from_json(json: &[u8]) -> Result<Self, EncoderError> {
        let json =
            serde_json::from_slice::<Value>(json).map_err(|error| unusable(&error.to_string()))?;
        check_settings(&json)?;
        let (vocabulary, last) = read_vocabulary(&json)?;
        let special = |name: &str| {
            vocabulary
                .id(name)
                .ok_or_else(|| unusable(&format!("it has no {name}")))
        };
        let (unknown, begin, end) = (special("[UNK]")?, special("[CLS]")?, special("[SEP]")?);
        let analyzer = Analyzer::new();
        let pieces = vocabulary.pieces().map(|(piece, _)| piece);
        let words = pieces
            .filter(|piece| is_word(piece))
            .filter_map(|word| analyzer.term(&mut word.to_owned()))
            .collect();
        let mut silent = silent_pieces(&vocabulary);
        silent.insert(unknown);
        Ok(Self {
            silent,
            vocabulary,
            unknown,
            begin,
            end,
            last,
            analyzer,
            words,
        })
    }

    /// The largest id that a text can have.
    pub(super) fn last_id(&self) -> u32 {
        self.last
    }

    /// Whether a piece says something by itself: no stop word, no punctuation, nothing unknown.
    pub(super) fn speaks(&self, id: u32) -> bool {
        !self.silent.contains(&id)
    }

    /// The words of ASCII letters of a text that are no form of a piece, in lower case.
    pub(super) fn unknown_words(&self, text: &str) -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| is_word(word))
            .map(str::to_ascii_lowercase)
            .filter(|word| {
                let term = self.analyzer.term(&mut word.clone());
                term.is_some_and(|term| !self.words.contains(&term))
            })
            .collect()
    }

    /// The ids of a text between `[CLS]` and `[SEP]`, at most `limit` with both; what is beyond is not read.
    pub(super) fn encode(&self, text: &str, limit: usize) -> Vec<u32> {
        let most = limit.saturating_sub(1);
        let mut ids = vec![self.begin];
        let mut word = Word::default();
        for c in normalized(text) {
            if ids.len() >= most {
                break;
            }
            if c.is_whitespace() {
                self.cut(&mut word, &mut ids);
            } else if is_punctuation(c) {
                self.cut(&mut word, &mut ids);
                word.push(c);
                self.cut(&mut word, &mut ids);
            } else {
                word.push(c);
            }
        }
        self.cut(&mut word, &mut ids);
        ids.truncate(most);
        ids.push(self.end);
        ids
    }

    /// Appends the pieces of `word`, which is empty afterwards.
    fn cut(&self, word: &mut Word, ids: &mut Vec<u32>) {
        if word.chars > MAX_WORD || !self.vocabulary.cut(&word.text, ids) {
            ids.push(self.unknown);
        }
        word.clear();
    }
}

/// The word that is being read. Of one that is too long only the length is kept.
#[derive(Debug, Default)]
struct Word {
    text: String,
    chars: usize,
}

impl Word {
    fn push(&mut self, c: char) {
        self.chars += 1;
        if self.chars <= MAX_WORD {
            self.text.push(c);
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.chars = 0;
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn check_settings(json: &Value) -> Result<(), EncoderError> {
    for (pointer, expected) in SETTINGS {
        let found = json.pointer(pointer).map(Value::to_string);
        if found.as_deref() != Some(expected) {
            return Err(unusable(&format!("{pointer} is not {expected}")));
        }
    }
    Ok(())
}

/// The vocabulary and the largest id.
fn read_vocabulary(json: &Value) -> Result<(Vocabulary, u32), EncoderError> {
    let entries = json.pointer("/model/vocab").and_then(Value::as_object);
    let entries = entries.ok_or_else(|| unusable("it has no vocabulary"))?;
    let mut vocabulary = Vocabulary::default();
    let mut last = 0;
    for (piece, id) in entries {
        let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
        let id = id.ok_or_else(|| unusable(&format!("the id of {piece:?} is not a number")))?;
        vocabulary.insert(piece, id);
        last = last.max(id);
    }
    Ok((vocabulary, last))
}

/// The ids of stop words and of pieces without a letter or digit.
fn silent_pieces(vocabulary: &Vocabulary) -> FxHashSet<u32> {
    let stop_words = stop_words().filter_map(|word| vocabulary.id(word));
    let marks = vocabulary
        .pieces()
        .filter(|(piece, _)| !piece.contains(char::is_alphanumeric))
        .map(|(_, id)| id);
    stop_words.chain(marks).collect()
}

fn unusable(reason: &str) -> EncoderError {
    EncoderError::Tokenizer(reason.to_owned())
}
