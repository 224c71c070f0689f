//! Typing errors in questions.

use std::collections::BTreeSet;

use proptest::prelude::*;
use prost::Message as _;
use remora_wire as wire;

use super::model::{Question, Row, Store};
use crate::text::spelling::each_near;
use crate::{Profile, Recall, Scope};

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

/// The texts of the messages that a question finds by words, best first. All of its words are doubtful.
fn found(recall: &Recall, text: &str, change: impl FnOnce(&mut Question)) -> Vec<String> {
    let mut question = Question::new(Profile::Hybrid, text, None);
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '_');
    question.doubtful = words.map(str::to_owned).collect();
    change(&mut question);
    let hits = question.ask(recall, Scope::User { user: USER }).hits;
    hits.iter().map(|hit| text_of(&hit.encoded)).collect()
}

fn text_of(encoded: &[u8]) -> String {
    wire::Message::decode(encoded).expect("it was encoded").text
}

#[test]
fn a_word_that_no_message_has_finds_one_that_differs_by_one_error() {
    let recall = saying(&[
        &["No shellfish today", "The festival begins"],
        &["We receive guests", "Her horse's stable"],
    ]);

    for (typed, meant) in [
        ("Any shelfish?", "No shellfish today"),
        ("the Festivl", "The festival begins"),
        ("«recieve»", "We receive guests"),
        ("some guessts", "We receive guests"),
        ("the shellgish", "No shellfish today"),
        ("the hoorse's", "Her horse's stable"),
    ] {
        assert_eq!(found(&recall, typed, |_| ()), [meant], "{typed}");
    }
}

#[test]
fn what_is_no_typing_error_finds_nothing_else() {
    let recall = saying(&[&[
        "Her horse runs near the river",
        "The tide, musty PAYMO-4711 of jmeyer@acme.com and lexxer.rs",
    ]]);

    for text in [
        "shelfish",              // nothing like it is there
        "tode",                  // too short
        "otable hhorse_ h0rse",  // the first letter differs; other characters
        "rivvverr",              // two errors
        "would",                 // a stop word
        "mustn't",               // a contraction
        "PAYMT-99 jmeier@x.org", // identifiers
        "lexer.rs2",             // another one
        "",
    ] {
        assert_eq!(found(&recall, text, |_| ()), [""; 0], "{text}");
    }
    let as_it_is = |question: &mut Question| question.doubtful.clear();
    assert_eq!(found(&recall, "hoorse", as_it_is), [""; 0]);
}

#[test]
fn of_several_words_the_one_that_most_messages_have_is_meant() {
    let recall = saying(&[&["a plaster", "a planter"], &["one planter"]]);

    assert_eq!(
        found(&recall, "the plater", |_| ()),
        ["a planter", "one planter"]
    );
}

#[test]
fn only_messages_that_may_be_found_say_which_words_there_are() {
    let mut store = Store::default();
    for (sequence, (role, text)) in (1..).zip([
        ("user", "a plaster"),
        ("system", "a planter"),
        ("system", "the planter"),
        ("system", "a plater"),
    ]) {
        let mut row = Row::new(sequence, sequence, text);
        role.clone_into(&mut row.role);
        store.put(USER, 1, row);
    }
    let recall = store.fresh();

    let filtered = |question: &mut Question| question.filter.roles = vec!["user".to_owned()];
    let without = |question: &mut Question| question.without_roles = vec!["system".to_owned()];

    assert_eq!(found(&recall, "plater", filtered), ["a plaster"]);
    assert_eq!(found(&recall, "plater", without), ["a plaster"]);
    assert_eq!(found(&recall, "plater", |_| ()), ["a plater"]);
}

#[test]
fn the_message_that_is_the_question_says_nothing_for_its_words() {
    let recall = saying(&[&["I eat no shellfish", "Any shelfish here?", "shelfish"]]);
    let source = |question: &mut Question| {
        question.source = Some((1, 3));
        question.exclude = vec![(1, 3)];
    };

    assert_eq!(
        found(&recall, "shelfish", source),
        ["Any shelfish here?"],
        "another message has it"
    );

    let recall = saying(&[&["I eat no shellfish", "nothing", "shelfish"]]);

    assert_eq!(found(&recall, "shelfish", source), ["I eat no shellfish"]);
}

#[test]
fn the_name_of_a_speaker_stays() {
    let mut store = Store::default();
    let mut row = Row::new(1, 1, "I collect clocks");
    "Jonna".clone_into(&mut row.name);
    store.put(USER, 1, row);
    store.put(USER, 1, Row::new(2, 2, "My aunt Joanna"));
    let recall = store.fresh();
    let ruled = |question: &mut Question| {
        question.weights.speaker = 0.3;
    };

    assert_eq!(found(&recall, "Jonna", ruled), ["I collect clocks"]);
}

#[test]
fn a_corrected_word_counts_less_than_a_typed_one() {
    let recall = saying(&[&["shellfish", "festival"]]);

    let texts = found(&recall, "shelfish festival", |_| ());

    assert_eq!(texts, ["festival", "shellfish"]);
}

#[test]
fn words_alone_are_searched_as_they_are_typed() {
    let recall = saying(&[&["no shellfish"]]);
    let lexical = |question: &mut Question| question.profile = Profile::Lexical;

    assert_eq!(found(&recall, "shelfish", lexical), [""; 0]);
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
