//! The rules against their definition.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::model::{MODEL, Question, RULES, Row, Store, places};
use super::naive::{Intent, naive, ruled};
use super::scores::{ANN, direction, rows_of};
use crate::{Found, Profile, Weights};

const HOUR: i64 = 3_600_000_000;

/// The second of May 2023, eight in the evening.
const EVENING: i64 = 1_683_057_600_000_000;

const TEXTS: [&str; 9] = [
    "",
    "a boat on the river",
    "did you see the lantern?",
    "yes, two days ago",
    "the market, Ada?",
    "Grace is at the market since Monday",
    "lantern",
    "boat boat?",
    "by boat to Oslo",
];

const QUESTIONS: [&str; 6] = [
    "where is the boat",
    "when did ada see the lantern?",
    "what did I say to Grace and Ada",
    "what did we see at the market on 3 may 2023?",
    "how long is Grace's boat",
    "my river in may 2023",
];

/// What the questions are about.
fn intent(question: usize) -> Intent {
    let named = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
    match question {
        1 => Intent {
            named: named(&["Ada"]),
            when: true,
            ..Intent::default()
        },
        2 => Intent {
            named: named(&["Ada", "Grace"]),
            first_person: true,
            ..Intent::default()
        },
        3 => Intent {
            first_person: true,
            date: Some((2023, 5, Some(3))),
            ..Intent::default()
        },
        0 => Intent {
            name: true,
            ..Intent::default()
        },
        4 => Intent {
            named: named(&["Grace"]),
            when: true,
            ..Intent::default()
        },
        5 => Intent {
            first_person: true,
            date: Some((2023, 5, None)),
            ..Intent::default()
        },
        _ => Intent::default(),
    }
}

fn row() -> impl Strategy<Value = (u64, Row)> {
    let speakers = vec![
        ("user", ""),
        ("assistant", ""),
        ("user", "Ada"),
        ("assistant", "Grace"),
    ];
    let role = prop::sample::select(speakers);
    let text = prop::sample::select(TEXTS.as_slice());
    let session = prop::sample::select(vec!["", "", "one", "two"]);
    (
        1u64..3,
        role,
        text,
        session,
        -1i64..400,
        prop::option::of(direction()),
    )
        .prop_map(|(uid, (role, name), text, session, hours, vector)| {
            let mut row = Row {
                role: role.to_owned(),
                name: name.to_owned(),
                session_id: session.to_owned(),
                time: hours,
                ..Row::new(0, 0, text)
            };
            row.vectors
                .extend(vector.map(|values| (MODEL.to_owned(), values)));
            (uid, row)
        })
}

/// A store whose messages go on in steps of up to some days, now and then backwards.
fn store() -> impl Strategy<Value = Store> {
    prop::collection::vec(
        (row(), prop::sample::select(vec![-5, 0, 1, 3, 5, 30, 200])),
        1..50,
    )
    .prop_map(|rows| {
        let mut store = Store::default();
        let mut time = EVENING;
        for (number, ((uid, mut row), hours)) in (1..).zip(rows) {
            time += hours * HOUR;
            (row.sequence, row.revision, row.time) = (number, number, time);
            store.put("ann", uid, row);
        }
        store
    })
}

