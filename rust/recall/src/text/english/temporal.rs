//! Component `temporal`: messages that speak of a time, where the question asks when. English only.

use super::dates::MONTHS;
use crate::text::words::{Word, begin_with, words};

/// Words that speak of a time by themselves, as months do.
const TIMES: &[&str] = &[
    "yesterday",
    "today",
    "tonight",
    "tomorrow",
    "ago",
    "since",
    "recently",
    "just",
    "weekend",
    "earlier",
    "soon",
    "birthday",
    "anniversary",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

const PERIODS: &[&str] = &["week", "weekend", "month", "year"];
const SEASONS: &[&str] = &["summer", "winter", "spring", "fall"];
const SHORT_DAYS: &[&str] = &[
    "mon", "tue", "tues", "wed", "thur", "thurs", "fri", "sat", "sun",
];
const QUANTITIES: &[&str] = &["a", "one", "two", "three", "few", "couple"];
const UNITS: &[&str] = &[
    "day", "days", "week", "weeks", "month", "months", "year", "years",
];

/// How a question that asks when begins.
const QUESTIONS: &[&[&str]] = &[
    &["when"],
    &["how", "long"],
    &["what", "date"],
    &["what", "day"],
    &["what", "month"],
    &["what", "year"],
    &["what", "time"],
    &["which", "date"],
    &["which", "day"],
    &["which", "month"],
    &["which", "year"],
    &["which", "week"],
    &["which", "weekend"],
    &["in", "which", "month"],
    &["in", "which", "year"],
    &["in", "which", "week"],
    &["in", "what", "month"],
    &["in", "what", "year"],
    &["in", "what", "week"],
    &["on", "which", "day"],
    &["on", "which", "date"],
    &["on", "what", "day"],
    &["on", "what", "date"],
];

/// Whether a question, in lower case, asks when.
pub(crate) fn asks_when(question: &[Word<'_>]) -> bool {
    QUESTIONS
        .iter()
        .any(|beginning| begin_with(question, beginning))
        || question
            .windows(3)
            .any(|words| begin_with(words, &["how", "long", "ago"]))
}

/// Whether a text speaks of a time: a day, a month, a year, a span, a word like "yesterday".
pub(crate) fn speaks_of_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = words(&text);
    (0..words.len()).any(|start| is_time(&words[start..]))
}

/// Whether the words begin with a time.
fn is_time(words: &[Word<'_>]) -> bool {
    let first = words[0].text;
    TIMES.contains(&first)
        || is_month(first)
        || is_year(first)
        || is_relative(words)
        || is_span(words)
        || begin_with(words, &["the", "other", "day"])
}

/// A month; "may" is more often the verb.
fn is_month(word: &str) -> bool {
    MONTHS.contains(&word) && word != "may"
}

/// A year from 1900 to 2099.
fn is_year(word: &str) -> bool {
    let digits = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    digits && (word.starts_with("19") || word.starts_with("20"))
}

/// Like "last night", "next summer", "this morning".
fn is_relative(words: &[Word<'_>]) -> bool {
    let Some(second) = words.get(1).filter(|word| word.follows()) else {
        return false;
    };
    let is_in = |lists: &[&[&str]]| lists.iter().any(|list| list.contains(&second.text));
    match words[0].text {
        "last" => second.text == "night" || is_in(&[PERIODS, SEASONS, SHORT_DAYS]),
        "next" => is_in(&[PERIODS, SEASONS]),
        "this" => is_in(&[
            PERIODS,
            SEASONS,
            &["morning", "afternoon", "evening", "past"],
        ]),
        "past" => is_in(&[PERIODS]),
        _ => false,
    }
}

/// Like "two weeks", "10 days", "a couple of years".
fn is_span(words: &[Word<'_>]) -> bool {
    let first = words[0].text;
    let is_number = first.chars().all(char::is_numeric);
    if !is_number && !QUANTITIES.contains(&first) {
        return false;
    }
    let of = first == "couple" && begin_with(words, &["couple", "of"]);
    let unit = words.get(if of { 2 } else { 1 });
    unit.is_some_and(|unit| unit.follows() && UNITS.contains(&unit.text))
}
