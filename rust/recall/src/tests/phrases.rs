//! What rules of no language read in texts and questions.

use proptest::prelude::*;

use crate::Names;
use crate::text::identifiers::identifiers;
use crate::text::names;
use crate::text::signs::{asks, is_short};
use crate::text::words::words;

proptest! {
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
    let names = Names::of(["Adelheid", "Rosalind O'Hara"]);

    for (text, stripped) in [
        ("Where is Adelheid's boat?", "Where is boat?"),
        (
            "Hey Ros, hi Rosalind!  How are you, adelheid?",
            "Hey Ros, hi! How are you,?",
        ),
        (
            "Adelheids, Adelheid2 and O_Hara stay",
            "Adelheids, Adelheid2 and O_Hara stay",
        ),
        ("Adelheid’s plan\nand OHARA, Hara’s", "plan\nand OHARA,"),
        ("Adelheid!", "Adelheid!"),
        ("Übrigens, Adelheid: ja", "Übrigens, : ja"),
        ("", ""),
    ] {
        assert_eq!(names.strip(text), stripped);
    }
}

#[test]
fn names_are_the_same_with_accents_in_one_piece_and_in_two() {
    let names = Names::of(["Renée", "Ange\u{301}lique"]);

    for text in [
        "Ask Renée or Angélique",
        "Ask Rene\u{301}e or Ange\u{301}lique",
    ] {
        assert_eq!(names.strip(text), "Ask or");
    }
    assert_eq!(names.strip("Ask Rene or e"), "Ask Rene or e");
}

#[test]
fn a_mark_of_an_emoji_is_no_word() {
    assert!(words("❤\u{fe0f} \u{301}").is_empty());
}

#[test]
fn role_words_and_single_letters_are_no_names() {
    let names = Names::of(["user", "Assistant", "SYSTEM", "tool", "J. Doe"]);

    assert_eq!(names, Names::of(["Doe"]));
    assert!(names::is_role("User") && !names::is_role("users"));
}

#[test]
fn identifiers_are_numbers_codes_files_and_addresses() {
    for (text, found) in [
        ("ticket 1234, please", vec!["1234"]),
        ("Where is PO 95078?", vec!["95078"]),
        ("open (draft_v9.2.docx)", vec!["draft_v9.2.docx"]),
        (
            "mail to eriksen80@example.org.",
            vec!["eriksen80@example.org"],
        ),
        (
            "report.pdf and walk_tree()",
            vec!["report.pdf", "walk_tree"],
        ),
        ("error E-1005 in v7.63.0", vec!["E-1005", "v7.63.0"]),
    ] {
        assert_eq!(identifiers(text).collect::<Vec<_>>(), found);
    }
    for text in [
        "on 3 May 2023 at 10:20",
        "the 3rd, 7pm, 90s, 20%, 5kg",
        "a well-known fact. Then U.S. law, e.g. this",
        "",
    ] {
        assert_eq!(identifiers(text).collect::<Vec<_>>(), [""; 0], "{text}");
    }
}
