//! The vocabulary of one encoding, in the order of its tokens' bytes, with the merge that makes each token.

use std::collections::HashMap;
use std::path::Path;

use bpe_openai::byte_pair_encoding::BytePairEncoding;

/// Writes, a value for each token in the order of bytes, `<name>.ranks` (u32, little-endian), `<name>.lengths` (u8) and
/// `<name>.left` (u8: the length of the left part of the token's last merge, 0 for one byte), then `<name>.bytes`.
pub(crate) fn write(out: &Path, name: &str, encoding: &BytePairEncoding) {
    let tokens = sorted_tokens(encoding);
    let by_bytes = tokens.iter().copied().collect::<HashMap<_, _>>();
    let ranks = tokens.iter().flat_map(|(_, rank)| rank.to_le_bytes());
    let lengths = tokens.iter().map(|(bytes, _)| short(bytes.len()));
    let left = tokens
        .iter()
        .map(|(bytes, _)| short(left_length(bytes, &by_bytes)));
    let bytes = tokens.iter().flat_map(|(bytes, _)| bytes.iter().copied());

    let save = |extension: &str, data: Vec<u8>| {
        let path = out.join(format!("{name}.{extension}"));
        std::fs::write(path, data).expect("OUT_DIR is writable");
    };
    save("ranks", ranks.collect());
    save("lengths", lengths.collect());
    save("left", left.collect());
    save("bytes", bytes.collect());
}

fn sorted_tokens(encoding: &BytePairEncoding) -> Vec<(&[u8], u32)> {
    let count = u32::try_from(encoding.num_tokens()).expect("ranks fit u32");
    let mut tokens = (0..count)
        .map(|rank| (encoding.token_bytes(rank), rank))
        .collect::<Vec<_>>();
    tokens.sort_unstable();
    tokens
}

fn short(length: usize) -> u8 {
    u8::try_from(length).expect("tokens are shorter than 256 bytes")
}

/// Merges the bytes of a token, lowest rank first, until two parts remain.
fn left_length(token: &[u8], ranks: &HashMap<&[u8], u32>) -> usize {
    if token.len() == 1 {
        return 0;
    }
    let mut bounds = (0..=token.len()).collect::<Vec<_>>();
    while bounds.len() > 3 {
        let (_, merged) = (1..bounds.len() - 1)
            .filter_map(|at| Some((*ranks.get(&token[bounds[at - 1]..bounds[at + 1]])?, at)))
            .min()
            .expect("the merges of a token reach it");
        bounds.remove(merged);
    }
    bounds[1]
}
