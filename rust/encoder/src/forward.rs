//! The forward pass: word pieces of a few sequences in, one hidden state per piece out.

use super::chunks::CHUNK;
use super::kernels::{AttentionScratch, Finish, Kernels, QuantizedRows};
use super::shape::{HIDDEN, INTERMEDIATE, MAX_TOKENS};
use super::weights::{Embeddings, Layer, Norm, Weights};

/// Most rows of a pass: a chunk, or one sequence of any length.
const ROWS: usize = if CHUNK > MAX_TOKENS {
    CHUNK
} else {
    MAX_TOKENS
};

/// The activations of one pass, about 5 MB; kept between passes.
#[derive(Debug)]
pub(super) struct Activations {
    hidden: Vec<f32>,
    qkv: Vec<f32>,
    mixed: Vec<f32>,
    inner: Vec<f32>,
    attention: AttentionScratch,
    quantized: QuantizedRows,
}

impl Activations {
    pub(super) fn new() -> Self {
        Self {
            hidden: vec![0.0; ROWS * HIDDEN],
            qkv: vec![0.0; ROWS * 3 * HIDDEN],
            mixed: vec![0.0; ROWS * HIDDEN],
            inner: vec![0.0; ROWS * INTERMEDIATE],
            attention: AttentionScratch::new(MAX_TOKENS),
            quantized: QuantizedRows::new(ROWS, INTERMEDIATE),
        }
    }

    /// Runs the sequences through the model and returns their hidden states, sequence after sequence, each state
    /// [`HIDDEN`] values.
    ///
    /// # Panics
    /// Where the sequences have more tokens than a pass has rows, or word pieces that the model has not.
    pub(super) fn run(
        &mut self,
        kernels: &Kernels,
        weights: &Weights,
        sequences: &[&[u32]],
    ) -> &[f32] {
        let rows = sequences.iter().map(|sequence| sequence.len()).sum();
        self.embed(kernels, &weights.embeddings, sequences, rows);
        for layer in &weights.layers {
            self.attend(kernels, layer, sequences, rows);
            self.feed_forward(kernels, layer, rows);
        }
        &self.hidden[..rows * HIDDEN]
    }

    fn embed(
        &mut self,
        kernels: &Kernels,
        embeddings: &Embeddings,
        sequences: &[&[u32]],
        rows: usize,
    ) {
        let hidden = &mut self.hidden[..rows * HIDDEN];
        let tokens = sequences
            .iter()
            .flat_map(|sequence| sequence.iter().enumerate());
        for (state, (position, &word)) in hidden.chunks_exact_mut(HIDDEN).zip(tokens) {
            embeddings.write(word, position, state);
        }
        normalize(kernels, hidden, &embeddings.norm);
    }

    /// Each token looks at its own sequence.
    fn attend(&mut self, kernels: &Kernels, layer: &Layer, sequences: &[&[u32]], rows: usize) {
        let hidden = &mut self.hidden[..rows * HIDDEN];
        let mixed = &mut self.mixed[..rows * HIDDEN];
        let qkv = &mut self.qkv[..rows * 3 * HIDDEN];
        layer
            .qkv
            .apply(hidden, &mut self.quantized, qkv, Finish::Store);
        let mut first = 0;
        for sequence in sequences {
            let last = first + sequence.len();
            let qkv = &qkv[first * 3 * HIDDEN..last * 3 * HIDDEN];
            kernels.attend(
                qkv,
                &mut self.attention,
                &mut mixed[first * HIDDEN..last * HIDDEN],
            );
            first = last;
        }
        layer
            .attention
            .apply(mixed, &mut self.quantized, hidden, Finish::Add);
        normalize(kernels, hidden, &layer.attention_norm);
    }

    fn feed_forward(&mut self, kernels: &Kernels, layer: &Layer, rows: usize) {
        let hidden = &mut self.hidden[..rows * HIDDEN];
        let inner = &mut self.inner[..rows * INTERMEDIATE];
        layer
            .inner
            .apply(hidden, &mut self.quantized, inner, Finish::Gelu);
        layer
            .outer
            .apply(inner, &mut self.quantized, hidden, Finish::Add);
        normalize(kernels, hidden, &layer.outer_norm);
    }
}

fn normalize(kernels: &Kernels, hidden: &mut [f32], norm: &Norm) {
    kernels.layer_norm(hidden, &norm.weight, &norm.bias);
}
