//! Times, dates, names and persons in texts and questions.

use proptest::prelude::*;
use remora_lexical::Analyzer;

use super::changes::{hints_at_change, speaks_of_change};
use super::dates::{closeness, day_of, named_dates};
use super::named::{asks_for_name, names_something};
use super::persons::{asks_for_advice, is_in_first_person};
use super::subject::{Opening, Subject, asks_whether, openings};
use super::temporal::{asks_when, speaks_of_time};
use crate::tests::naive::{calendar, times};
use crate::text::words::words;

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
            format!("what happened on {} {date}, {year}?", &name[..3]),
            format!("what happened on {date} {} {year}?", &name[..3]),
            format!("what happened on {date} {name}?"),
        ] {
            let dates = named_dates(&words(&question));
            prop_assert_eq!(dates.len(), 1, "{}", &question);
            for offset in -2..=11 {
                let expected = match offset {
                    -1..=1 => 1.0,
                    2..=10 => 0.5,
                    _ => 0.0,
                };
                prop_assert_eq!(closeness(&dates, day_of((day + offset) * DAY + hour * DAY / 24)), expected, "{} {}", &question, offset);
            }
        }
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
fn the_end_of_a_year_is_near_the_beginning_of_the_next() {
    let first_of_2024 = 19_723;
    let of = |question: &str, after: i64| {
        closeness(&named_dates(&words(question)), first_of_2024 + after)
    };

    for question in ["on 31 december 2023", "on december 31", "on 12/31/2023"] {
        assert_eq!([0, 1, 10].map(|after| of(question, after)), [1.0, 0.5, 0.0]);
    }
    for question in ["in december 2023", "in december"] {
        assert_eq!(
            [-1, 0, 9, 10].map(|after| of(question, after)),
            [1.0, 0.5, 0.5, 0.0]
        );
    }
}

#[test]
fn each_month_has_the_year_that_comes_after_it() {
    let dates = named_dates(&words("in july 2023 or july 2024, or in june"));

    assert_eq!(dates.len(), 3);
    assert_eq!(
        [19_540, 19_905, 19_520].map(|day| closeness(&dates, day)),
        [1.0; 3]
    );
}

