//! Sentence embeddings: all-MiniLM-L6-v2 in process, on the CPU, from local files in the hub's layout.
//!
//! A text becomes word pieces (`tokenizer`), these pass through six layers of a transformer (`forward`), and the mean of the
//! last hidden states, at unit length, is its embedding. In f32 the result for a text has the same bits whatever else is in
//! the batch: every sum runs in an order of its own row.
//!
//! Knows: `kernels`, `late`, `lexical`, `supervision`. It must not know messages or callers.

mod background;
mod chunks;
mod error;
mod forward;
mod kernels;
mod linear;
mod shape;
mod tensors;
#[cfg(test)]
mod tests;
mod tokenizer;
mod weights;

use std::fs;
use std::path::Path;

use parking_lot::Mutex;
use remora_kernels::{self as arithmetic, Level};
use remora_late::{Pieces, code};
use serde_json::Value;

use forward::Activations;
use kernels::{Buffer, Int8Kernels, Kernels, MappedFile};
use linear::Linear;
use shape::{HEADS, HIDDEN, INTERMEDIATE, LAYERS, MAX_TOKENS, PROJECTED};
use tokenizer::Tokenizer;
use weights::Weights;

pub use background::{BackgroundEncoder, Unmade};
pub use error::EncoderError;

/// In which numbers the projections are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// As the model was trained.
    #[default]
    F32,
    /// Weights in int8 per output, activations in int8 per token: a third of the time, a quarter of the memory, and
    /// embeddings whose cosine to those of [`Precision::F32`] is above 0.99.
    Int8,
}

/// How a model is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// What to compute in; [`Encoder::precision`] tells what is computed in.
    pub precision: Precision,
    /// The instruction set; the best of this processor if none is given.
    pub level: Option<Level>,
}

/// The hidden states of a text, for late interaction.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenVectors {
    /// The word pieces, `[CLS]` first and `[SEP]` last.
    pub ids: Vec<u32>,
    /// One last hidden state per piece, [`Encoder::dimension`] values each, not normalised.
    pub vectors: Vec<f32>,
}

/// What texts were made into.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// The embeddings, one after the other, [`Encoder::dimension`] values each.
    pub values: Vec<f32>,
    /// The word pieces of each text; empty if they were not asked for.
    pub pieces: Vec<Pieces>,
}

impl Made {
    /// Nothing yet, of so many texts.
    fn of(texts: usize, with_pieces: bool) -> Self {
        Self {
            values: vec![0.0; texts * HIDDEN],
            pieces: vec![Pieces::default(); if with_pieces { texts } else { 0 }],
        }
    }
}

/// A model, ready to encode. It can be shared between threads; each call runs on its caller's.
#[derive(Debug)]
pub struct Encoder {
    tokenizer: Tokenizer,
    weights: Weights,
    kernels: &'static Kernels,
    /// What codes are computed with.
    vectors: &'static arithmetic::Kernels,
    precision: Precision,
    /// One for each call that has run at the same time as others.
    idle: Mutex<Vec<Activations>>,
}

impl Encoder {
    /// Opens a model from a directory that holds `model.safetensors`, `tokenizer.json` and perhaps `config.json`.
    ///
    /// # Errors
    /// Where a file is missing or malformed, the model is another one, or the processor lacks the instruction set.
    pub fn open(directory: &Path, options: Options) -> Result<Self, EncoderError> {
        let level = options.level.unwrap_or_else(Level::detect);
        let kernels = Kernels::for_level(level).ok_or(EncoderError::Level(level))?;
        let vectors = arithmetic::Kernels::for_level(level).ok_or(EncoderError::Level(level))?;
        let int8 = Int8Kernels::for_level(level).filter(|_| options.precision == Precision::Int8);
        check_config(directory)?;
        let tokenizer = Tokenizer::from_json(&read(&directory.join("tokenizer.json"))?)?;
        let file = map(&directory.join("model.safetensors"))?;
        let weights = read_weights(file, kernels, int8)?;
        check_vocabulary(&tokenizer, &weights)?;
        let precision = if int8.is_some() {
            Precision::Int8
        } else {
            Precision::F32
        };
        Ok(Self {
            tokenizer,
            weights,
            kernels,
            vectors,
            precision,
            idle: Mutex::new(Vec::new()),
        })
    }

