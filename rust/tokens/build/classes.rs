//! The class of every character, from the Unicode tables that tiktoken's regular expressions use (regex-syntax).

use std::collections::HashMap;
use std::path::Path;

use regex_syntax::hir::{Class, HirKind};

use crate::class;

const BLOCK: usize = 256;
const CHARACTERS: usize = 0x11_0000;

/// Writes `classes.bin`: for each 256 characters the number of their block (one byte), then the blocks.
pub(crate) fn write(out: &Path) {
    let mut blocks = Vec::new();
    let mut numbers = HashMap::new();
    let mut index = Vec::new();
    for block in table().chunks(BLOCK) {
        let next = u8::try_from(numbers.len()).expect("at most 256 different blocks");
        let number = *numbers.entry(block.to_vec()).or_insert_with(|| {
            blocks.extend_from_slice(block);
            next
        });
        index.push(number);
    }
    index.append(&mut blocks);
    std::fs::write(out.join("classes.bin"), index).expect("OUT_DIR is writable");
}

fn table() -> Vec<u8> {
    let mut table = vec![class::OTHER; CHARACTERS];
    for (pattern, value) in [
        (r"[\p{Lu}\p{Lt}]", class::UPPER),
        (r"\p{Ll}", class::LOWER),
        (r"[\p{Lm}\p{Lo}]", class::UNCASED),
        (r"\p{M}", class::MARK),
        (r"\p{N}", class::NUMBER),
        (r"\s", class::SPACE),
        (r"[\r\n]", class::NEWLINE),
    ] {
        for (first, last) in ranges(pattern) {
            table[first..=last].fill(value);
        }
    }
    table
}

fn ranges(pattern: &str) -> Vec<(usize, usize)> {
    let parsed = regex_syntax::parse(pattern).expect("a valid class");
    match parsed.kind() {
        HirKind::Class(Class::Unicode(characters)) => characters
            .iter()
            .map(|range| (range.start() as usize, range.end() as usize))
            .collect(),
        other => panic!("{pattern} is no class of characters: {other:?}"),
    }
}