#[test]
fn a_date_in_two_orders_is_met_by_both() {
    let dates = named_dates(&words("on 5/7/2023"));

    assert_eq!(
        [19_484, 19_543].map(|day| closeness(&dates, day)),
        [1.0; 2],
        "the seventh of May, the fifth of July"
    );
    assert_eq!(named_dates(&words("mar 5")).len(), 1);
    assert_eq!(named_dates(&words("the mar of the sea, a dec")), []);
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
fn a_question_in_the_first_person_asks_for_the_user() {
    for question in [
        "what did i say",
        "i want the flight that i told you about",
        "where is my boat",
        "which hotel did you recommend to me",
        "who told us what we need",
    ] {
        assert!(is_in_first_person(&words(question)), "{question}");
    }
}

#[test]
fn a_word_i_of_another_language_asks_for_nobody() {
    for question in [
        "dove sono i libri",
        "quel hôtel me conseilles-tu ?",
        "quale albergo me l'hai consigliato tu?",
        "hvad anbefalede du at have i gaven?",
        "was heb je me gegeven",
        "co robili we wrocławiu",
        "has dicho algo de mi",
        "vem bor i stockholm",
        "ma psa i kota",
        "hvem bor i danmark",
    ] {
        assert!(!is_in_first_person(&words(question)), "{question}");
    }
}

#[test]
fn who_where_which_and_what_has_a_name_ask_for_a_name() {
    for question in [
        "who was there",
        "in which town did they meet",
        "where is it?",
        "what cities did she see",
        "what movie was it",
        "do you know the name of the boat",
    ] {
        assert!(asks_for_name(&words(question)), "{question}");
    }
    for question in [
        "what colour is it",
        "what",
        "when did they meet",
        "how is the town",
        "",
        "quién es",
    ] {
        assert!(!asks_for_name(&words(question)), "{question}");
    }
}

#[test]
fn a_capital_letter_within_a_sentence_is_a_name() {
    for text in ["we went to Oslo", "Oh, Ada!", "with Ünal", "to  see, Émile"] {
        assert!(names_something(text), "{text}");
    }
    for text in [
        "",
        "Oslo",
        "And so I went.",
        "Yes. No. Maybe",
        "it is OK",
        "wir, 2 Ich",
        "  Oslo ",
    ] {
        assert!(!names_something(text), "{text}");
    }
}

#[test]
fn who_asks_for_advice_does_not_ask_about_themselves() {
    for (question, advice) in [
        ("what should i do about the boat?", true),
        ("can we sail tonight", true),
        ("where do i live?", false),
        ("should my boat stay", false),
        ("i can sail", false),
    ] {
        assert_eq!(asks_for_advice(&words(question)), advice, "{question}");
    }
}

#[test]
fn a_change_is_told_in_a_word_or_a_phrase() {
    for (text, changes) in [
        ("I live in Oslo now.", true),
        ("He no longer sails", true),
        ("They RENAMED the boat", true),
        ("It went up to 10", true),
        ("I know a renowned boat", false),
        ("up and down", false),
        ("", false),
    ] {
        assert_eq!(speaks_of_change(text), changes, "{text}");
    }
}

#[test]
fn hints_at_changes_are_words_that_may_say_something_else() {
    for (text, hints) in [
        ("I live in Oslo now.", true),
        ("She SOLD the boat", true),
        ("The rent went up", true),
        ("The dog went home", false),
        ("", false),
    ] {
        assert_eq!(hints_at_change(text), hints, "{text}");
    }
}

#[test]
fn a_question_is_about_what_it_names_or_about_who_asks() {
    let analyzer = Analyzer::new();
    let named = |names| Subject::Named(analyzer.analyze(names));
    for (question, subject) in [
        ("When is Horizon due?", named("Horizon")),
        ("what does my son study", named("son")),
        ("Does our dog like Paris?", named("Paris dog")),
        ("Where do I live?", Subject::Asker),
        ("Where did I live?", Subject::Unknown),
        ("Where should I live?", Subject::Unknown),
        ("Where does Q4-report stand?", Subject::Unknown),
        ("Who lives there?", Subject::Unknown),
        ("", Subject::Unknown),
    ] {
        assert_eq!(Subject::of(question, &analyzer), subject, "{question}");
    }
}

#[test]
fn accents_that_stand_apart_change_no_subject_and_no_name() {
    let analyzer = Analyzer::new();

    for (composed, decomposed) in [
        ("Does Élodie like tea?", "Does E\u{301}lodie like tea?"),
        ("Is this café Éden?", "Is this cafe\u{301} E\u{301}den?"),
    ] {
        assert_eq!(
            Subject::of(composed, &analyzer),
            Subject::of(decomposed, &analyzer)
        );
        assert_eq!(
            openings(composed, &analyzer),
            openings(decomposed, &analyzer)
        );
        assert!(names_something(composed) && names_something(decomposed));
    }
    assert_eq!(
        openings("E\u{301}lodie drinks", &analyzer),
        openings("Elodie drinks", &analyzer)
    );
}

#[test]
fn a_sentence_opens_with_a_word_or_with_who_speaks() {
    let analyzer = Analyzer::new();
    let opens = |text: &str, with: &str| {
        let with = analyzer.analyze(with)[0];
        openings(text, &analyzer).contains(&Opening::Term(with))
    };

    assert!(opens("Horizon was postponed", "Horizon"));
    assert!(opens("Bad news! The horizon moved.", "horizon"));
    assert!(opens("my son left, sadly", "son"));
    assert!(!opens("We moved to Horizon", "Horizon"));
    assert!(!opens("", "Horizon"));
    assert!(openings("Well. I moved", &analyzer).contains(&Opening::Speaker));
    assert!(!openings("She said I moved", &analyzer).contains(&Opening::Speaker));
}

#[test]
fn questions_for_yes_or_no_begin_with_a_verb() {
    assert!(asks_whether("Is Horizon large?"));
    assert!(!asks_whether("Was Horizon large?"));
    assert!(!asks_whether("How large is Horizon?"));
    assert!(!asks_whether(""));
}
