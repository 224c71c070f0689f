//! What one part holds: its documents in slots, their words and their vectors. Changes are idempotent.

mod document;
mod layout;
mod sessions;
mod surroundings;
mod traits;
mod vectors;

use std::sync::OnceLock;

use bytes::Bytes;
use remora_index as index;
use remora_kernels::{Kernels, prefetch};
use remora_lexical as lexical;

use crate::values::{ModelVector, Symbol, Symbols};
pub(crate) use document::{Document, Reading};
use layout::Layout;
use traits::Arrangement;
pub(crate) use traits::Traits;
pub(crate) use vectors::ModelVectors;

/// The documents of one part. Slots are dense and used again, so that a slot says nothing of a document's order.
pub(crate) struct Content {
    kernels: &'static Kernels,
    documents: Vec<Option<Document>>,
    /// Of each slot; what is in a free one means nothing.
    traits: Vec<Traits>,
    free: Vec<u32>,
    /// The sequence and the slot of each document, by sequence.
    order: Vec<(u64, u32)>,
    words: lexical::Segment,
    /// One for each model and dimension that was ever seen here.
    vectors: Vec<ModelVectors>,
    roles: Symbols,
    speakers: Symbols,
    sessions: Symbols,
    /// Made for the first search after a change that needs it.
    layout: OnceLock<Layout>,
    embeddable: usize,
    document_bytes: usize,
}

impl Content {
    pub(crate) fn new(kernels: &'static Kernels) -> Self {
        Self {
            kernels,
            documents: Vec::new(),
            traits: Vec::new(),
            free: Vec::new(),
            order: Vec::new(),
            words: lexical::Segment::new(),
            vectors: Vec::new(),
            roles: Symbols::default(),
            speakers: Symbols::default(),
            sessions: Symbols::default(),
            layout: OnceLock::new(),
            embeddable: 0,
            document_bytes: 0,
        }
    }

    /// Puts a document in a slot; one that is older than what is there changes nothing. `embeddable`: it came without a vector.
    pub(crate) fn put(&mut self, reading: Reading, embeddable: bool) {
        match self.find(reading.sequence) {
            Ok(index) => {
                let slot = self.order[index].1;
                if self.revision_of(slot) < Some(reading.revision) {
                    self.clear(slot);
                    self.fill(slot, reading, embeddable);
                }
            }
            Err(index) => {
                let slot = self.free_slot();
                self.order.insert(index, (reading.sequence, slot));
                self.fill(slot, reading, embeddable);
            }
        }
    }

    /// Removes those of the documents that are older than `revision`.
    pub(crate) fn remove(&mut self, sequences: &[u64], revision: u64) {
        let mut sequences = sequences.to_vec();
        sequences.sort_unstable();
        self.remove_where(revision, |sequence| {
            sequences.binary_search(&sequence).is_ok()
        });
    }

    /// Removes all documents that are older than `revision`.
    pub(crate) fn remove_all(&mut self, revision: u64) {
        self.remove_where(revision, |_| true);
    }

