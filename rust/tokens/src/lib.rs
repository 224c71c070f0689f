//! Exact token counts of OpenAI's encodings, and texts cut to a count.
//!
//! A count is that of tiktoken's `len(encoding.encode(text, disallowed_special=()))` for every text: special tokens count as
//! ordinary text. The time is linear in the length of any text. Vocabularies are loaded once, when first used.
//!
//! Knows no other crate.

use std::sync::LazyLock;

use cl100k::piece_end as cl100k_piece_end;
use memo::Memo;
use o200k::piece_end as o200k_piece_end;
use tokenizer::Tokenizer;
use vocabulary::{Source, Vocabulary};

mod approximate;
mod cl100k;
mod class;
mod encode;
mod memo;
mod merges;
mod model;
mod o200k;
mod runs;
#[cfg(test)]
mod tests;
mod tokenizer;
mod trim;
mod vocabulary;

pub use approximate::approximate;

/// The data of a vocabulary that the build script wrote.
macro_rules! source {
    ($name:literal) => {
        Source {
            ranks: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".ranks")),
            lengths: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".lengths")),
            left: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".left")),
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bytes")),
        }
    };
}

static O200K_BASE: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer {
    vocabulary: Vocabulary::load(&source!("o200k_base")),
    piece_end: o200k_piece_end,
    memo: Memo::new(),
});

static CL100K_BASE: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer {
    vocabulary: Vocabulary::load(&source!("cl100k_base")),
    piece_end: cl100k_piece_end,
    memo: Memo::new(),
});

/// An encoding of OpenAI's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// gpt-4o and later, o1, o3, o4.
    O200kBase,
    /// gpt-4, gpt-3.5 and the embedding models.
    Cl100kBase,
}

impl Encoding {
    pub const ALL: [Self; 2] = [Self::O200kBase, Self::Cl100kBase];

    /// The name tiktoken gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
        }
    }

    /// The encoding of that name, if it is one of these.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|encoding| encoding.name() == name)
    }

    /// The encoding that a model of OpenAI reads, fine-tuned ("ft:gpt-4o...") and dated ones included; `None` for other
    /// models and those of older encodings.
    pub fn for_model(model: &str) -> Option<Self> {
        model::encoding_for_model(model)
    }

    fn tokenizer(self) -> &'static Tokenizer {
        match self {
            Self::O200kBase => &O200K_BASE,
            Self::Cl100kBase => &CL100K_BASE,
        }
    }
}

/// The number of tokens of a text.
pub fn count(encoding: Encoding, text: &str) -> usize {
    encoding.tokenizer().count(text)
}

/// The number of tokens of bytes that should be UTF-8; what is not becomes U+FFFD, as in [`String::from_utf8_lossy`].
pub fn count_bytes(encoding: Encoding, bytes: &[u8]) -> usize {
    count(encoding, &String::from_utf8_lossy(bytes))
}

/// The number of tokens of a text if it is at most `limit`. Stops soon above the limit, however long the text.
pub fn count_up_to(encoding: Encoding, text: &str, limit: usize) -> Option<usize> {
    encoding.tokenizer().count_up_to(text, limit)
}

/// The longest prefix of a text, in whole characters, with at most `max_tokens` tokens.
///
/// The count of a prefix is that of the prefix as a text by itself, which may be above that of a longer one. Where the
/// cut falls into an unbroken run of letters, symbols or blanks longer than 1,024 bytes, the prefix may fall short of
/// the longest by some characters; it never has more tokens.
pub fn trim_end(encoding: Encoding, text: &str, max_tokens: usize) -> &str {
    trim::longest_prefix(encoding.tokenizer(), text, max_tokens)
}

/// The longest suffix of a text, in whole characters, with at most `max_tokens` tokens; see [`trim_end`].
pub fn trim_start(encoding: Encoding, text: &str, max_tokens: usize) -> &str {
    trim::longest_suffix(encoding.tokenizer(), text, max_tokens)
}

/// The bytes of each token of an encoding, special tokens aside; a token's index is its rank.
pub fn vocabulary(encoding: Encoding) -> Vec<&'static [u8]> {
    encoding.tokenizer().vocabulary.by_rank()
}
