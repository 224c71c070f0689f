//! The vectors of one model and dimension in one thread.

use crate::index::Segment;
use crate::kernels::Kernels;

/// Vectors under the slots of their documents.
pub(super) struct ModelVectors {
    model: Box<str>,
    segment: Segment,
    /// How many of them the server's model was to make.
    embeddable: usize,
}

impl ModelVectors {
    pub(super) fn new(model: &str, dim: usize, kernels: &'static Kernels) -> Self {
        Self {
            model: model.into(),
            segment: Segment::with_kernels(dim, kernels),
            embeddable: 0,
        }
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn is_of(&self, model: &str, dim: usize) -> bool {
        self.segment.dim() == dim && *self.model == *model
    }

    pub(super) fn segment(&self) -> &Segment {
        &self.segment
    }

    pub(super) fn embeddable(&self) -> usize {
        self.embeddable
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.model.len() + self.segment.bytes()
    }

    /// Stores a vector in place of the one that is there; one without direction leaves the slot without a vector.
    pub(super) fn upsert(&mut self, slot: u32, values: &[f32], embeddable: bool) {
        self.remove(slot, embeddable);
        if self.segment.upsert(slot, values).is_ok() {
            self.embeddable += usize::from(embeddable);
        }
    }

    pub(super) fn remove(&mut self, slot: u32, embeddable: bool) {
        let removed = self.segment.remove(slot);
        self.embeddable -= usize::from(removed && embeddable);
    }
}
