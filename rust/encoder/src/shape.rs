//! The one architecture that the encoder runs: all-MiniLM-L6-v2.

/// Layers of the transformer.
pub(super) const LAYERS: usize = 6;
/// Values of a hidden state and of an embedding.
pub(super) const HIDDEN: usize = 384;
/// Attention heads.
pub(super) const HEADS: usize = 12;
/// Values of a query, key or value of one head.
pub(super) const HEAD: usize = HIDDEN / HEADS;
/// Values between the two projections of a feed-forward block.
pub(super) const INTERMEDIATE: usize = 1536;
/// Weights of all projections of all layers.
pub(super) const PROJECTED: usize = LAYERS * HIDDEN * (4 * HIDDEN + 2 * INTERMEDIATE);
/// Positions that the model has embeddings for.
pub(super) const POSITIONS: usize = 512;
/// Kinds of segment that the model has embeddings for; texts are all of the first.
pub(super) const SEGMENTS: usize = 2;
/// Word pieces of a text that count, the two special ones included (the model's `max_seq_length`).
pub(super) const MAX_TOKENS: usize = 256;
/// The model's `layer_norm_eps`.
pub(super) const LAYER_NORM_EPSILON: f32 = 1e-12;
