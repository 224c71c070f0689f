//! Which encoding a model of OpenAI reads, as in `tiktoken.model` (tiktoken 0.14).

use super::Encoding::{self, Cl100kBase, O200kBase};

const MODELS: [(&str, Encoding); 15] = [
    ("o1", O200kBase),
    ("o3", O200kBase),
    ("o4-mini", O200kBase),
    ("gpt-5", O200kBase),
    ("gpt-4.1", O200kBase),
    ("gpt-4o", O200kBase),
    ("gpt-4", Cl100kBase),
    ("gpt-3.5-turbo", Cl100kBase),
    ("gpt-3.5", Cl100kBase),
    ("gpt-35-turbo", Cl100kBase),
    ("davinci-002", Cl100kBase),
    ("babbage-002", Cl100kBase),
    ("text-embedding-ada-002", Cl100kBase),
    ("text-embedding-3-small", Cl100kBase),
    ("text-embedding-3-large", Cl100kBase),
];

/// The first that fits decides. gpt-oss reads o200k_harmony, which differs from o200k_base in special tokens only: a
/// text has the same count in both.
const PREFIXES: [(&str, Encoding); 17] = [
    ("o1-", O200kBase),
    ("o3-", O200kBase),
    ("o4-mini-", O200kBase),
    ("gpt-5", O200kBase),
    ("gpt-4.5-", O200kBase),
    ("gpt-4.1-", O200kBase),
    ("chatgpt-4o-", O200kBase),
    ("gpt-4o-", O200kBase),
    ("gpt-4-", Cl100kBase),
    ("gpt-3.5-turbo-", Cl100kBase),
    ("gpt-35-turbo-", Cl100kBase),
    ("gpt-oss-", O200kBase),
    ("ft:gpt-4o", O200kBase),
    ("ft:gpt-4", Cl100kBase),
    ("ft:gpt-3.5-turbo", Cl100kBase),
    ("ft:davinci-002", Cl100kBase),
    ("ft:babbage-002", Cl100kBase),
];

pub(super) fn encoding_for_model(model: &str) -> Option<Encoding> {
    let named = MODELS.iter().find(|(name, _)| model == *name);
    let prefixed = || {
        PREFIXES
            .iter()
            .find(|(prefix, _)| model.starts_with(prefix))
    };
    named.or_else(prefixed).map(|(_, encoding)| *encoding)
}
