//! Whether a question is about who asks it.

use crate::recall::words::Word;

/// Words by which who asks speaks of themselves.
const FIRST_PERSON: [&str; 5] = ["my", "me", "mine", "we", "our"];

/// In lower case also "the", "in" or "and" of other languages: it counts beside an English word.
const I: &str = "i";

/// Words that tell English from languages in which "i" is a word, as Italian, Swedish, Danish and Polish.
const ENGLISH: &[&str] = &[
    "about", "am", "and", "are", "bought", "did", "does", "had", "have", "how", "is", "know",
    "like", "love", "need", "said", "should", "that", "the", "think", "this", "told", "want",
    "was", "went", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "you",
];

/// Whether a question, in lower case, is asked in the first person.
pub(in crate::recall) fn is_in_first_person(question: &[Word<'_>]) -> bool {
    let has = |word: &str| question.iter().any(|asked| asked.text == word);
    FIRST_PERSON.into_iter().any(has) || has(I) && ENGLISH.iter().copied().any(has)
}
