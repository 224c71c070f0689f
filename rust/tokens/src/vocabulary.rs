//! The vocabulary of one encoding: finds tokens by their bytes, and the longest token that begins a text.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::merges::Merges;

/// A token by its index in the order of bytes.
pub(super) type Token = u32;

/// Stands for "no token".
const NONE: Token = u32::MAX;

/// What the build script writes; one value for each token in the order of bytes.
pub(super) struct Source {
    pub(super) ranks: &'static [u8],
    pub(super) lengths: &'static [u8],
    pub(super) left: &'static [u8],
    pub(super) bytes: &'static [u8],
}

pub(super) struct Vocabulary {
    tokens: Tokens,
    ranks: Vec<u32>,
    /// The longest token that is a proper prefix of each.
    prefixes: Vec<Token>,
    /// The first token whose first two bytes reach each value of 16 bits.
    pairs: Vec<Token>,
    by_bytes: HashTable<Token>,
    merges: Merges,
    longest: usize,
}

impl Vocabulary {
    pub(super) fn load(source: &Source) -> Self {
        let tokens = Tokens::new(source);
        let ranks = ranks(source.ranks);
        let prefixes = tokens.prefixes();
        let by_bytes = tokens.by_bytes();
        let merges = merges(&tokens, &ranks, &prefixes, &by_bytes, source.left);
        Self {
            pairs: tokens.pairs(),
            longest: source.lengths.iter().copied().max().unwrap_or(1).into(),
            tokens,
            ranks,
            prefixes,
            by_bytes,
            merges,
        }
    }

    /// The bytes of each token, by rank.
    pub(super) fn by_rank(&self) -> Vec<&'static [u8]> {
        let mut tokens = vec![&[][..]; self.ranks.len()];
        for (token, rank) in (0..).zip(&self.ranks) {
            tokens[*rank as usize] = self.tokens.get(token);
        }
        tokens
    }

    /// The bytes that so many tokens have at most.
    pub(super) fn most_bytes(&self, tokens: usize) -> usize {
        tokens.saturating_mul(self.longest)
    }

    pub(super) fn length(&self, token: Token) -> usize {
        self.tokens.range(token).len()
    }

    pub(super) fn is_token(&self, bytes: &[u8]) -> bool {
        bytes.len() <= self.longest && self.tokens.find(&self.by_bytes, bytes).is_some()
    }

    /// The longest token that begins a text, `None` if that is empty.
    pub(super) fn longest_prefix(&self, text: &[u8]) -> Option<Token> {
        let head = &text[..text.len().min(self.longest)];
        let before = self.last_up_to(head)?;
        let shared = shared_length(self.tokens.get(before), head);
        std::iter::successors(Some(before), |token| self.shorter(*token))
            .find(|token| self.length(*token) <= shared)
    }

    /// The longest token that is a proper prefix of this one.
    pub(super) fn shorter(&self, token: Token) -> Option<Token> {
        prefix(&self.prefixes, token)
    }

    /// Whether byte-pair encoding leaves the two as they are where they meet.
    pub(super) fn keep_apart(&self, left: Token, right: Token) -> bool {
        let rank = |token: Token| self.ranks[token as usize];
        self.merges.keep_apart(rank(left), rank(right))
    }

    /// The last token that is not after the text in the order of bytes.
    fn last_up_to(&self, text: &[u8]) -> Option<Token> {
        let (first, end) = self.candidates(text)?;
        let after = partition_point(first..end, |token| self.tokens.get(token) <= text);
        after.checked_sub(1)
    }

    /// The tokens that share the first two bytes of a text, or its only one.
    fn candidates(&self, text: &[u8]) -> Option<(Token, Token)> {
        let (first, second) = match *text {
            [] => return None,
            [only] => (usize::from(only) << 8, 0),
            [first, second, ..] => (usize::from(first) << 8, usize::from(second)),
        };
        Some((self.pairs[first + second], self.pairs[first + second + 1]))
    }
}

/// The bytes of all tokens, joined in their order.
struct Tokens {
    bytes: &'static [u8],
    starts: Vec<u32>,
}

impl Tokens {
    fn new(source: &Source) -> Self {
        let ends = source.lengths.iter().scan(0u32, |end, length| {
            *end += u32::from(*length);
            Some(*end)
        });
        Self {
            bytes: source.bytes,
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    fn all(&self) -> Range<Token> {
        0..(self.starts.len() - 1) as Token
    }

    fn range(&self, token: Token) -> Range<usize> {
        self.starts[token as usize] as usize..self.starts[token as usize + 1] as usize
    }

    fn get(&self, token: Token) -> &'static [u8] {
        &self.bytes[self.range(token)]
    }

    fn find(&self, by_bytes: &HashTable<Token>, bytes: &[u8]) -> Option<Token> {
        let is_equal = |token: &Token| self.get(*token) == bytes;
        by_bytes.find(hash(bytes), is_equal).copied()
    }

    fn by_bytes(&self) -> HashTable<Token> {
        let mut table = HashTable::with_capacity(self.all().len());
        for token in self.all() {
            table.insert_unique(hash(self.get(token)), token, |token| hash(self.get(*token)));
        }
        table
    }

    fn prefixes(&self) -> Vec<Token> {
        let mut prefixes = Vec::<Token>::with_capacity(self.all().len());
        for token in self.all() {
            let mut prefix = token.wrapping_sub(1);
            while prefix != NONE && !self.get(token).starts_with(self.get(prefix)) {
                prefix = prefixes[prefix as usize];
            }
            prefixes.push(prefix);
        }
        prefixes
    }

    fn pairs(&self) -> Vec<Token> {
        let key = |token| match *self.get(token) {
            [first, second, ..] => usize::from(first) << 8 | usize::from(second),
            [first] => usize::from(first) << 8,
            [] => 0,
        };
        let mut pairs = Vec::with_capacity((1 << 16) + 1);
        for token in self.all() {
            pairs.resize(pairs.len().max(key(token) + 1), token);
        }
        pairs.resize((1 << 16) + 1, self.all().end);
        pairs
    }
}

fn prefix(prefixes: &[Token], token: Token) -> Option<Token> {
    let prefix = prefixes[token as usize];
    (prefix != NONE).then_some(prefix)
}

fn ranks(little_endian: &[u8]) -> Vec<u32> {
    let (ranks, _) = little_endian.as_chunks::<4>();
    ranks.iter().copied().map(u32::from_le_bytes).collect()
}

fn merges(
    tokens: &Tokens,
    ranks: &[u32],
    prefixes: &[Token],
    by_bytes: &HashTable<Token>,
    left_lengths: &[u8],
) -> Merges {
    let mut parts = (0..)
        .map(|rank| (rank, rank))
        .take(ranks.len())
        .collect::<Vec<_>>();
    for token in tokens.all() {
        let left_length = usize::from(left_lengths[token as usize]);
        let (_, right) = tokens.get(token).split_at(left_length);
        let left = std::iter::successors(Some(token), |token| prefix(prefixes, *token))
            .find(|token| tokens.range(*token).len() == left_length);
        if let (Some(left), Some(right)) = (left, tokens.find(by_bytes, right)) {
            parts[ranks[token as usize] as usize] = (ranks[left as usize], ranks[right as usize]);
        }
    }
    Merges::new(parts)
}

fn hash(bytes: &[u8]) -> u64 {
    FxBuildHasher.hash_one(bytes)
}

fn shared_length(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(l, r)| l == r).count()
}

/// The first token of an ordered range for which the predicate fails.
fn partition_point(range: Range<Token>, holds: impl Fn(Token) -> bool) -> Token {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        if holds(middle) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    start
}