fn weights() -> impl Strategy<Value = Weights> {
    prop::collection::vec(any::<bool>(), 12).prop_map(|chosen| {
        let mut weights = RULES;
        for (name, chosen) in [
            "cosine", "bm25", "exact", "answer", "next", "speaker", "temporal", "date", "named",
            "passage", "session", "nearby",
        ]
        .into_iter()
        .zip(chosen)
        {
            if !chosen && let Some(weight) = weights.named(name) {
                *weight = 0.0;
            }
        }
        weights
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn scores_are_those_of_the_rules_as_they_are_defined(
        store in store(), question in 0..QUESTIONS.len(), weights in weights(), vector in prop::option::of(direction()),
    ) {
        let mut asked = Question::new(Profile::Hybrid, QUESTIONS[question], vector.as_deref());
        asked.weights = weights;

        let found = asked.ask(&store.fresh(), ANN);

        let rows = rows_of(&store);
        let expected = ruled(&rows, QUESTIONS[question], vector.as_deref(), &weights, &intent(question));
        for hit in &found.hits {
            let place = rows.iter().position(|(uid, row)| (*uid, row.sequence) == (hit.uid, hit.sequence));
            let expected = expected[place.expect("a hit is a row")];
            prop_assert!((hit.score - expected).abs() < 1e-5, "{} is not {}: {:?}", hit.score, expected, hit.components);
        }
        let scored = naive(&rows, QUESTIONS[question], vector.as_deref());
        let considered = scored.iter().zip(&expected).filter(|(row, score)| {
            row.can_be_found() && (vector.is_some() || **score > 0.0)
        }).count();
        prop_assert_eq!(found.hits.len(), considered);
        prop_assert!(found.hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
    }

    #[test]
    fn components_of_rules_add_up_to_the_score_exactly(
        store in store(), question in 0..QUESTIONS.len(), weights in weights(), vector in prop::option::of(direction()),
    ) {
        let mut asked = Question::new(Profile::Hybrid, QUESTIONS[question], vector.as_deref());
        asked.weights = weights;

        for hit in asked.ask(&store.fresh(), ANN).hits {
            let sum = hit.components.iter().fold(0.0, |sum, part| sum + part.value * part.weight);
            prop_assert_eq!(sum, hit.score);
        }
    }
}

#[test]
fn what_asks_and_says_much_else_is_no_question() {
    let asks = crate::text::signs::asks;
    assert!(asks(&format!("{} why?", "word ".repeat(59))));
    assert!(!asks(&format!("{} why?", "word ".repeat(60))));
}

#[test]
fn the_best_of_a_long_session_counts_sixteen_messages_around_it() {
    let mut store = Store::default();
    for number in 1..=50 {
        let text = if number == 25 { "a boat" } else { "nothing" };
        store.put("ann", 1, Row::new(number, number, text));
    }
    let mut question = Question::new(Profile::Hybrid, "boat", None);
    question.weights.session = 0.3;

    let mut found = places(&question.ask(&store.fresh(), ANN));

    found.sort_unstable();
    assert_eq!(
        found,
        (9..=41).map(|number| (1, number)).collect::<Vec<_>>()
    );
}

/// The names of the components of the hit at a place.
fn names(found: &Found, place: usize) -> Vec<&'static str> {
    found.hits[place]
        .components
        .iter()
        .map(|part| part.name)
        .collect()
}

#[test]
fn an_answer_without_a_word_of_the_question_is_found_by_what_it_answers() {
    let mut store = Store::default();
    for (number, text) in (1..).zip([
        "Good morning!",
        "Which colour has the boat?",
        "Red.",
        "Bye.",
    ]) {
        store.put("ann", 1, Row::new(number, number, text));
    }
    let mut question = Question::new(Profile::Hybrid, "the boat's colour", None);
    question.weights = Weights {
        answer: 0.3,
        ..Weights::default()
    };

    let found = question.ask(&store.fresh(), ANN);

    assert_eq!(places(&found), [(1, 2), (1, 3)]);
    assert_eq!(names(&found, 1), ["bm25", "answer"]);
    assert_eq!(found.hits[1].score, 0.3);
}

#[test]
fn rules_are_silent_unless_they_have_a_weight() {
    let mut store = Store::default();
    let sent = Row {
        name: "Ada".to_owned(),
        time: EVENING,
        ..Row::new(1, 1, "yesterday a boat?")
    };
    store.put("ann", 1, sent);
    store.put(
        "ann",
        1,
        Row {
            time: EVENING,
            ..Row::new(2, 2, "a boat")
        },
    );

    let plain = Question::new(
        Profile::Hybrid,
        "When did Ada see a boat on 2 May 2023?",
        Some(&[1.0]),
    );
    let mut ruled = plain.clone();
    ruled.weights = RULES;
    let recall = store.fresh();

    assert_eq!(names(&plain.ask(&recall, ANN), 0), ["bm25"]);
    assert_eq!(
        names(&ruled.ask(&recall, ANN), 0),
        [
            "bm25", "exact", "next", "speaker", "temporal", "date", "passage", "session", "nearby"
        ]
    );
    assert_eq!(
        names(&ruled.ask(&recall, ANN), 1),
        [
            "bm25", "exact", "answer", "date", "passage", "session", "nearby"
        ]
    );
}

#[test]
fn neighbours_that_a_filter_hides_still_lend_their_scores() {
    let mut store = Store::default();
    store.put("ann", 1, Row::new(1, 1, "Which colour has the boat?"));
    store.put(
        "ann",
        1,
        Row {
            role: "assistant".to_owned(),
            ..Row::new(2, 2, "Red.")
        },
    );
    let mut question = Question::new(Profile::Hybrid, "the boat's colour", None);
    question.weights = Weights {
        answer: 0.3,
        ..Weights::default()
    };
    question.filter.roles = vec!["assistant".to_owned()];

    let found = question.ask(&store.fresh(), ANN);

    assert_eq!(places(&found), [(1, 2)]);
    assert_eq!(found.hits[0].score, 0.3);
}

/// Two messages a day apart of the words and vectors given, and a question that is near both; and one of something else.
fn order_of(first: (&str, [f32; 2]), second: (&str, [f32; 2])) -> Vec<(u64, u64)> {
    order_for("door code", first, second)
}

fn order_for(question: &str, first: (&str, [f32; 2]), second: (&str, [f32; 2])) -> Vec<(u64, u64)> {
    let mut store = Store::default();
    let other = ("a code review", [-1.0, 0.0]);
    for (number, (text, vector)) in (1..).zip([first, second, other]) {
        let mut row = Row::new(number, number, text);
        row.time = EVENING + number as i64 * 24 * HOUR;
        row.vectors.insert(MODEL.to_owned(), vector.to_vec());
        store.put("ann", 1, row);
    }
    let mut question = Question::new(Profile::Hybrid, question, Some(&[1.0, 0.0]));
    question.weights.exact = 0.2;
    question.weights.newer = 1.0;
    question.k = 2;
    places(&question.ask(&store.fresh(), ANN))
}

#[test]
fn what_is_said_again_goes_before_what_was_said_first() {
    let first = ("the door code is 1234", [1.0, 0.1]);
    let again = ("they changed the door code to 5678", [1.0, 0.3]);

    assert_eq!(order_of(first, again), [(1, 2), (1, 1)]);
    assert_eq!(order_of(again, first), [(1, 2), (1, 1)]);
}

#[test]
fn what_has_fewer_words_of_the_question_or_says_something_else_is_not_newer() {
    let first = ("the door code is 1234", [1.0, 0.1]);

    assert_eq!(
        order_of(first, ("the door is open", [1.0, 0.2])),
        [(1, 1), (1, 2)]
    );
    assert_eq!(
        order_of(first, ("the door code", [0.9, -2.0])),
        [(1, 1), (1, 2)]
    );
}

#[test]
fn what_says_that_something_has_changed_needs_fewer_words() {
    let first = ("the door code is 1234", [1.0, 0.1]);
    let changed = ("the door has a new lock, 5678 opens it", [1.0, 1.2]);
    let asks = ("is there a new door?", [1.0, 1.2]);

    assert_eq!(order_of(first, changed), [(1, 2), (1, 1)]);
    assert_eq!(order_of(first, asks), [(1, 1), (1, 2)]);
}

#[test]
fn what_has_another_name_or_number_is_not_newer() {
    let first = ("the garage on door Code wants 9 euros", [1.0, 0.1]);
    let other = ("the door moved, they want 10 euros now", [1.0, 0.2]);

    assert_eq!(order_of(first, other), [(1, 1), (1, 2)]);
}

#[test]
fn what_begins_with_the_subject_and_hints_at_a_change_needs_no_other_word() {
    let order = |question, later| {
        let first = ("Horizon is due on Friday, says my boss", [1.0, 0.1]);
        order_for(question, first, (later, [1.0, 0.9]))
    };
    let (newest, oldest) = ([(1, 2), (1, 1)], [(1, 1), (1, 2)]);
    let due = "When is Horizon due?";

    assert_eq!(order(due, "Horizon was postponed, sadly."), newest);
    assert_eq!(order(due, "Bad news. Horizon got delayed."), newest);
    assert_eq!(order(due, "Has Horizon been postponed?"), oldest);
    assert_eq!(order(due, "Horizon is large."), oldest);
    assert_eq!(order(due, "Sales of Horizon were postponed."), oldest);
    assert_eq!(order("What does my boss say?", "My boss has left."), newest);
    assert_eq!(
        order("What does the boss say?", "My boss has left."),
        oldest
    );
}

#[test]
fn what_has_changed_may_be_farther_from_a_question_for_yes_or_no() {
    let order = |question| {
        let first = ("Horizon is large", [1.0, 0.0]);
        order_for(question, first, ("Horizon was cut in half", [1.0, 1.0]))
    };

    assert_eq!(order("Is Horizon large?"), [(1, 2), (1, 1)]);
    assert_eq!(order("How large is Horizon?"), [(1, 1), (1, 2)]);
}

#[test]
fn what_a_user_says_of_a_change_is_newer_where_who_asks_is_the_subject() {
    let order = |question, later| {
        let first = ("I live in Porto", [1.0, 0.1]);
        order_for(question, first, (later, [1.0, 0.8]))
    };
    let (newest, oldest) = ([(1, 2), (1, 1)], [(1, 1), (1, 2)]);

    assert_eq!(order("Where do I live?", "We moved to Riga."), newest);
    assert_eq!(order("Where did I live?", "We moved to Riga."), oldest);
    assert_eq!(order("Where do I live?", "They moved to Riga."), oldest);
    assert_eq!(order("Where do they live?", "We moved to Riga."), oldest);
}

/// A store of messages with vectors, a minute apart, and a question with one.
fn asked(messages: &[(&str, [f32; 2])], question: &str) -> (Store, Question) {
    let mut store = Store::default();
    for (number, (text, vector)) in (1..).zip(messages) {
        let mut row = Row::new(number, number, text);
        row.time = EVENING + number as i64 * HOUR / 60;
        row.vectors.insert(MODEL.to_owned(), vector.to_vec());
        store.put("ann", 1, row);
    }
    (
        store,
        Question::new(Profile::Hybrid, question, Some(&[1.0, 0.0])),
    )
}

#[test]
fn the_message_with_the_identifier_leads() {
    let messages = [
        ("your parcel ORD-428555 arrives on Tuesday", [1.0, 0.3]),
        ("please note ORD-220319 for the tablet", [1.0, 1.5]),
        ("a parcel arrives", [1.0, 0.1]),
    ];
    let (store, mut question) = asked(&messages, "when will ORD-220319 arrive?");
    question.weights.identifier = 0.6;

    let found = question.ask(&store.fresh(), ANN);

    assert_eq!(places(&found)[0], (1, 2));
    assert!(names(&found, 0).contains(&"identifier"));
    question.text = "when will the parcel of 2023 arrive?".to_owned();
    let found = question.ask(&store.fresh(), ANN);
    assert!(!names(&found, 0).contains(&"identifier"));
}

#[test]
fn an_identifier_that_most_messages_have_says_little() {
    let messages = [
        ("api-2 is down", [1.0, 1.0]),
        ("api-2 is up", [1.0, 1.0]),
        ("all is well", [1.0, 0.0]),
    ];
    let (store, mut question) = asked(&messages, "how is api-2?");
    question.weights = Weights {
        cosine: 0.0,
        bm25: 0.0,
        identifier: 1.0,
        ..Weights::default()
    };

    let scores: Vec<f64> = question
        .ask(&store.fresh(), ANN)
        .hits
        .iter()
        .map(|hit| hit.score)
        .collect();

    assert!(0.0 < scores[0] && scores[0] < 0.3, "{scores:?}");
    assert_eq!(scores[2], 0.0);
}

#[test]
fn what_is_recent_counts_by_its_half_life() {
    let messages = [("boat", [1.0, 0.0]), ("lantern", [1.0, 0.0])];
    let (store, mut question) = asked(&messages, "river");
    question.weights.recency = 0.3;
    let recall = store.fresh();

    assert_eq!(places(&question.ask(&recall, ANN)), [(1, 1), (1, 2)]);
    question.half_life = Some(30.0);
    let found = question.ask(&recall, ANN);

    assert_eq!(places(&found), [(1, 2), (1, 1)]);
    let recency = |place: usize| {
        let mut parts = found.hits[place].components.iter();
        parts
            .find(|part| part.name == "recency")
            .map(|part| part.value)
    };
    assert_eq!((recency(0), recency(1)), (Some(1.0), Some(0.25)));
}

#[test]
fn a_message_that_is_excluded_lends_nothing() {
    let messages = [
        ("which colour has the boat?", [1.0, 0.0]),
        ("red", [0.0, 1.0]),
        ("the boat", [0.5, 1.0]),
    ];
    let (store, mut question) = asked(&messages, "which colour has the boat?");
    question.weights = RULES;
    let recall = store.fresh();
    let whole = question.ask(&recall, ANN);
    question.exclude = vec![(1, 1)];

    let found = question.ask(&recall, ANN);

    assert_eq!(places(&found), [(1, 3), (1, 2)]);
    let score = |found: &Found, sequence| {
        let mut hits = found.hits.iter();
        hits.find(|hit| hit.sequence == sequence)
            .map(|hit| hit.score)
    };
    assert!(score(&found, 2) < score(&whole, 2));
    assert!(score(&found, 3) > Some(0.0));
}

#[test]
fn in_a_large_scope_only_the_best_thousand_pass_something_on() {
    let mut store = Store::default();
    for number in 1..=1_200 {
        let near = number <= 1_100;
        let text = if number % 2 == 0 { "yes" } else { "really?" };
        let vector = if near { [1.0, 0.1] } else { [0.1, 1.0] };
        store.put(
            "ann",
            1,
            Row::new(number, number, text).embedded(MODEL, &vector),
        );
    }
    let mut question = Question::new(Profile::Hybrid, "river", Some(&[1.0, 0.0]));
    question.weights.answer = 0.3;

    let found = question.ask(&store.fresh(), ANN);

    let answer = |hit: &crate::FoundMessage| {
        let mut parts = hit.components.iter();
        parts
            .find(|part| part.name == "answer")
            .map(|part| part.value)
    };
    let answers: Vec<_> = found.hits.iter().filter_map(answer).collect();
    assert!(!answers.is_empty());
    assert!(answers.iter().all(|value| *value == 0.0), "{answers:?}");
}
