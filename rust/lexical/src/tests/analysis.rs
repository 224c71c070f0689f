//! What people write, in several languages, and the terms it becomes.

use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

use crate::irregular::irregular_forms;
use crate::scanner::LONGEST_WORD;
use crate::{Analyzer, Document, Term, stop_words};

fn words(text: &str) -> Vec<String> {
    Analyzer::new().words(text)
}

fn meet(left: &str, right: &str) -> bool {
    !words(left).is_empty() && words(left) == words(right)
}

#[test]
fn english_is_stemmed_and_loses_its_stop_words() {
    assert_eq!(
        words("The children's hospital wasn't opening until 3.5 hours after the parades."),
        ["child", "hospit", "open", "3", "5", "hour", "parad"]
    );
}

proptest! {
    #[test]
    fn the_term_of_a_word_is_that_of_its_text(word in "[a-z]{1,12}") {
        let analyzer = Analyzer::new();

        let term = analyzer.term(&mut word.clone());

        prop_assert_eq!(term.as_slice(), analyzer.analyze(&word));
    }
}

#[test]
fn irregular_forms_meet_the_words_that_they_are_forms_of() {
    for (form, word) in irregular_forms() {
        assert!(meet(form, word), "{form} {word}");
        assert!(!stop_words().any(|other| other == word), "{word}");
    }
    assert!(meet(
        "She WENT and the children's teeth",
        "going, a child, a tooth"
    ));
    assert!(!meet("leaves", "leaf"));
}

#[test]
fn contractions_leave_nothing_behind_with_either_apostrophe() {
    assert_eq!(words("can't don't I'll we've it's"), Vec::<String>::new());
    assert_eq!(words("can’t don’t I’ll we’ve it’s"), Vec::<String>::new());
}

#[test]
fn codes_and_dates_are_found_by_their_parts() {
    assert_eq!(words("ORD-1234"), ["ord", "1234"]);
    assert_eq!(words("2023-05-07"), ["2023", "05", "07"]);
    assert_eq!(words("v1.2.3"), ["v1", "2", "3"]);
    assert_eq!(
        words("snake_case/path.rs:42"),
        ["snake", "case", "path", "rs", "42"]
    );
}

#[test]
fn german_is_found_with_and_without_its_letters() {
    assert!(meet("Größe", "grosse"));
    assert!(meet("MÜLLER", "Muller"));
    assert_eq!(
        words("Die Straße ist naß"),
        ["die", "strass", "ist", "nass"]
    );
}

#[test]
fn spanish_is_found_with_and_without_accents() {
    assert!(meet("¿Cuándo cumpliré años?", "cuando cumplire anos"));
    assert!(meet("el gato", "el gatos"));
}

#[test]
fn an_accent_is_the_same_written_in_one_piece_and_in_two() {
    assert!(meet("café", "cafe\u{301}"));
    assert!(meet("Café", "cafe"));
    assert!(meet("Tiếng Việt", "tieng viet"));
    assert!(meet("İstanbul", "istanbul"));
    assert!(meet("ısı", "isi"));
}

