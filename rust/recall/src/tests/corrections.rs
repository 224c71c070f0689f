//! Typing errors in questions.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::model::{Row, Store, TENANT};
use crate::text::spelling::each_near;
use crate::{Recall, Scope, Typed};

const USER: &str = "sarah";

/// A recall with texts as messages, a conversation for each list of them.
fn saying(conversations: &[&[&str]]) -> Recall {
    let mut store = Store::default();
    for (uid, texts) in (1..).zip(conversations) {
        for (sequence, text) in (1..).zip(*texts) {
            store.put(USER, uid, Row::new(sequence, sequence, text));
        }
    }
    store.fresh()
}

/// What becomes of a text whose words are all doubtful.
fn corrected(recall: &Recall, text: &str, exclude: &[(u64, u64)]) -> String {
    let lower = text.to_lowercase();
    let doubtful: Vec<_> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let typed = Typed {
        text,
        doubtful: &doubtful,
        exclude,
    };
    recall.corrected(TENANT, Scope::User { user: USER }, typed, u64::MAX)
}

#[test]
fn a_word_that_no_message_has_becomes_one_that_differs_by_one_error() {
    let recall = saying(&[&["No shellfish at the festival"], &["We receive guests"]]);

    for (typed, meant) in [
        ("Any shelfish?", "Any shellfish?"),
        ("the Festivl, «recieve»", "the festival, «receive»"),
        ("shellfisch shellgish", "shellfish shellfish"),
        ("some guessts", "some guests"),
    ] {
        assert_eq!(corrected(&recall, typed, &[]), meant);
    }
}

#[test]
fn what_is_no_typing_error_stays() {
    let recall = saying(&[&[
        "Her horse runs near the river",
        "The tide, and code shell7fish",
    ]]);

    for text in [
        "horses running",           // forms of words that are there
        "shelfish",                 // nothing like it is there
        "tode",                     // too short
        "orse hhorse_ h0rse hörse", // the first letter differs; other characters
        "rivvverr",                 // two errors
        "would",                    // a stop word
        "",
    ] {
        assert_eq!(corrected(&recall, text, &[]), text);
    }
}

#[test]
fn a_word_that_is_not_doubtful_stays() {
    let recall = saying(&[&["Her horse"]]);
    let typed = Typed {
        text: "Her house",
        doubtful: &["her"],
        exclude: &[],
    };

    let text = recall.corrected(TENANT, Scope::User { user: USER }, typed, u64::MAX);

    assert_eq!(text, "Her house");
}

#[test]
fn of_several_words_the_one_that_most_messages_have_is_meant() {
    let recall = saying(&[
        &["a plaster", "a planter"],
        &["one planter", "a planter, yes"],
    ]);

    assert_eq!(corrected(&recall, "the plater", &[]), "the planter");
    let excluded = [(1, 2), (2, 1), (2, 2)];
    assert_eq!(corrected(&recall, "the plater", &excluded), "the plaster");
}

#[test]
fn the_message_that_is_the_question_says_nothing_for_its_words() {
    let recall = saying(&[&["I eat no shellfish", "Any shelfish here?"]]);

    assert_eq!(corrected(&recall, "shelfish", &[]), "shelfish");
    assert_eq!(corrected(&recall, "shelfish", &[(1, 2)]), "shellfish");
}

#[test]
fn another_scope_has_other_words() {
    let recall = saying(&[&["no shellfish"], &["no festival"]]);
    let typed = Typed {
        text: "shelfish festivl",
        doubtful: &["shelfish", "festivl"],
        exclude: &[],
    };

    let part = Scope::Part { user: USER, uid: 2 };

    assert_eq!(
        recall.corrected(TENANT, part, typed, u64::MAX),
        "shelfish festival"
    );
}

/// The number of single errors between two words: letters added, left out or replaced, neighbours exchanged.
fn errors(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut table = vec![vec![0; right.len() + 1]; left.len() + 1];
    for row in 0..=left.len() {
        for column in 0..=right.len() {
            table[row][column] = if row == 0 || column == 0 {
                row + column
            } else {
                let differs = usize::from(left[row - 1] != right[column - 1]);
                let mut least = (table[row - 1][column - 1] + differs)
                    .min(table[row - 1][column] + 1)
                    .min(table[row][column - 1] + 1);
                if row > 1
                    && column > 1
                    && left[row - 1] == right[column - 2]
                    && left[row - 2] == right[column - 1]
                {
                    least = least.min(table[row - 2][column - 2] + 1);
                }
                least
            };
        }
    }
    table[left.len()][right.len()]
}

fn near(word: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each_near(word, |spelling| {
        found.insert(spelling.to_owned());
    });
    found
}

proptest! {
    #[test]
    fn the_spellings_near_a_word_are_one_error_away(word in "[a-z]{2,9}") {
        for spelling in near(&word) {
            prop_assert!(errors(&word, &spelling) <= 1, "{word}, {spelling}");
            prop_assert_eq!(spelling.as_bytes()[0], word.as_bytes()[0]);
        }
    }

    #[test]
    fn all_spellings_one_error_away_that_begin_alike_are_near(word in "[a-c]{1,5}", other in "[a-c]{1,6}") {
        let is_near = errors(&word, &other) == 1 && word.as_bytes()[0] == other.as_bytes()[0];
        prop_assert!(!is_near || near(&word).contains(&other));
    }
}
