//! The weights of the model: read from safetensors, checked, and packed for the kernels.

use std::ops::Range;

use super::error::EncoderError;
use super::kernels::{Dense, MappedFile};
use super::linear::Linear;
use super::shape::{HEAD, HIDDEN, INTERMEDIATE, LAYERS, MAX_TOKENS, POSITIONS, SEGMENTS};
use super::tensors::{Tensors, read_floats};

const WORDS: &str = "embeddings.word_embeddings.weight";

/// Everything that the forward pass reads.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) embeddings: Embeddings,
    pub(super) layers: Vec<Layer>,
}

/// The first step: a word piece and its position become a hidden state. The words stay in the file, mapped: of their 47 MB a
/// process touches what its texts use.
#[derive(Debug)]
pub(super) struct Embeddings {
    file: MappedFile,
    words: Range<usize>,
    /// Position plus segment, one row for each of the [`MAX_TOKENS`] positions.
    positions: Vec<f32>,
    pub(super) norm: Norm,
}

/// The weight and bias of a layer normalisation.
#[derive(Debug)]
pub(super) struct Norm {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

/// One layer of the transformer.
#[derive(Debug)]
pub(super) struct Layer {
    /// Queries, keys and values, side by side; queries are scaled by `1 / sqrt(HEAD)`.
    pub(super) qkv: Linear,
    pub(super) attention: Linear,
    pub(super) attention_norm: Norm,
    pub(super) inner: Linear,
    pub(super) outer: Linear,
    pub(super) outer_norm: Norm,
}

impl Weights {
    /// Reads all weights and packs the projections by `pack`, in the order in which they are used.
    pub(super) fn read(
        file: MappedFile,
        mut pack: impl FnMut(Dense) -> Linear,
    ) -> Result<Self, EncoderError> {
        let tensors = Tensors::read(&file)?;
        let words = tensors.range(WORDS, &[tensors.rows(WORDS)?, HIDDEN])?;
        let positions = read_positions(&tensors)?;
        let norm = Norm::read(&tensors, "embeddings.LayerNorm")?;
        let layers = (0..LAYERS)
            .map(|index| Layer::read(&tensors, index, &mut pack))
            .collect::<Result<_, _>>()?;
        file.release();
        let embeddings = Embeddings {
            file,
            words,
            positions,
            norm,
        };
        Ok(Self { embeddings, layers })
    }
}

impl Embeddings {
    /// How many word pieces have an embedding.
    pub(super) fn words(&self) -> usize {
        self.words.len() / (HIDDEN * size_of::<f32>())
    }

    /// Writes the sum of the word's and the position's embedding.
    ///
    /// # Panics
    /// Where the model has no such word or position.
    pub(super) fn write(&self, word: u32, position: usize, state: &mut [f32]) {
        let bytes = HIDDEN * size_of::<f32>();
        let word = &self.file[self.words.clone()][word as usize * bytes..][..bytes];
        let position = &self.positions[position * HIDDEN..][..HIDDEN];
        for ((state, word), position) in state.iter_mut().zip(read_floats(word)).zip(position) {
            *state = word + position;
        }
    }
}

impl Norm {
    fn read(tensors: &Tensors<'_>, name: &str) -> Result<Self, EncoderError> {
        Ok(Self {
            weight: tensors.floats(&format!("{name}.weight"), &[HIDDEN])?,
            bias: tensors.floats(&format!("{name}.bias"), &[HIDDEN])?,
        })
    }
}

impl Layer {
    fn read(
        tensors: &Tensors<'_>,
        index: usize,
        pack: &mut impl FnMut(Dense) -> Linear,
    ) -> Result<Self, EncoderError> {
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        let dense = |part: &str, inputs, outputs| read_dense(tensors, &name(part), inputs, outputs);
        let query =
            dense("attention.self.query", HIDDEN, HIDDEN)?.scaled((HEAD as f32).sqrt().recip());
        let key = dense("attention.self.key", HIDDEN, HIDDEN)?;
        let value = dense("attention.self.value", HIDDEN, HIDDEN)?;
        Ok(Self {
            qkv: pack(query.beside(key).beside(value)),
            attention: pack(dense("attention.output.dense", HIDDEN, HIDDEN)?),
            attention_norm: Norm::read(tensors, &name("attention.output.LayerNorm"))?,
            inner: pack(dense("intermediate.dense", HIDDEN, INTERMEDIATE)?),
            outer: pack(dense("output.dense", INTERMEDIATE, HIDDEN)?),
            outer_norm: Norm::read(tensors, &name("output.LayerNorm"))?,
        })
    }
}

fn read_dense(
    tensors: &Tensors<'_>,
    name: &str,
    inputs: usize,
    outputs: usize,
) -> Result<Dense, EncoderError> {
    let weights = tensors.floats(&format!("{name}.weight"), &[outputs, inputs])?;
    let bias = tensors.floats(&format!("{name}.bias"), &[outputs])?;
    Ok(Dense::new(inputs, weights, bias))
}

fn read_positions(tensors: &Tensors<'_>) -> Result<Vec<f32>, EncoderError> {
    let mut positions = tensors.floats(
        "embeddings.position_embeddings.weight",
        &[POSITIONS, HIDDEN],
    )?;
    let segments = tensors.floats(
        "embeddings.token_type_embeddings.weight",
        &[SEGMENTS, HIDDEN],
    )?;
    positions.truncate(MAX_TOKENS * HIDDEN);
    for position in positions.chunks_exact_mut(HIDDEN) {
        for (position, segment) in position.iter_mut().zip(&segments[..HIDDEN]) {
            *position += segment;
        }
    }
    Ok(positions)
}
