//! What each character is to a search: how it is folded, and whether it makes words, pairs or gaps.
//!
//! Characters arrive in NFKC and lower case. Folding brings together spellings that people mix when they type: Latin
//! and Greek diacritics, Arabic letters by their Persian or bare forms, digits of any script.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// Writing without spaces between words, which is indexed by pairs of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Han,
    Hiragana,
    Katakana,
    Hangul,
    Bopomofo,
    Thai,
    Lao,
    Myanmar,
    Khmer,
}

/// The part that a folded character plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A letter or digit of a word.
    Letter,
    /// A mark that belongs to the character before it.
    Mark,
    /// A character of a run without spaces.
    Paired(Script),
    /// Anything else: it ends a word and carries no term.
    Gap,
}

/// The role of a character that [`fold`] has folded and that is not [`is_ignored`].
pub(super) fn role(character: char) -> Role {
    if is_combining_mark(character) {
        Role::Mark
    } else if let Some(script) = script_without_spaces(character) {
        Role::Paired(script)
    } else if character.is_alphanumeric() {
        Role::Letter
    } else {
        Role::Gap
    }
}

fn script_without_spaces(character: char) -> Option<Script> {
    Some(match character {
        '\u{2e80}'..='\u{2fdf}'
        | '々'
        | '〇'
        | '\u{3021}'..='\u{3029}'
        | '\u{3038}'..='\u{303b}' => Script::Han,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => Script::Han,
        '\u{20000}'..='\u{3fffd}' => Script::Han,
        '\u{3041}'..='\u{309f}' | '\u{1b001}'..='\u{1b11f}' => Script::Hiragana,
        '\u{30a1}'..='\u{30fa}'
        | '\u{30fc}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{1b000}' => Script::Katakana,
        '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' => {
            Script::Hangul
        }
        '\u{3105}'..='\u{312f}' | '\u{31a0}'..='\u{31bf}' => Script::Bopomofo,
        '\u{0e01}'..='\u{0e3a}' | '\u{0e40}'..='\u{0e4e}' => Script::Thai,
        '\u{0e81}'..='\u{0ece}' | '\u{0edc}'..='\u{0edf}' => Script::Lao,
        '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{109f}' | '\u{aa60}'..='\u{aa7f}' => {
            Script::Myanmar
        }
        '\u{1780}'..='\u{17d3}' => Script::Khmer,
        _ => return None,
    })
}

/// Whether a character is skipped as if it were not there: accents that stand apart from their letter, Hebrew and
/// Arabic points, the Arabic tatweel, soft hyphens, joiners, marks of direction, variation selectors.
pub(super) fn is_ignored(character: char) -> bool {
    matches!(character,
        '\u{0300}'..='\u{036f}' | '\u{0483}'..='\u{0487}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20f0}' | '\u{fe20}'..='\u{fe2f}'
        | '\u{0591}'..='\u{05bd}' | '\u{05bf}' | '\u{05c1}' | '\u{05c2}' | '\u{05c4}' | '\u{05c5}' | '\u{05c7}'
        | '\u{0610}'..='\u{061a}' | '\u{0640}' | '\u{064b}'..='\u{065f}' | '\u{0670}' | '\u{06d6}'..='\u{06dc}'
        | '\u{06df}'..='\u{06e8}' | '\u{06ea}'..='\u{06ed}' | '\u{08d3}'..='\u{08ff}'
        | '\u{00ad}' | '\u{061c}' | '\u{180b}'..='\u{180f}' | '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e01ef}')
}

/// The character that another one is searched as; itself for most.
pub(super) fn fold(character: char) -> char {
    match character {
        '\u{00c0}'..='\u{024f}'
        | '\u{1e00}'..='\u{1eff}'
        | '\u{0370}'..='\u{03ff}'
        | '\u{1f00}'..='\u{1fff}' => bare_letter(character),
        'ё' => 'е',
        'أ' | 'إ' | 'آ' | 'ٱ' => 'ا',
        'ى' | 'ی' => 'ي',
        'ة' => 'ه',
        'ک' => 'ك',
        _ => ascii_digit(character).unwrap_or(character),
    }
}

/// A Latin or Greek letter without its diacritics.
fn bare_letter(character: char) -> char {
    let mut base = None;
    decompose_canonical(character, |part| {
        base.get_or_insert(part);
    });
    match base.unwrap_or(character) {
        'ø' => 'o',
        'đ' | 'ð' => 'd',
        'ł' => 'l',
        'ħ' => 'h',
        'ŧ' => 't',
        'ı' => 'i',
        'ς' => 'σ',
        other => other,
    }
}

/// The letters that one Latin letter is spelled out as, if it is one that people also write so.
pub(super) fn spelled_out(character: char) -> Option<&'static str> {
    match character {
        'ß' => Some("ss"),
        'æ' | 'ǽ' | 'ǣ' => Some("ae"),
        'œ' => Some("oe"),
        'þ' => Some("th"),
        _ => None,
    }
}

/// The zeros of decimal digits that stand in code point order: Arabic, Persian, N'Ko, Devanagari, Bengali, Gurmukhi,
/// Gujarati, Oriya, Tamil, Telugu, Kannada, Malayalam, Thai, Lao, Tibetan, Myanmar, Khmer, Mongolian.
const ZEROS: [u32; 18] = [
    0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66,
    0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x17e0, 0x1810,
];

fn ascii_digit(character: char) -> Option<char> {
    let point = u32::from(character);
    let zero = ZEROS[..ZEROS.partition_point(|&zero| zero <= point)].last()?;
    char::from_digit(point - zero, 10)
}
