//! What BERT does to a text before it looks for words: as Hugging Face's `BertNormalizer` with `clean_text`,
//! `handle_chinese_chars`, `strip_accents` and `lowercase`, by the same tables.

use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

/// The characters of `text` without control characters and accents, in lower case, blanks around ideographs.
pub(super) fn normalized(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars()
        .filter(|&c| !is_dropped(c))
        .flat_map(spaced)
        .nfd()
        .filter(|&c| c.is_ascii() || !c.is_mark_nonspacing())
        .flat_map(char::to_lowercase)
}

/// Whether `c` separates words and is a word of its own.
pub(super) fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_punctuation()
    } else {
        c.is_punctuation()
    }
}

fn is_dropped(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        '\u{fffd}' => true,
        _ if c.is_ascii() => c.is_ascii_control(),
        _ => c.is_other(),
    }
}

/// The character, as a blank if it is white space, between blanks if it is an ideograph.
fn spaced(c: char) -> impl Iterator<Item = char> {
    let blank = is_ideograph(c).then_some(' ');
    let c = if c.is_whitespace() { ' ' } else { c };
    blank.into_iter().chain(Some(c)).chain(blank)
}

/// The blocks that BERT calls Chinese characters: CJK ideographs, not kana or hangul.
fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{4E00}'..='\u{9FFF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{20000}'..='\u{2A6DF}'
        | '\u{2A700}'..='\u{2B73F}'
        | '\u{2B740}'..='\u{2B81F}'
        | '\u{2B920}'..='\u{2CEAF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{2F800}'..='\u{2FA1F}')
}
