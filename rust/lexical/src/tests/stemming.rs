//! Stems that Snowball 3.1 publishes for its rules and exceptions.

use crate::stem::stem;

fn stemmed(word: &str) -> String {
    let mut word = word.to_owned();
    stem(&mut word);
    word
}

fn assert_stems(expected: &[(&str, &str)]) {
    let actual: Vec<_> = expected
        .iter()
        .map(|(word, _)| (*word, stemmed(word)))
        .collect();
    assert!(
        actual
            .iter()
            .zip(expected)
            .all(|((_, stem), (_, wanted))| stem == wanted),
        "{actual:?} instead of {expected:?}"
    );
}

#[test]
fn plurals_lose_their_s_only_after_a_syllable() {
    assert_stems(&[
        ("caresses", "caress"),
        ("ties", "tie"),
        ("cries", "cri"),
        ("gas", "gas"),
        ("gaps", "gap"),
        ("kiwis", "kiwi"),
        ("this", "this"),
        ("1990s", "1990s"),
        ("ies", "ie"),
    ]);
}

#[test]
fn verbs_lose_their_endings_and_are_mended() {
    assert_stems(&[
        ("hoping", "hope"),
        ("hopping", "hop"),
        ("hoped", "hope"),
        ("luxuriated", "luxuri"),
        ("agreed", "agre"),
        ("added", "add"),
        ("dying", "die"),
        ("evening", "evening"),
        ("proceed", "proceed"),
        ("pasted", "paste"),
        ("bring", "bring"),
    ]);
}

#[test]
fn a_y_is_a_vowel_or_a_consonant_by_its_place() {
    assert_stems(&[
        ("cry", "cri"),
        ("by", "by"),
        ("say", "say"),
        ("youth", "youth"),
        ("enjoying", "enjoy"),
        ("boyish", "boyish"),
    ]);
}

#[test]
fn long_suffixes_go_step_by_step() {
    assert_stems(&[
        ("nationalization", "nation"),
        ("relational", "relat"),
        ("conditional", "condit"),
        ("hopefulness", "hope"),
        ("archaeologist", "archaeolog"),
        ("replacement", "replac"),
        ("adoption", "adopt"),
        ("controlling", "control"),
        ("cease", "ceas"),
        ("rate", "rate"),
    ]);
}

#[test]
fn words_of_one_root_and_two_meanings_stay_apart() {
    assert_stems(&[
        ("universe", "univers"),
        ("university", "universiti"),
        ("organ", "organ"),
        ("organization", "organiz"),
        ("later", "later"),
        ("lateral", "lateral"),
        ("internal", "internal"),
        ("news", "news"),
        ("skies", "sky"),
    ]);
}

#[test]
fn words_outside_lower_case_ascii_and_short_ones_are_left_alone() {
    assert_stems(&[
        ("", ""),
        ("as", "as"),
        ("übungen", "übungen"),
        ("дни", "дни"),
    ]);
}