#[test]
fn an_accented_word_is_not_an_english_stop_word() {
    assert_eq!(words("du thé"), ["du", "the"]);
    assert_eq!(words("du the\u{301}"), ["du", "the"]);
    assert_eq!(words("the\u{200d}"), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    /// "the" and "is" are stop words, "thé" and "ïs" are none.
    #[test]
    fn composed_and_decomposed_texts_have_the_same_words(
        text in "([a-zA-Z]|the|is|[À-ɏ]|[Ḁ-ỿ]|[Ͱ-Ͽἀ-῿]|[Ѐ-ӿ]|[\u{300}-\u{345}]|[가-힣]|[ぁ-ヿ]|[ऀ-ॿ]|[ก-๛]|[ -@]){0,12}|\\PC{0,12}"
    ) {
        let (composed, decomposed) = (text.nfc().to_string(), text.nfd().to_string());

        prop_assert_eq!(words(&composed), words(&decomposed));
    }
}

#[test]
fn greek_and_cyrillic_are_folded_by_their_own_habits() {
    assert!(meet("Οδυσσεύς", "ΟΔΥΣΣΕΥΣ"));
    assert!(meet("ещё", "ЕЩЕ"));
    assert!(!meet("мой", "мои"));
    assert!(meet("п'ять", "п’ять"));
}

#[test]
fn chinese_becomes_pairs_and_a_lone_character_stays() {
    assert_eq!(
        words("我喜欢北京烤鸭。好"),
        ["我喜", "喜欢", "欢北", "北京", "京烤", "烤鸭", "好"]
    );
}

#[test]
fn chinese_beside_words_and_numbers_is_cut_at_the_border() {
    assert_eq!(
        words("2023年5月買iPhone手機"),
        ["2023", "年", "5", "月買", "iphon", "手機"]
    );
}

#[test]
fn japanese_is_cut_where_the_script_changes() {
    assert_eq!(words("猫の名前はタマ"), ["猫", "の", "名前", "は", "タマ"]);
    assert_eq!(words("らーめん"), ["らー", "ーめ", "めん"]);
}

#[test]
fn width_and_composition_of_kana_do_not_matter() {
    assert!(meet("ｶﾞｲﾄﾞ", "ガイド"));
    assert!(meet("か\u{3099}く", "がく"));
    assert!(meet("ＡＢＣ１２３", "abc123"));
}

#[test]
fn korean_words_become_pairs_of_syllables() {
    assert_eq!(words("학교에서 책"), ["학교", "교에", "에서", "책"]);
    assert!(meet(
        "한글",
        "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"
    ));
}

#[test]
fn thai_becomes_pairs_of_characters_with_their_marks() {
    assert_eq!(words("ที่นี่ดี"), ["ที่นี่", "นี่ดี"]);
    assert!(meet("๒๕๖๖", "2566"));
}

#[test]
fn hindi_keeps_its_vowel_signs_in_the_word() {
    assert_eq!(words("हिन्दी में"), ["हिन्दी", "में"]);
}

#[test]
fn arabic_is_found_with_and_without_points_and_hamza() {
    assert!(meet("مُحَمَّد", "محمد"));
    assert!(meet("أحمد إلى", "احمد الى"));
    assert!(meet("كتـــاب", "کتاب"));
    assert!(meet("٢٠٢٣", "2023"));
}

#[test]
fn hebrew_is_found_with_and_without_points() {
    assert!(meet("שָׁלוֹם", "שלום"));
}

#[test]
fn emoji_and_symbols_are_gaps() {
    assert_eq!(words("party🎉time 👨‍👩‍👧 ❤️"), ["parti", "time"]);
    assert_eq!(words("Remora™ costs 5€"), ["remora", "cost", "5"]);
}

#[test]
fn compatible_spellings_meet() {
    assert!(meet("ﬁnd", "find"));
    assert!(meet("ℝ①", "r1"));
}

#[test]
fn invisible_characters_do_not_divide_a_word() {
    assert!(meet("super\u{ad}market", "supermarket"));
    assert!(meet("\u{feff}hello\u{200d}", "hello"));
}

#[test]
fn control_characters_are_gaps() {
    assert_eq!(words("red\0green\u{7f}blue"), ["red", "green", "blue"]);
}

#[test]
fn an_endless_word_is_one_bounded_term() {
    assert_eq!(words(&"x".repeat(1 << 20)), ["x".repeat(LONGEST_WORD)]);
}

#[test]
fn endless_marks_on_one_character_are_bounded() {
    let marked = format!("ก{}ข", "\u{0e48}".repeat(1 << 18));
    assert!(words(&marked).iter().all(|word| word.len() < 64));
    assert_eq!(words(&format!("e{}", "\u{301}".repeat(1 << 18))), ["e"]);
}

#[test]
fn a_term_keeps_its_published_hash() {
    assert_eq!(Term::of(""), Term(0xefd0_1f60_ba99_2926));
    assert_eq!(Term::of("remora"), Term(0xf60a_570f_eb29_3305));
    assert_eq!(Term::of("猫の"), Term(0x604e_d017_4efb_21e5));
}

#[test]
fn a_document_counts_its_terms() {
    let document = Analyzer::new().document("tea, more tea and milk");

    assert_eq!(document.length(), 3);
    let mut expected = [(Term::of("tea"), 2), (Term::of("milk"), 1)];
    expected.sort();
    assert_eq!(document.terms(), expected);
}

#[test]
fn counts_stop_where_they_no_longer_matter_and_lengths_do_not() {
    let document = Document::new(vec![Term(7); 70_000]);

    assert_eq!(
        (document.terms(), document.length()),
        (&[(Term(7), u16::MAX)][..], 70_000)
    );
}

proptest! {
    #[test]
    fn any_text_gives_terms_that_are_neither_empty_nor_endless(text in any::<String>()) {
        for word in words(&text) {
            prop_assert!(!word.is_empty() && word.len() <= LONGEST_WORD + 1, "{word:?}");
        }
    }

    #[test]
    fn hashes_follow_the_words(text in any::<String>()) {
        let analyzer = Analyzer::new();
        let hashes: Vec<_> = analyzer.words(&text).iter().map(|word| Term::of(word)).collect();
        prop_assert_eq!(analyzer.analyze(&text), hashes);
    }

    #[test]
    fn ascii_case_and_punctuation_do_not_matter(words_of in prop::collection::vec("[a-z0-9]{1,12}", 0..12)) {
        prop_assert_eq!(words(&words_of.join(" ")), words(&words_of.join("-").to_uppercase()));
    }
}
