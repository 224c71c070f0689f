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

/// Whether a text says that something has changed.
pub(crate) fn speaks_of_change(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = words(&lower);
    (0..words.len()).any(|start| {
        let words = &words[start..];
        CHANGES.contains(&words[0].text) || PHRASES.iter().any(|phrase| begin_with(words, phrase))
    })
}
