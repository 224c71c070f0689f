//! The documents of one segment that contain one term.

/// One document of a term: 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) slot: u32,
    /// How often the document has the term, at most 65,535.
    pub(super) count: u16,
    length: u16,
}

impl Posting {
    pub(super) fn new(slot: u32, count: u16, length: u32) -> Self {
        Self {
            slot,
            count,
            length: u16::try_from(length).unwrap_or(u16::MAX),
        }
    }

    /// The document's length in terms, or `None` if it is too long to be kept here.
    pub(super) fn length(&self) -> Option<u32> {
        (self.length < u16::MAX).then_some(u32::from(self.length))
    }
}

/// Postings in ascending order of slot. Most terms of a segment occur in one document, which needs no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Postings {
    One(Posting),
    Many(Vec<Posting>),
}

impl Postings {
    pub(super) fn as_slice(&self) -> &[Posting] {
        match self {
            Self::One(posting) => std::slice::from_ref(posting),
            Self::Many(postings) => postings,
        }
    }

    /// Adds the posting of a slot that has none.
    pub(super) fn insert(&mut self, posting: Posting) {
        match self {
            Self::One(first) if first.slot < posting.slot => {
                *self = Self::Many(vec![*first, posting])
            }
            Self::One(first) => *self = Self::Many(vec![posting, *first]),
            Self::Many(postings) => insert_by_slot(postings, posting),
        }
    }

    /// Removes a slot's posting and returns whether others are left. A single posting is the caller's to drop.
    pub(super) fn remove(&mut self, slot: u32) -> bool {
        let Self::Many(postings) = self else {
            return false;
        };
        if let Ok(position) = postings.binary_search_by_key(&slot, |posting| posting.slot) {
            postings.remove(position);
            if postings.len() < postings.capacity() / 4 {
                postings.shrink_to(postings.len() * 2);
            }
        }
        if let [left] = postings[..] {
            *self = Self::One(left);
        }
        true
    }
}

/// Inserts a posting, which mostly comes last, and grows by a quarter where `Vec` would double.
fn insert_by_slot(postings: &mut Vec<Posting>, posting: Posting) {
    if postings.len() == postings.capacity() {
        postings.reserve_exact(postings.len() / 4 + 1);
    }
    let position = postings.partition_point(|other| other.slot < posting.slot);
    postings.insert(position, posting);
}
