//! Counts and cuts against references: tiktoken's own patterns in a backtracking matcher, merging by definition, and
//! trying every cut.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::collections::HashMap;
use std::sync::LazyLock;

use fancy_regex::Regex;
use proptest::prelude::*;

use super::{Encoding, approximate, count, count_bytes, count_up_to, trim_end, trim_start};

/// The patterns of tiktoken 0.14 (`tiktoken_ext.openai_public`).
const O200K_PATTERN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const CL100K_PATTERN: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";

/// One encoding by definition.
struct Reference {
    pattern: Regex,
    ranks: HashMap<&'static [u8], usize>,
}

static O200K: LazyLock<Reference> =
    LazyLock::new(|| Reference::new(Encoding::O200kBase, O200K_PATTERN));
static CL100K: LazyLock<Reference> =
    LazyLock::new(|| Reference::new(Encoding::Cl100kBase, CL100K_PATTERN));

impl Reference {
    fn new(encoding: Encoding, pattern: &str) -> Self {
        let tokens = super::vocabulary(encoding);
        Self {
            pattern: Regex::new(pattern).unwrap(),
            ranks: tokens.into_iter().zip(0..).collect(),
        }
    }

    fn of(encoding: Encoding) -> &'static Self {
        match encoding {
            Encoding::O200kBase => &O200K,
            Encoding::Cl100kBase => &CL100K,
        }
    }

    fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let pieces = self.pattern.find_iter(text);
        pieces.map(|piece| piece.unwrap().as_str()).collect()
    }

    fn count(&self, text: &str) -> usize {
        let pieces = self.pieces(text).into_iter();
        pieces.map(|piece| self.merged(piece.as_bytes())).sum()
    }

    /// The number of tokens left when the lowest rank, the leftmost first, has been merged until none is left.
    fn merged(&self, piece: &[u8]) -> usize {
        let mut bounds = (0..=piece.len()).collect::<Vec<_>>();
        while let Some((_, at)) = (1..bounds.len() - 1)
            .filter_map(|at| Some((*self.ranks.get(&piece[bounds[at - 1]..bounds[at + 1]])?, at)))
            .min()
        {
            bounds.remove(at);
        }
        bounds.len() - 1
    }
}

fn encodings() -> impl Strategy<Value = Encoding> {
    prop::sample::select(Encoding::ALL.to_vec())
}

/// Texts of what the patterns tell apart, and of any character.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "(?s).",
        4 => "[aB你ʰǅſ\u{301}1٣½ \t\n\r\u{85}\u{a0}\u{2028}\u{3000}'!/_\u{0}😀\u{200d}\u{378}]{1,6}",
        2 => "'(s|S|ſ|T|re|RE|Ve|m|LL|l|d)",
        2 => " ?[A-Z]?[a-z]{1,9}",
        1 => r"\p{Han}{1,8}",
        1 => r"\PC{1,8}",
        1 => r"( {1,20}|\n{1,20}|[a-zA-Z0-9+/]{20,40})",
    ];
    prop::collection::vec(part, 0..10).prop_map(|parts| parts.concat())
}

/// Short texts in which a cut moves the borders of pieces.
fn cuttable_texts() -> impl Strategy<Value = String> {
    prop_oneof!["[aB你\u{301} \n1٣'l!\u{3000}ſ/x😀-]{0,14}", texts()]
}

/// Texts of one long run each, whose counts the definition cannot reach in time.
fn hostile_texts() -> Vec<String> {
    let run = |unit: &str| unit.repeat(12_000 / unit.len());
    let mut texts = [
        "a", " ", "\n", "\n ", "你", "你B", "7", "٣", "!", "😀", "\u{301}", "ab", "aB'",
    ]
    .map(run)
    .to_vec();
    texts.push(run(" ") + "x");
    texts.push("a你".to_owned() + &run("你") + "Bc");
    texts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn counts_are_those_of_the_definition(encoding in encodings(), text in texts()) {
        prop_assert_eq!(count(encoding, &text), Reference::of(encoding).count(&text));
    }

    #[test]
    fn pieces_are_those_of_the_pattern(encoding in encodings(), text in texts()) {
        let pieces = encoding.tokenizer().pieces(&text).map(|piece| &text[piece]).collect::<Vec<_>>();
        prop_assert_eq!(pieces, Reference::of(encoding).pieces(&text));
    }

    #[test]
    fn any_bytes_have_the_count_of_their_lossy_text(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(count_bytes(Encoding::O200kBase, &bytes), count(Encoding::O200kBase, &text));
    }

    #[test]
    fn a_bounded_count_is_the_count_up_to_its_bound(encoding in encodings(), text in texts(), limit in 0usize..30) {
        let exact = count(encoding, &text);
        prop_assert_eq!(count_up_to(encoding, &text, limit), (exact <= limit).then_some(exact));
    }

    #[test]
    fn a_trimmed_end_leaves_the_longest_prefix_that_fits(encoding in encodings(), text in cuttable_texts(), max in 0usize..12) {
        let fits = |cut: &usize| text.is_char_boundary(*cut) && count(encoding, &text[..*cut]) <= max;
        let longest = (0..=text.len()).rev().find(fits).unwrap();
        prop_assert_eq!(trim_end(encoding, &text, max), &text[..longest]);
    }

    #[test]
    fn a_trimmed_start_leaves_the_longest_suffix_that_fits(encoding in encodings(), text in cuttable_texts(), max in 0usize..12) {
        let fits = |cut: &usize| text.is_char_boundary(*cut) && count(encoding, &text[*cut..]) <= max;
        let longest = (0..=text.len()).find(fits).unwrap();
        prop_assert_eq!(trim_start(encoding, &text, max), &text[longest..]);
    }

    #[test]
    fn the_approximate_count_is_a_quarter_of_the_characters(text in texts()) {
        let characters = text.chars().count();
        let estimate = approximate(&text);
        prop_assert!(4 * estimate >= characters && 4 * estimate < characters + 4);
    }
}

