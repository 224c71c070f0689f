//! The Snowball English stemmer ("Porter2"), as its rules stand in Snowball 3.1 (<https://snowballstem.org>).
//!
//! `Y` marks a y that is a consonant; digits count as consonants. R1 and R2 are the regions after the first and the
//! second vowel-consonant pair: a suffix is in a region if it starts in it.

/// Stems one lower-case word of ASCII letters and digits in place; any other word is left alone.
pub(super) fn stem(word: &mut String) {
    if word.len() < 3 || !word.is_ascii() {
        return;
    }
    if let Some((_, stem)) = EXCEPTIONS.iter().find(|(exception, _)| exception == word) {
        word.replace_range(.., stem);
        return;
    }
    mark_consonant_y(word);
    let regions = Regions::of(word);
    remove_plural(word);
    remove_past_and_participle(word, &regions);
    y_to_i(word);
    apply_rules(word, &regions, DERIVATIONS);
    apply_rules(word, &regions, ADJECTIVES);
    apply_rules(word, &regions, ENDINGS);
    remove_final_e_or_l(word, &regions);
    word.make_ascii_lowercase();
}

const EXCEPTIONS: &[(&str, &str)] = &[
    ("skis", "ski"),
    ("skies", "sky"),
    ("idly", "idl"),
    ("gently", "gentl"),
    ("ugly", "ugli"),
    ("early", "earli"),
    ("only", "onli"),
    ("singly", "singl"),
    ("sky", "sky"),
    ("news", "news"),
    ("howe", "howe"),
    ("atlas", "atlas"),
    ("cosmos", "cosmos"),
    ("bias", "bias"),
    ("andes", "andes"),
];

/// Stems after which R1 begins at once, so that for instance "organ" and "organize" stay apart.
const WHOLE_STEMS: [&str; 9] = [
    "arsen", "commun", "emerg", "gener", "inter", "later", "organ", "past", "univers",
];

/// Where R1 and R2 start, in bytes; the word's length if it has none.
struct Regions {
    r1: usize,
    r2: usize,
}

impl Regions {
    fn of(word: &str) -> Self {
        let whole = WHOLE_STEMS.iter().find(|stem| word.starts_with(*stem));
        let r1 = whole.map_or_else(|| after_vowel_and_consonant(word, 0), |stem| stem.len());
        Self {
            r1,
            r2: after_vowel_and_consonant(word, r1),
        }
    }
}

