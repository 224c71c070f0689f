//! Component `named`: messages that name somebody or something, where the question asks for a name. English questions, and
//! writing with capital letters.

use crate::text::words::{Word, begin_with, is_accent};

/// What a question asks for that has a name, in the singular; "what country" asks for one, "what colour" does not.
const NAMED: &[&str] = &[
    "actor",
    "actress",
    "album",
    "artist",
    "author",
    "band",
    "book",
    "brand",
    "city",
    "club",
    "college",
    "company",
    "country",
    "director",
    "film",
    "game",
    "hotel",
    "island",
    "movie",
    "museum",
    "name",
    "novel",
    "organization",
    "park",
    "place",
    "restaurant",
    "school",
    "series",
    "shop",
    "show",
    "singer",
    "song",
    "state",
    "store",
    "street",
    "team",
    "town",
    "university",
    "village",
    "writer",
];

/// Words that ask for a name by themselves.
const WHO: &[&str] = &["who", "whom", "whose", "where", "which"];

/// Words before that which asks.
const BEFORE: &[&str] = &["in", "at", "to", "from", "on", "with", "of"];

/// Whether a question, in lower case, asks for a name.
pub(crate) fn asks_for_name(question: &[Word<'_>]) -> bool {
    let rest = match question {
        [first, rest @ ..] if BEFORE.contains(&first.text) => rest,
        _ => question,
    };
    let asks = match rest {
        [first, ..] if WHO.contains(&first.text) => true,
        [first, second, ..] => first.text == "what" && is_named(second.text),
        _ => false,
    };
    asks || question
        .windows(2)
        .any(|words| begin_with(words, &["name", "of"]) || begin_with(words, &["names", "of"]))
}

/// Whether a noun, in the singular or the plural, is of what has a name.
fn is_named(noun: &str) -> bool {
    let is_listed = |noun: &str| NAMED.contains(&noun);
    is_listed(noun)
        || noun.strip_suffix('s').is_some_and(is_listed)
        || noun
            .strip_suffix("ies")
            .is_some_and(|stem| is_listed(&format!("{stem}y")))
}

/// Whether a text names somebody or something: it has a word with a capital letter within a sentence, other than "I".
pub(crate) fn names_something(text: &str) -> bool {
    let mut words = text.split(' ');
    let mut before = words.next().unwrap_or_default();
    words.any(|word| {
        let before_accents = before.trim_end_matches(is_accent);
        let goes_on =
            before_accents.ends_with(|end: char| end.is_lowercase() || matches!(end, ',' | ';'));
        before = word;
        goes_on && is_capitalised(word)
    })
}

/// Whether a word has a capital letter and then a small one.
fn is_capitalised(word: &str) -> bool {
    let mut letters = word.chars().filter(|&character| !is_accent(character));
    letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
}