    /// Gives the document at `sequence` a vector, if it is still of `revision`. A vector that no search could use is
    /// passed over.
    pub(crate) fn embed(&mut self, sequence: u64, revision: u64, vector: ModelVector) {
        let Ok(index) = self.find(sequence) else {
            return;
        };
        let slot = self.order[index].1;
        if self.revision_of(slot) == Some(revision) {
            self.add_vector(slot, vector);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// One more than the highest slot in use.
    pub(crate) fn slots(&self) -> usize {
        self.documents.len()
    }

    /// The sequence and the slot of each document, by sequence.
    pub(crate) fn order(&self) -> &[(u64, u32)] {
        &self.order
    }

    /// The slot of the document at a sequence.
    pub(crate) fn slot(&self, sequence: u64) -> Option<usize> {
        let index = self.find(sequence).ok()?;
        Some(self.order[index].1 as usize)
    }

    /// The encoded messages before and after a sequence, so many of each at most, in their order.
    pub(crate) fn around(&self, sequence: u64, reach: usize) -> (Vec<Bytes>, Vec<Bytes>) {
        let (before, rest) = match self.find(sequence) {
            Ok(index) => (&self.order[..index], &self.order[index + 1..]),
            Err(index) => self.order.split_at(index),
        };
        let encoded = |documents: &[(u64, u32)]| {
            let slots = documents.iter().map(|&(_, slot)| slot);
            slots.map(|slot| self.encoded(slot)).collect()
        };
        (
            encoded(&before[before.len().saturating_sub(reach)..]),
            encoded(&rest[..reach.min(rest.len())]),
        )
    }

    /// The documents with their slots, by slot.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (u32, &Document)> {
        let slots = (0..).zip(&self.documents);
        slots.filter_map(|(slot, document)| Some((slot, document.as_ref()?)))
    }

    /// The encoded message in a slot; empty if there is none.
    pub(crate) fn encoded(&self, slot: u32) -> Bytes {
        self.document(slot)
            .map(|document| document.encoded.clone())
            .unwrap_or_default()
    }

    pub(crate) fn words(&self) -> &lexical::Segment {
        &self.words
    }

    /// The vectors of a model and dimension.
    pub(crate) fn vectors(&self, model: &str, dim: usize) -> Option<&index::Segment> {
        self.model_vectors(model, dim).map(ModelVectors::segment)
    }

    /// The vectors of a model and dimension, with the word pieces beside them.
    pub(crate) fn model_vectors(&self, model: &str, dim: usize) -> Option<&ModelVectors> {
        let mut vectors = self.vectors.iter();
        vectors.find(|vectors| vectors.is_of(model, dim))
    }

    /// The dimensions of the vectors of a model that documents have.
    pub(crate) fn dimensions(&self, model: &str) -> impl Iterator<Item = usize> {
        let of_model = move |vectors: &&ModelVectors| vectors.model() == model;
        let segments = self.vectors.iter().filter(of_model);
        segments
            .map(ModelVectors::segment)
            .filter(|segment| !segment.is_empty())
            .map(index::Segment::dim)
    }

    /// How many documents the server's model is to embed, and `model` is not done with.
    pub(crate) fn pending(&self, model: &str) -> usize {
        let of_model = |vectors: &&ModelVectors| vectors.model() == model;
        let embedded: usize = self
            .vectors
            .iter()
            .filter(of_model)
            .map(ModelVectors::embeddable)
            .sum();
        self.embeddable - embedded
    }

    /// The symbols of those of the roles that a document has.
    pub(crate) fn role_symbols(&self, roles: &[String]) -> Vec<Symbol> {
        roles
            .iter()
            .filter_map(|role| self.roles.find(role))
            .collect()
    }

    /// Whether the document in a slot has one of the roles with these symbols.
    pub(crate) fn has_role(&self, slot: u32, roles: &[Symbol]) -> bool {
        !roles.is_empty()
            && self
                .document(slot)
                .is_some_and(|document| roles.contains(&document.role))
    }

    /// Of the document in a slot.
    ///
    /// # Panics
    /// Where the slot was never in use.
    pub(crate) fn traits(&self, slot: u32) -> Traits {
        self.traits[slot as usize]
    }

    /// The names, or else the roles, of those who speak here.
    pub(crate) fn speakers(&self) -> impl Iterator<Item = &str> {
        self.speakers.held().map(|(_, speaker)| speaker)
    }

    /// For each symbol of a speaker, whether `wanted` holds.
    pub(crate) fn speakers_where(&self, wanted: impl Fn(&str) -> bool) -> Vec<bool> {
        let mut chosen = vec![false; self.speakers.bound()];
        for (symbol, speaker) in self.speakers.held() {
            chosen[symbol as usize] = wanted(speaker);
        }
        chosen
    }

    /// How the documents stand to each other.
    pub(crate) fn layout(&self) -> &Layout {
        self.layout.get_or_init(|| {
            Layout::of(Arrangement {
                order: &self.order,
                traits: &self.traits,
                session_symbols: self.sessions.bound(),
            })
        })
    }

    /// Asks for the memory that rules read of every document.
    pub(crate) fn prefetch(&self) {
        prefetch(&self.traits);
        prefetch(&self.order);
        if let Some(layout) = self.layout.get() {
            layout.prefetch();
        }
    }

    /// An estimate of the memory held, in bytes, the layout always included.
    pub(crate) fn bytes(&self) -> usize {
        let vectors: usize = self.vectors.iter().map(ModelVectors::bytes).sum();
        size_of::<Self>()
            + self.document_bytes
            + self.order.capacity() * size_of::<(u64, u32)>()
            + self.traits.capacity() * (size_of::<Traits>() + Layout::SLOT_BYTES)
            + self.words.bytes()
            + self.roles.bytes()
            + self.speakers.bytes()
            + self.sessions.bytes()
            + vectors
    }

    fn find(&self, sequence: u64) -> Result<usize, usize> {
        match self.order.last() {
            Some((last, _)) if *last < sequence => Err(self.order.len()),
            _ => self
                .order
                .binary_search_by_key(&sequence, |(other, _)| *other),
        }
    }

    fn document(&self, slot: u32) -> Option<&Document> {
        self.documents.get(slot as usize)?.as_ref()
    }

    fn revision_of(&self, slot: u32) -> Option<u64> {
        self.document(slot).map(|document| document.revision)
    }

    fn free_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.documents.push(None);
            self.traits.push(Traits::NONE);
            (self.documents.len() - 1) as u32
        })
    }

    /// Fills an empty slot.
    fn fill(&mut self, slot: u32, reading: Reading, embeddable: bool) {
        self.layout.take();
        self.words.upsert(slot, &reading.terms);
        self.traits[slot as usize] = self.hold_traits(&reading);
        let document = Document {
            revision: reading.revision,
            role: self.roles.hold(&reading.role),
            received: reading.received,
            embeddable: embeddable && reading.has_text,
            attributes: reading.attributes,
            encoded: reading.encoded,
        };
        self.embeddable += usize::from(document.embeddable);
        self.document_bytes += document.bytes();
        self.documents[slot as usize] = Some(document);
    }

    fn hold_traits(&mut self, reading: &Reading) -> Traits {
        let session = Some(reading.session_id.as_str()).filter(|id| !id.is_empty());
        Traits {
            time: reading.time,
            speaker: self.speakers.hold(reading.speaker()),
            session: session.map(|id| self.sessions.hold(id)),
            by_user: reading.role == "user",
            has_text: reading.has_text,
            length: reading.terms.length(),
            signs: reading.signs,
        }
    }

    /// Empties a slot.
    fn clear(&mut self, slot: u32) {
        let Some(document) = self.documents[slot as usize].take() else {
            return;
        };
        self.layout.take();
        self.words.remove(slot);
        for vectors in &mut self.vectors {
            vectors.remove(slot, document.embeddable);
        }
        let traits = self.traits(slot);
        self.roles.release(document.role);
        self.speakers.release(traits.speaker);
        if let Some(session) = traits.session {
            self.sessions.release(session);
        }
        self.embeddable -= usize::from(document.embeddable);
        self.document_bytes -= document.bytes();
    }

    fn remove_where(&mut self, revision: u64, mut wanted: impl FnMut(u64) -> bool) {
        let mut order = std::mem::take(&mut self.order);
        order.retain(|(sequence, slot)| {
            let goes = wanted(*sequence) && self.revision_of(*slot) < Some(revision);
            if goes {
                self.clear(*slot);
                self.free.push(*slot);
            }
            !goes
        });
        self.order = order;
    }

    fn add_vector(&mut self, slot: u32, vector: ModelVector) {
        let embeddable = self
            .document(slot)
            .is_some_and(|document| document.embeddable);
        let dim = vector.values.len();
        for vectors in &mut self.vectors {
            if vectors.model() == vector.model && !vectors.is_of(&vector.model, dim) {
                vectors.remove(slot, embeddable);
            }
        }
        self.vectors_of(&vector.model, dim)
            .upsert(slot, vector, embeddable);
    }

    fn vectors_of(&mut self, model: &str, dim: usize) -> &mut ModelVectors {
        let found = self
            .vectors
            .iter()
            .position(|vectors| vectors.is_of(model, dim));
        let index = found.unwrap_or_else(|| {
            self.vectors
                .push(ModelVectors::new(model, dim, self.kernels));
            self.vectors.len() - 1
        });
        &mut self.vectors[index]
    }
}