fn after_vowel_and_consonant(word: &str, from: usize) -> usize {
    let rest = &word.as_bytes()[from..];
    rest.windows(2)
        .position(|pair| is_vowel(pair[0]) && !is_vowel(pair[1]))
        .map_or(word.len(), |position| from + position + 2)
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

fn has_vowel(letters: &str) -> bool {
    letters.bytes().any(is_vowel)
}

fn mark_consonant_y(word: &mut str) {
    let mut after_vowel = true;
    for position in 0..word.len() {
        if after_vowel && word.as_bytes()[position] == b'y' {
            word[position..=position].make_ascii_uppercase();
        }
        after_vowel = is_vowel(word.as_bytes()[position]);
    }
}

/// Whether the letters end in a short syllable: consonant, vowel, consonant other than w, x and Y; or are a vowel and
/// a consonant alone; or end in "past".
fn ends_in_short_syllable(letters: &[u8]) -> bool {
    match letters {
        [vowel, consonant] if is_vowel(*vowel) && !is_vowel(*consonant) => true,
        [.., before, vowel, last] if !is_vowel(*before) && is_vowel(*vowel) => {
            !is_vowel(*last) && !matches!(last, b'w' | b'x' | b'Y') || letters.ends_with(b"past")
        }
        _ => letters.ends_with(b"past"),
    }
}

/// Step 1a.
fn remove_plural(word: &mut String) {
    let length = word.len();
    if word.ends_with("sses") {
        word.truncate(length - 2);
    } else if word.ends_with("ied") || word.ends_with("ies") {
        word.truncate(if length > 4 { length - 2 } else { length - 1 });
    } else if word.ends_with('s')
        && !word.ends_with("us")
        && !word.ends_with("ss")
        && has_vowel(&word[..length - 2])
    {
        word.truncate(length - 1);
    }
}

/// Step 1b.
fn remove_past_and_participle(word: &mut String, regions: &Regions) {
    if let Some(stem) = strip(word, &["eedly", "eed"]) {
        if stem >= regions.r1 && !matches!(&word[..stem], "proc" | "exc" | "succ") {
            word.truncate(stem + 2);
        }
    } else if let Some(stem) = strip(word, &["ingly", "edly", "ing", "ed"]) {
        match (&word[..stem], &word[stem..]) {
            ("inn" | "out" | "cann" | "herr" | "earr" | "even", "ing") => {}
            (short, "ing") if is_consonant_and_y(short) => {
                word.truncate(stem - 1);
                word.push_str("ie");
            }
            (verb, _) if has_vowel(verb) => {
                word.truncate(stem);
                mend_verb(word, regions);
            }
            _ => {}
        }
    }
}

/// The length of the word without the first of the suffixes that it ends in.
fn strip(word: &str, suffixes: &[&str]) -> Option<usize> {
    suffixes
        .iter()
        .find_map(|suffix| word.strip_suffix(suffix))
        .map(str::len)
}

/// The stems of "dying", "lying", "tying", "vying".
fn is_consonant_and_y(stem: &str) -> bool {
    matches!(stem.as_bytes(), [first, b'y'] if !is_vowel(*first))
}

/// Gives a verb without -ed or -ing its e back (hop-ed to hope), or takes its doubled consonant (hopp-ed to hop).
fn mend_verb(word: &mut String, regions: &Regions) {
    match word.as_bytes() {
        [.., b'a', b't'] | [.., b'b', b'l'] | [.., b'i', b'z'] => word.push('e'),
        [b'a' | b'e' | b'o', last, again] if is_doubled(*last, *again) => {}
        [.., last, again] if is_doubled(*last, *again) => word.truncate(word.len() - 1),
        _ if word.len() == regions.r1 && ends_in_short_syllable(word.as_bytes()) => word.push('e'),
        _ => {}
    }
}

fn is_doubled(last: u8, again: u8) -> bool {
    last == again
        && matches!(
            last,
            b'b' | b'd' | b'f' | b'g' | b'm' | b'n' | b'p' | b'r' | b't'
        )
}

/// Step 1c.
fn y_to_i(word: &mut String) {
    if let [_, .., before, b'y' | b'Y'] = word.as_bytes()
        && !is_vowel(*before)
    {
        word.pop();
        word.push('i');
    }
}

/// What a suffix asks of the word that it ends.
#[derive(Clone, Copy)]
enum Condition {
    InR1,
    InR2,
    /// In R1, after one of these letters.
    InR1After(&'static [u8]),
    /// In R2, after one of these letters.
    InR2After(&'static [u8]),
}

impl Condition {
    fn holds(self, stem: &str, regions: &Regions) -> bool {
        let after = |letters: &[u8]| {
            stem.bytes()
                .last()
                .is_some_and(|last| letters.contains(&last))
        };
        match self {
            Self::InR1 => stem.len() >= regions.r1,
            Self::InR2 => stem.len() >= regions.r2,
            Self::InR1After(letters) => stem.len() >= regions.r1 && after(letters),
            Self::InR2After(letters) => stem.len() >= regions.r2 && after(letters),
        }
    }
}

type Rule = (&'static str, &'static str, Condition);

/// Replaces the longest suffix that the rules know, if its condition holds; a shorter one is not tried.
fn apply_rules(word: &mut String, regions: &Regions, rules: &[Rule]) {
    let Some((suffix, replacement, condition)) =
        rules.iter().find(|(suffix, ..)| word.ends_with(suffix))
    else {
        return;
    };
    let stem = word.len() - suffix.len();
    if condition.holds(&word[..stem], regions) {
        word.truncate(stem);
        word.push_str(replacement);
    }
}

use Condition::{InR1, InR1After, InR2, InR2After};

/// Step 2; a suffix stands before every shorter one that it ends in.
const DERIVATIONS: &[Rule] = &[
    ("ization", "ize", InR1),
    ("ational", "ate", InR1),
    ("iveness", "ive", InR1),
    ("fulness", "ful", InR1),
    ("ousness", "ous", InR1),
    ("tional", "tion", InR1),
    ("biliti", "ble", InR1),
    ("lessli", "less", InR1),
    ("fulli", "ful", InR1),
    ("ousli", "ous", InR1),
    ("entli", "ent", InR1),
    ("aliti", "al", InR1),
    ("iviti", "ive", InR1),
    ("alism", "al", InR1),
    ("ation", "ate", InR1),
    ("ogist", "og", InR1),
    ("abli", "able", InR1),
    ("alli", "al", InR1),
    ("anci", "ance", InR1),
    ("enci", "ence", InR1),
    ("izer", "ize", InR1),
    ("ator", "ate", InR1),
    ("bli", "ble", InR1),
    ("ogi", "og", InR1After(b"l")),
    ("li", "", InR1After(b"cdeghkmnrt")),
];

/// Step 3.
const ADJECTIVES: &[Rule] = &[
    ("ational", "ate", InR1),
    ("tional", "tion", InR1),
    ("icate", "ic", InR1),
    ("iciti", "ic", InR1),
    ("alize", "al", InR1),
    ("ative", "", InR2),
    ("ical", "ic", InR1),
    ("ness", "", InR1),
    ("ful", "", InR1),
];

/// Step 4.
const ENDINGS: &[Rule] = &[
    ("ement", "", InR2),
    ("ment", "", InR2),
    ("ance", "", InR2),
    ("ence", "", InR2),
    ("able", "", InR2),
    ("ible", "", InR2),
    ("ant", "", InR2),
    ("ent", "", InR2),
    ("ism", "", InR2),
    ("ate", "", InR2),
    ("iti", "", InR2),
    ("ous", "", InR2),
    ("ive", "", InR2),
    ("ize", "", InR2),
    ("ion", "", InR2After(b"st")),
    ("al", "", InR2),
    ("er", "", InR2),
    ("ic", "", InR2),
];

/// Step 5.
fn remove_final_e_or_l(word: &mut String, regions: &Regions) {
    let goes = match word.as_bytes() {
        [stem @ .., b'e'] => {
            stem.len() >= regions.r2 || stem.len() >= regions.r1 && !ends_in_short_syllable(stem)
        }
        [stem @ .., b'l'] => stem.len() >= regions.r2 && stem.ends_with(b"l"),
        _ => false,
    };
    if goes {
        word.pop();
    }
}
