//! Whether a message says that something has changed.

use crate::text::words::{begin_with, words};

/// Words that say by themselves that what was so before is so no longer.
const CHANGES: &[&str] = &[
    "anymore",
    "became",
    "cancelled",
    "canceled",
    "changed",
    "correction",
    "cut",
    "increased",
    "instead",
    "latest",
    "lowered",
    "migrated",
    "moved",
    "new",
    "now",
    "nowadays",
    "postponed",
    "quit",
    "raised",
    "reduced",
    "renamed",
    "replaced",
    "rescheduled",
    "stopped",
    "switched",
    "updated",
    "upgraded",
];

/// The same in several words.
const PHRASES: &[&[&str]] = &[
    &["any", "more"],
    &["any", "longer"],
    &["down", "to"],
    &["from", "now", "on"],
    &["no", "longer"],
    &["up", "to"],
];

/// Words that often say so, and often something else.
const HINTS: &[&str] = &[
    "actually",
    "again",
    "back",
    "closed",
    "converted",
    "delayed",
    "died",
    "divorced",
    "doubled",
    "dropped",
    "ended",
    "engaged",
    "expired",
    "extended",
    "fell",
    "finished",
    "graduated",
    "grew",
    "halved",
    "hired",
    "joined",
    "lately",
    "left",
    "married",
    "merged",
    "promoted",
    "recently",
    "relocated",
    "removed",
    "resigned",
    "retired",
    "returned",
    "reverted",
    "rewritten",
    "rewrote",
    "rose",
    "scrapped",
    "shifted",
    "shortened",
    "since",
    "sold",
    "split",
    "started",
    "swapped",
    "transferred",
    "turned",
];

/// The same in several words.
const HINT_PHRASES: &[&[&str]] = &[
    &["after", "all"],
    &["as", "of"],
    &["brought", "forward"],
    &["called", "off"],
    &["gave", "up"],
    &["given", "up"],
    &["got", "rid", "of"],
    &["handed", "over"],
    &["in", "future"],
    &["moved", "on"],
    &["put", "off"],
    &["taken", "over"],
    &["these", "days"],
    &["took", "over"],
    &["traded", "in"],
    &["turns", "out"],
    &["used", "to"],
    &["went", "down"],
    &["went", "up"],
];

/// Whether a text says that something has changed.
pub(crate) fn speaks_of_change(text: &str) -> bool {
    has(text, CHANGES, PHRASES)
}

/// Whether a text says so, or may.
pub(crate) fn hints_at_change(text: &str) -> bool {
    speaks_of_change(text) || has(text, HINTS, HINT_PHRASES)
}

/// Whether a text has one of the words or phrases.
fn has(text: &str, single: &[&str], phrases: &[&[&str]]) -> bool {
    let lower = text.to_lowercase();
    let words = words(&lower);
    (0..words.len()).any(|start| {
        let words = &words[start..];
        single.contains(&words[0].text) || phrases.iter().any(|phrase| begin_with(words, phrase))
    })
}
