//! The postings of one set of documents, changed in place.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use rustc_hash::FxBuildHasher;

use super::document::Document;
use super::postings::{Posting, Postings};
use super::query::{Query, Statistics};
use super::term::{Term, TermHasher};

/// A set of analysed documents under slots that the caller assigns.
///
/// Every change takes effect at once, and the state depends only on the documents that it holds: two segments with
/// the same documents are equal, whatever was inserted, replaced or removed on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    documents: HashMap<u32, Indexed, FxBuildHasher>,
    postings: HashMap<Term, Postings, TermHasher>,
    total_length: u64,
    total_postings: usize,
}

/// What removing a document again needs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Indexed {
    terms: Box<[Term]>,
    length: u32,
}

impl Segment {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a document in a slot, in place of the one that was there.
    pub fn upsert(&mut self, slot: u32, document: &Document) {
        self.remove(slot);
        for &(term, count) in document.terms() {
            self.add_posting(term, Posting::new(slot, count, document.length()));
        }
        self.total_length += u64::from(document.length());
        self.total_postings += document.terms().len();
        let terms = document.terms().iter().map(|&(term, _)| term).collect();
        self.documents.insert(
            slot,
            Indexed {
                terms,
                length: document.length(),
            },
        );
    }

    /// Empties a slot; returns whether it held a document.
    pub fn remove(&mut self, slot: u32) -> bool {
        let Some(document) = self.documents.remove(&slot) else {
            return false;
        };
        for &term in &document.terms {
            self.remove_posting(term, slot);
        }
        self.total_length -= u64::from(document.length);
        self.total_postings -= document.terms.len();
        give_back(&mut self.documents);
        give_back(&mut self.postings);
        true
    }

    /// The number of documents, those without terms included.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Adds the documents to what a query needs to know of them.
    pub fn count_into(&self, statistics: &mut Statistics) {
        statistics.add(self.len() as u64, self.total_length, |term| self.df(term));
    }

    /// The sum of the documents' lengths, in terms.
    pub fn total_length(&self) -> u64 {
        self.total_length
    }

    /// The number of documents that have the term.
    pub fn df(&self, term: Term) -> u32 {
        let documents = self
            .postings
            .get(&term)
            .map_or(0, |postings| postings.as_slice().len());
        u32::try_from(documents).unwrap_or(u32::MAX)
    }

    /// An estimate of the memory held, in bytes, in constant time.
    pub fn bytes(&self) -> usize {
        let spare = size_of::<Posting>() / 8;
        let per_posting = size_of::<Term>() + size_of::<Posting>() + spare;
        size_of::<Self>()
            + self.documents.allocation_size()
            + self.postings.allocation_size()
            + self.total_postings * per_posting
    }

    /// Adds to `out[slot]` the BM25 score of every document that has a term of the query; a slot beyond `out` is left
    /// out. Terms are added in the query's order, so that a sum is the same in any division into segments.
    pub fn score_into(&self, query: &Query, out: &mut [f32]) {
        for weighted in query.terms() {
            let postings = self
                .postings
                .get(&weighted.term)
                .map_or(&[][..], Postings::as_slice);
            for posting in postings {
                if let Some(score) = out.get_mut(posting.slot as usize) {
                    *score += query.score(weighted, posting.count, self.length_of(posting));
                }
            }
        }
    }

    /// Visits the slots of the documents that have a term, in ascending order, and how often they have it.
    pub fn each_posting(&self, term: Term, mut visit: impl FnMut(u32, u16)) {
        for posting in self.postings.get(&term).map_or(&[][..], Postings::as_slice) {
            visit(posting.slot, posting.count);
        }
    }

    fn length_of(&self, posting: &Posting) -> u32 {
        posting.length().unwrap_or_else(|| {
            self.documents
                .get(&posting.slot)
                .map_or(0, |document| document.length)
        })
    }

    fn add_posting(&mut self, term: Term, posting: Posting) {
        match self.postings.entry(term) {
            Entry::Occupied(mut postings) => postings.get_mut().insert(posting),
            Entry::Vacant(vacant) => {
                vacant.insert(Postings::One(posting));
            }
        }
    }

    fn remove_posting(&mut self, term: Term, slot: u32) {
        if let Entry::Occupied(mut postings) = self.postings.entry(term)
            && !postings.get_mut().remove(slot)
        {
            postings.remove();
        }
    }
}

/// Shrinks a table of which less than a quarter is in use, so that its cost is spread over the removals.
fn give_back<K: Eq + Hash, V, S: BuildHasher>(table: &mut HashMap<K, V, S>) {
    if table.len() < table.capacity() / 4 {
        table.shrink_to(table.len() * 2);
    }
}
