//! Whether a question is about who asks it.

use crate::text::words::Word;

/// Words by which who asks speaks of themselves.
const FIRST_PERSON: [&str; 2] = ["my", "our"];

/// Words by which they do in English, and that mean the same or something else in other languages: "i" and "we" are small
/// words of Polish, "me" is one of French, Italian and Spanish. They count beside an English word.
const SHARED: [&str; 4] = ["i", "me", "mine", "we"];

/// Words that no language has in common with English in which one of these is a word.
const ENGLISH: &[&str] = &[
    "about", "been", "bought", "could", "did", "does", "from", "how", "know", "need", "remember",
    "remind", "said", "should", "tell", "that", "the", "think", "this", "told", "want", "went",
    "were", "what", "when", "where", "which", "who", "whose", "why", "with", "would", "you",
    "your",
];

/// Words behind which "I" or "we" asks what to do, and says nothing of who asks.
const ADVICE: [&str; 6] = ["should", "shall", "can", "could", "may", "must"];

/// Whether a question, in lower case, asks for advice: "what should I do", "can we". The answer is what others said.
pub(crate) fn asks_for_advice(question: &[Word<'_>]) -> bool {
    question.windows(2).any(|pair| {
        ADVICE.contains(&pair[0].text) && matches!(pair[1].text, "i" | "we") && pair[1].follows()
    })
}

/// Whether a question, in lower case, is asked in the first person.
pub(crate) fn is_in_first_person(question: &[Word<'_>]) -> bool {
    let has = |word: &str| question.iter().any(|asked| asked.text == word);
    FIRST_PERSON.into_iter().any(has)
        || SHARED.into_iter().any(has) && ENGLISH.iter().copied().any(has)
}