#[test]
fn every_token_is_its_own_encoding() {
    for encoding in Encoding::ALL {
        let tokenizer = encoding.tokenizer();
        for token in super::vocabulary(encoding) {
            assert_eq!(tokenizer.encoder().lengths(token), [token.len()]);
        }
    }
}

#[test]
fn tokens_side_by_side_in_one_piece_are_encoded_as_by_merging() {
    for encoding in Encoding::ALL {
        let (tokenizer, tokens) = (encoding.tokenizer(), super::vocabulary(encoding));
        for at in 0..20_000 {
            let pair = [
                tokens[at * 7919 % tokens.len()],
                tokens[at * 104_729 % tokens.len()],
            ];
            let piece = pair.concat();
            assert_eq!(
                tokenizer.encoder().lengths(&piece).len(),
                Reference::of(encoding).merged(&piece)
            );
        }
    }
}

#[test]
fn hostile_runs_keep_to_the_tokens_when_trimmed() {
    for (encoding, text) in Encoding::ALL
        .into_iter()
        .zip([hostile_texts(), hostile_texts()])
    {
        for text in text {
            let exact = count(encoding, &text);
            for max in [0, 1, 100, exact / 2, exact - 1] {
                let (start, end) = (
                    trim_end(encoding, &text, max),
                    trim_start(encoding, &text, max),
                );
                assert!(text.starts_with(start) && count(encoding, start) <= max);
                assert!(text.ends_with(end) && count(encoding, end) <= max);
            }
        }
    }
}

#[test]
fn a_trimmed_hostile_run_is_nearly_as_long_as_it_may_be() {
    let text = "a".repeat(100_000);

    let (start, end) = (
        trim_end(Encoding::O200kBase, &text, 5_000),
        trim_start(Encoding::O200kBase, &text, 5_000),
    );

    assert_eq!(count(Encoding::O200kBase, start), 5_000);
    assert_eq!(count(Encoding::O200kBase, end), 5_000);
}

#[test]
fn a_long_s_ends_a_contraction() {
    assert_eq!(Reference::of(Encoding::O200kBase).pieces("it'ſ"), ["it'ſ"]);
    assert_eq!(
        count(Encoding::O200kBase, "it'ſ"),
        Reference::of(Encoding::O200kBase).count("it'ſ")
    );
}

#[test]
fn what_looks_like_a_special_token_is_text() {
    for encoding in Encoding::ALL {
        assert!(count(encoding, "<|endoftext|>") > 1);
    }
}

#[test]
fn a_piece_that_comes_again_is_not_taken_for_one_that_differs_in_zeros() {
    for text in [
        "\0",
        "\0\0",
        "!",
        "!\0",
        "\0!",
        "!!!",
        "!!!\0",
        "!!!!!!\0",
        "!!!!!!!\0",
    ] {
        for encoding in Encoding::ALL {
            let exact = Reference::of(encoding).count(text);
            assert_eq!(
                [count(encoding, text), count(encoding, text)],
                [exact, exact],
                "{text:?}"
            );
        }
    }
}

#[test]
fn an_empty_text_has_no_tokens() {
    for encoding in Encoding::ALL {
        assert_eq!(count(encoding, ""), 0);
        assert_eq!(trim_end(encoding, "", 0), "");
        assert_eq!(trim_start(encoding, "", 0), "");
    }
}

#[test]
fn encodings_are_found_by_name() {
    for encoding in Encoding::ALL {
        assert_eq!(Encoding::from_name(encoding.name()), Some(encoding));
    }
    assert_eq!(Encoding::from_name("p50k_base"), None);
}

#[test]
fn models_have_the_encoding_of_their_family() {
    for model in [
        "gpt-4o",
        "gpt-4o-mini",
        "gpt-4.1-nano",
        "gpt-5",
        "gpt-5.1",
        "o1",
        "o3-mini",
        "o4-mini",
        "chatgpt-4o-latest",
        "ft:gpt-4o-mini:us::1",
    ] {
        assert_eq!(
            Encoding::for_model(model),
            Some(Encoding::O200kBase),
            "{model}"
        );
    }
    for model in [
        "gpt-4",
        "gpt-4-turbo",
        "gpt-3.5-turbo-0125",
        "text-embedding-3-large",
        "text-embedding-ada-002",
        "ft:gpt-4:us::1",
    ] {
        assert_eq!(
            Encoding::for_model(model),
            Some(Encoding::Cl100kBase),
            "{model}"
        );
    }
    for model in ["", "text-davinci-003", "claude-3", "o12"] {
        assert_eq!(Encoding::for_model(model), None, "{model}");
    }
}

#[test]
fn threads_that_load_a_vocabulary_at_once_share_it() {
    let counts = std::thread::scope(|scope| {
        let threads = [0; 4].map(|_| scope.spawn(|| count(Encoding::O200kBase, "hello world")));
        threads.map(|thread| thread.join().unwrap())
    });

    assert_eq!(counts, [2; 4]);
}