    /// Values of an embedding.
    pub fn dimension(&self) -> usize {
        HIDDEN
    }

    /// Word pieces of a text that count, the two special ones included.
    pub fn max_tokens(&self) -> usize {
        MAX_TOKENS
    }

    /// What the projections are computed in: f32 also where int8 was asked for and the instruction set has no fast int8.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The instruction set in use.
    pub fn level(&self) -> Level {
        self.kernels.level()
    }

    /// The embeddings of the texts, in their order, [`Encoder::dimension`] values each, of unit length. The empty text has
    /// one too: that of `[CLS] [SEP]`.
    pub fn encode(&self, texts: &[&str]) -> Vec<f32> {
        self.embed_at_once(texts, false).values
    }

    /// The embeddings as [`Encoder::encode`] gives them and, of the same passes, the codes of each text's word pieces for
    /// late interaction: of those that say something by themselves, or of all where none does.
    pub fn encode_with_pieces(&self, texts: &[&str]) -> (Vec<f32>, Vec<Pieces>) {
        let made = self.embed_at_once(texts, true);
        (made.values, made.pieces)
    }

    fn embed_at_once(&self, texts: &[&str], with_pieces: bool) -> Made {
        let mut activations = self.activations();
        let made = self.embed(texts, with_pieces, &mut activations, || true);
        self.idle.lock().push(activations);
        made
    }

    /// The embeddings and, with them, the pieces; those of the texts that come before it no longer goes on.
    fn embed(
        &self,
        texts: &[&str],
        with_pieces: bool,
        activations: &mut Activations,
        goes_on: impl Fn() -> bool,
    ) -> Made {
        let mut made = Made::of(texts.len(), with_pieces);
        self.each(texts, activations, |index, ids, states| {
            pool(states, &mut made.values[index * HIDDEN..][..HIDDEN]);
            if with_pieces {
                made.pieces[index] = self.pieces(ids, states);
            }
            goes_on()
        });
        made
    }

    /// Visits the texts in passes: each one's index, word pieces and last hidden states; ends where a visit says so.
    fn each(
        &self,
        texts: &[&str],
        activations: &mut Activations,
        mut visit: impl FnMut(usize, &[u32], &[f32]) -> bool,
    ) {
        let tokens = texts
            .iter()
            .map(|text| self.tokenizer.encode(text, MAX_TOKENS))
            .collect::<Vec<_>>();
        let lengths = tokens.iter().map(Vec::len).collect::<Vec<_>>();
        let order = chunks::by_length(&lengths);
        for run in chunks::runs(&order, &lengths) {
            let members = &order[run];
            let sequences = members
                .iter()
                .map(|&index| &tokens[index][..])
                .collect::<Vec<_>>();
            let mut states = activations.run(self.kernels, &self.weights, &sequences);
            for (&index, sequence) in members.iter().zip(&sequences) {
                let (own, rest) = states.split_at(sequence.len() * HIDDEN);
                if !visit(index, sequence, own) {
                    return;
                }
                states = rest;
            }
        }
    }

    /// The codes of a sequence's pieces, without `[CLS]` and `[SEP]`.
    fn pieces(&self, ids: &[u32], states: &[f32]) -> Pieces {
        let inner = 1..ids.len() - 1;
        let speaks = |index: &usize| self.tokenizer.speaks(ids[*index]);
        let all_silent = !inner.clone().any(|index| speaks(&index));
        let code_of = |index: usize| {
            let id = u16::try_from(ids[index]).ok()?;
            Some((id, code(&states[index * HIDDEN..][..HIDDEN], self.vectors)))
        };
        let kept = inner.filter(|index| all_silent || speaks(index));
        Pieces::new(kept.filter_map(code_of))
    }

