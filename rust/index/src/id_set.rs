//! A set of slots: what a filter lets through.

const BITS: usize = u64::BITS as usize;

/// A set of small numbers, one bit for each number up to the largest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdSet {
    words: Vec<u64>,
    len: usize,
}

impl IdSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `id`; whether it was absent.
    pub fn insert(&mut self, id: u32) -> bool {
        let (word, bit) = place(id);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let added = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(added);
        added
    }

    /// Whether `id` is in the set.
    pub fn contains(&self, id: u32) -> bool {
        let (word, bit) = place(id);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// The number of ids.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set has no id.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.words
            .iter()
            .enumerate()
            .flat_map(|(index, word)| bits_of(*word).map(move |bit| (index * BITS) as u32 + bit))
    }
}

impl Extend<u32> for IdSet {
    fn extend<T: IntoIterator<Item = u32>>(&mut self, ids: T) {
        for id in ids {
            self.insert(id);
        }
    }
}

impl FromIterator<u32> for IdSet {
    fn from_iter<T: IntoIterator<Item = u32>>(ids: T) -> Self {
        let mut set = Self::new();
        set.extend(ids);
        set
    }
}

fn place(id: u32) -> (usize, u64) {
    (id as usize / BITS, 1 << (id as usize % BITS))
}

/// The numbers of the bits that are set, ascending.
fn bits_of(word: u64) -> impl Iterator<Item = u32> {
    let rest = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest != 0);
    std::iter::successors(Some(word).filter(|word| *word != 0), rest).map(u64::trailing_zeros)
}
