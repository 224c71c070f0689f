//! What rules read in texts and questions.

use proptest::prelude::*;

use super::naive::{calendar, times};
use crate::recall::dates::{closeness, day_of, named_dates};
use crate::recall::inheritance::{asks, is_short};
use crate::recall::temporal::{asks_when, speaks_of_time};
use crate::recall::words::words;
use crate::recall::{Names, names};

const DAY: i64 = 86_400_000_000;

/// Words of which times are made, and others beside them.
const WORDS: [&str; 47] = [
    "a",
    "one",
    "Two",
    "three",
    "few",
    "couple",
    "of",
    "10",
    "day",
    "days",
    "week",
    "weeks",
    "Month",
    "months",
    "year",
    "years",
    "last",
    "Next",
    "this",
    "past",
    "night",
    "weekend",
    "summer",
    "fall",
    "monday",
    "mon",
    "tue",
    "tues",
    "thur",
    "morning",
    "the",
    "other",
    "yesterday",
    "ago",
    "since",
    "justice",
    "just",
    "soon",
    "May",
    "March",
    "1999",
    "2023",
    "20235",
    "1899",
    "birthday's",
    "well-earlier",
    "boat",
];

proptest! {
    #[test]
    fn texts_speak_of_a_time_where_the_expression_says_so(
        words in prop::collection::vec((prop::sample::select(WORDS.as_slice()), prop::sample::select(vec![" ", " ", " ", ", ", "  ", "-"])), 0..7),
    ) {
        let text: String = words.iter().map(|(word, gap)| [*word, *gap].concat()).collect();

        let expected = times().is_match(&text).expect("the expression is sound");

        prop_assert_eq!(speaks_of_time(&text), expected, "{}", text);
    }

    #[test]
    fn a_day_meets_itself_in_every_way_of_writing_it(day in 10_957i64..40_000, hour in 0i64..24) {
        let (year, month, date) = calendar(day);
        let name = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
            "november", "december"][month as usize - 1];
        for question in [
            format!("what happened on {date} {name} {year}?"),
            format!("what happened on the {date}th of {name}, {year}"),
            format!("what happened on {name} {date}, {year}?"),
            format!("what happened on {date}.{month}.{year}?"),
            format!("what happened on {year}-{month:02}-{date:02}?"),
        ] {
            let dates = named_dates(&words(&question));
            prop_assert_eq!(dates.len(), 1, "{}", &question);
            for offset in -2..=11 {
                let expected = match offset {
                    _ if calendar(day + offset).0 != year => 0.0,
                    -1..=1 => 1.0,
                    2..=10 => 0.5,
                    _ => 0.0,
                };
                prop_assert_eq!(closeness(&dates, day_of((day + offset) * DAY + hour * DAY / 24)), expected, "{} {}", &question, offset);
            }
        }
    }

    #[test]
    fn no_name_is_left_and_nothing_else_is_lost(words in prop::collection::vec("[a-c]{1,3}", 1..10)) {
        let text = words.join(" ");
        let names = Names::of(["Ab", "Bca cc", "user"]);

        let stripped = names.strip(&text);

        let kept: Vec<_> = words.iter().filter(|word| !["ab", "bca", "cc"].contains(&word.as_str())).cloned().collect();
        let expected = if kept.is_empty() { text } else { kept.join(" ") };
        prop_assert_eq!(stripped, expected);
    }
}

/// How well the first of May 2023 and the third of June 2023 meet a question's dates.
fn may_and_june(question: &str) -> [f32; 2] {
    let dates = named_dates(&words(&question.to_lowercase()));
    [19_478, 19_511].map(|day| closeness(&dates, day))
}

#[test]
fn a_month_is_met_by_its_days_and_half_by_the_first_of_the_next() {
    assert_eq!(may_and_june("What did he paint in May 2023?"), [1.0, 0.5]);
    assert_eq!(may_and_june("What did he paint in June?"), [0.0, 1.0]);
    assert_eq!(may_and_june("What did he paint in June 2022?"), [0.0, 0.0]);
    assert_eq!(may_and_june("What did he paint in 2023?"), [0.3, 0.3]);
    assert_eq!(
        may_and_june("What did he paint in April or June?"),
        [0.5, 1.0]
    );
    assert_eq!(
        may_and_june("What did he paint on the 31st of February 2023?"),
        [0.0, 0.0]
    );
}

#[test]
fn may_is_a_month_only_where_it_stands_as_one() {
    for question in ["What may help?", "Who may, in the end, come?"] {
        assert_eq!(named_dates(&words(&question.to_lowercase())), []);
    }
    for question in [
        "Who came in May?",
        "Who came on May 1?",
        "Who came May 2023?",
        "who came since may",
    ] {
        assert_eq!(
            named_dates(&words(&question.to_lowercase())).len(),
            1,
            "{question}"
        );
    }
}

#[test]
fn questions_ask_when_at_their_beginning() {
    for question in [
        "when did he go",
        " what year was it",
        "how long did it take",
        "which weekend suits",
        "on which date",
        "and how long ago was it",
        "in what month",
    ] {
        assert!(asks_when(&words(question)), "{question}");
    }
    for question in [
        "what happened when he went",
        "whenever",
        "what yearly fee",
        "how  long",
        "",
        "how",
    ] {
        assert!(!asks_when(&words(question)), "{question}");
    }
}

#[test]
fn questions_are_asked_in_many_scripts() {
    for text in ["Why?", "为什么？", "لماذا؟"] {
        assert!(asks(text));
    }
    assert!(!asks("Because."));
}

#[test]
fn a_text_is_short_up_to_two_hundred_words() {
    assert!(is_short(&"word ".repeat(200)));
    assert!(!is_short(&"word ".repeat(201)));
}

#[test]
fn names_leave_with_their_possessive_and_their_blanks() {
    let names = Names::of(["Caroline", "Melanie O'Hara"]);

    for (text, stripped) in [
        ("What is Caroline's identity?", "What is identity?"),
        (
            "Hey Mel, hi Melanie!  How are you, caroline?",
            "Hey Mel, hi! How are you,?",
        ),
        (
            "Carolines, Caroline2 and O_Hara stay",
            "Carolines, Caroline2 and O_Hara stay",
        ),
        ("Caroline’s plan\nand OHARA, Hara’s", "plan\nand OHARA,"),
        ("Caroline!", "Caroline!"),
        ("Übrigens, Caroline: ja", "Übrigens, : ja"),
        ("", ""),
    ] {
        assert_eq!(names.strip(text), stripped);
    }
}

#[test]
fn role_words_and_single_letters_are_no_names() {
    let names = Names::of(["user", "Assistant", "SYSTEM", "tool", "J. Doe"]);

    assert_eq!(names, Names::of(["Doe"]));
    assert!(names::is_role("User") && !names::is_role("users"));
}