    /// The words of a text that are no forms of words of the vocabulary, in lower case: rare ones, names, typing errors.
    /// Words are runs of letters, digits and underscores; only those of ASCII letters alone are told.
    pub fn unknown_words(&self, text: &str) -> Vec<String> {
        self.tokenizer.unknown_words(text)
    }

    /// The word pieces of a text and their last hidden states.
    pub fn token_vectors(&self, text: &str) -> TokenVectors {
        let ids = self.tokenizer.encode(text, MAX_TOKENS);
        let mut activations = self.activations();
        let vectors = activations
            .run(self.kernels, &self.weights, &[&ids])
            .to_vec();
        self.idle.lock().push(activations);
        TokenVectors { ids, vectors }
    }

    fn activations(&self) -> Activations {
        let idle = self.idle.lock().pop();
        idle.unwrap_or_else(Activations::new)
    }
}

/// The weights, the projections packed for int8 if there are kernels for it.
fn read_weights(
    file: MappedFile,
    kernels: &'static Kernels,
    int8: Option<&'static Int8Kernels>,
) -> Result<Weights, EncoderError> {
    if let Some(int8) = int8 {
        let mut memory = Buffer::zeroed(PROJECTED);
        Weights::read(file, |dense| Linear::int8(int8, dense, &mut memory))
    } else {
        let mut memory = Buffer::zeroed(PROJECTED);
        Weights::read(file, |dense| Linear::f32(kernels, dense, &mut memory))
    }
}

/// The mean of the states, at unit length.
fn pool(states: &[f32], embedding: &mut [f32]) {
    for state in states.chunks_exact(HIDDEN) {
        for (sum, value) in embedding.iter_mut().zip(state) {
            *sum += value;
        }
    }
    // The number of states cancels out at unit length.
    let norm = embedding
        .iter()
        .map(|value| value * value)
        .sum::<f32>()
        .sqrt();
    for value in embedding {
        *value /= norm.max(f32::MIN_POSITIVE);
    }
}

fn read(path: &Path) -> Result<Vec<u8>, EncoderError> {
    fs::read(path).map_err(|source| EncoderError::File {
        path: path.to_owned(),
        source,
    })
}

fn map(path: &Path) -> Result<MappedFile, EncoderError> {
    MappedFile::open(path).map_err(|source| EncoderError::File {
        path: path.to_owned(),
        source,
    })
}

/// Refuses the configuration of another model; a directory without one is judged by its tensors alone.
fn check_config(directory: &Path) -> Result<(), EncoderError> {
    let path = directory.join("config.json");
    if !path.exists() {
        return Ok(());
    }
    let config = serde_json::from_slice::<Value>(&read(&path)?)
        .map_err(|error| EncoderError::Architecture(format!("config.json: {error}")))?;
    let numbers = [
        ("num_hidden_layers", LAYERS),
        ("hidden_size", HIDDEN),
        ("num_attention_heads", HEADS),
        ("intermediate_size", INTERMEDIATE),
    ];
    for (name, expected) in numbers {
        if config.get(name).and_then(Value::as_u64) != Some(expected as u64) {
            return Err(EncoderError::Architecture(format!(
                "config.json: {name} is not {expected}"
            )));
        }
    }
    if config.get("hidden_act").and_then(Value::as_str) != Some("gelu") {
        return Err(EncoderError::Architecture(
            "config.json: hidden_act is not gelu".to_owned(),
        ));
    }
    Ok(())
}

fn check_vocabulary(tokenizer: &Tokenizer, weights: &Weights) -> Result<(), EncoderError> {
    let (last, words) = (tokenizer.last_id(), weights.embeddings.words());
    if (last as usize) < words {
        return Ok(());
    }
    Err(EncoderError::Architecture(format!(
        "the tokenizer has the id {last}, the model {words} words"
    )))
}
