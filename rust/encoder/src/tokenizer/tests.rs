//! The tokenizer on a vocabulary of a few pieces.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Tokenizer;
use crate::EncoderError;

const PIECES: [&str; 22] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a", "un", "##aff", "##able", "ecole", "[", "]",
    "sep", ",", "!", "我", "们", "ss", "##ß", "x", "##x", "##",
];

fn definition() -> Value {
    let vocabulary = PIECES
        .iter()
        .enumerate()
        .map(|(id, &piece)| (piece.to_owned(), json!(id)));
    json!({
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary.collect::<serde_json::Map<_, _>>(),
        },
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
    })
}

fn open(definition: &Value) -> Result<Tokenizer, EncoderError> {
    Tokenizer::from_json(definition.to_string().as_bytes())
}

/// The pieces between `[CLS]` and `[SEP]`.
fn pieces(text: &str) -> Vec<&'static str> {
    let ids = open(&definition()).unwrap().encode(text, 256);
    let names = ids
        .iter()
        .map(|&id| PIECES[id as usize])
        .collect::<Vec<_>>();
    assert_eq!((names[0], names[names.len() - 1]), ("[CLS]", "[SEP]"));
    names[1..names.len() - 1].to_vec()
}

#[test]
fn the_longest_pieces_are_taken_from_the_left() {
    assert_eq!(pieces("unaffable"), ["un", "##aff", "##able"]);
    assert_eq!(pieces("aaa"), ["a", "##a", "##a"]);
}

#[test]
fn a_word_with_a_rest_is_unknown_as_a_whole() {
    assert_eq!(pieces("unaffably a"), ["[UNK]", "a"]);
}

#[test]
fn unknown_words_are_those_of_ascii_letters_that_are_no_form_of_a_piece() {
    let tokenizer = open(&definition()).unwrap();

    let unknown = tokenizer.unknown_words("Ecole ecoles, the UNAFFABLE un-aff x2 a_b über ecoole");

    assert_eq!(unknown, ["unaffable", "aff", "ecoole"]);
}

#[test]
fn a_word_of_more_than_a_hundred_characters_is_unknown() {
    assert_eq!(pieces(&"x".repeat(100)).len(), 100);
    assert_eq!(pieces(&"x".repeat(101)), ["[UNK]"]);
    assert_eq!(
        pieces(&format!("{} a", "x".repeat(100_000))),
        ["[UNK]", "a"]
    );
}

#[test]
fn case_and_accents_do_not_matter() {
    assert_eq!(pieces("École E\u{301}COLE ecole"), ["ecole"; 3]);
}

#[test]
fn every_mark_of_punctuation_is_a_word() {
    assert_eq!(pieces("a,a!!"), ["a", ",", "a", "!", "!"]);
}

#[test]
fn every_ideograph_is_a_word() {
    assert_eq!(pieces("我们a"), ["我", "们", "a"]);
}

#[test]
fn the_name_of_a_special_token_is_text() {
    assert_eq!(pieces("[SEP]"), ["[", "sep", "]"]);
}

#[test]
fn control_characters_vanish_and_white_space_separates() {
    assert_eq!(
        pieces("u\0n\u{200b}\u{fffd}a\u{ad}ff\t\u{3000}a\r\na\u{85}a"),
        ["un", "##aff", "a", "a", "##a"]
    );
}

#[test]
fn the_mark_of_continuation_can_begin_a_word_only_as_punctuation() {
    assert_eq!(pieces("##"), ["[UNK]", "[UNK]"]);
}

#[test]
fn a_text_is_cut_at_the_limit_with_both_special_tokens() {
    let tokenizer = open(&definition()).unwrap();
    let ids = tokenizer.encode(&"a ".repeat(1000), 256);
    assert_eq!(ids.len(), 256);
    assert_eq!((ids[0], ids[1], ids[254], ids[255]), (2, 4, 4, 3));
    assert_eq!(tokenizer.encode("un aaaa", 4), [2, 6, 4, 3]);
    assert_eq!(tokenizer.encode("", 256), [2, 3]);
}

#[test]
fn definitions_of_another_tokenizer_are_refused() {
    for (pointer, value) in [
        ("/model/type", json!("BPE")),
        ("/model/unk_token", json!("<unk>")),
        ("/model/max_input_chars_per_word", json!(50)),
        ("/model/vocab", json!(["a"])),
        ("/model/vocab/a", json!(-1)),
        ("/model/vocab/a", json!(4.5)),
        ("/model/vocab/a", json!(1u64 << 32)),
        ("/normalizer/lowercase", json!(false)),
        ("/pre_tokenizer", Value::Null),
    ] {
        let mut changed = definition();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(
            matches!(open(&changed), Err(EncoderError::Tokenizer(_))),
            "{pointer}"
        );
    }
}

#[test]
fn a_definition_without_a_special_token_is_refused() {
    let mut changed = definition();
    changed["model"]["vocab"]
        .as_object_mut()
        .unwrap()
        .remove("[SEP]");
    let error = open(&changed).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tokenizer.json is unusable: it has no [SEP]"
    );
}

proptest! {
    #[test]
    fn any_text_becomes_known_ids_within_the_limit(text in "\\PC*|[axun \\[\\],!我们é]*", limit in 2usize..40) {
        let ids = open(&definition()).unwrap().encode(&text, limit);
        prop_assert!(ids.len() >= 2 && ids.len() <= limit);
        prop_assert!(ids.iter().all(|&id| (id as usize) < PIECES.len()));
        prop_assert_eq!((ids[0], ids[ids.len() - 1]), (2, 3));
    }

    #[test]
    fn a_lower_limit_cuts_the_same_ids(text in "[axun \\[\\],!我们é]*", limit in 2usize..40) {
        let tokenizer = open(&definition()).unwrap();
        let (all, cut) = (tokenizer.encode(&text, 1000), tokenizer.encode(&text, limit));
        let kept = cut.len() - 1;
        prop_assert_eq!(&cut[..kept], &all[..kept]);
        prop_assert!(kept == all.len() - 1 || cut.len() == limit);
    }

    #[test]
    fn any_bytes_are_a_definition_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Tokenizer::from_json(&bytes).is_err());
    }
}

#[test]
fn stop_words_punctuation_and_unknown_words_say_nothing() {
    let tokenizer = open(&definition()).unwrap();
    let silent: Vec<_> = (0..)
        .zip(PIECES)
        .filter(|(id, _)| !tokenizer.speaks(*id))
        .map(|(_, piece)| piece)
        .collect();
    assert_eq!(silent, ["[UNK]", "a", "[", "]", ",", "!", "##"]);
}
