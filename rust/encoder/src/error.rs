//! Why a model cannot be used.

use std::io;
use std::path::PathBuf;

use remora_kernels::Level;

/// Why an [`Encoder`](super::Encoder) could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    /// A file of the model is missing or cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// `model.safetensors` is not a well-formed file of that format.
    #[error("model.safetensors is malformed: {0}")]
    Malformed(String),
    /// The files describe a model other than all-MiniLM-L6-v2.
    #[error("not an all-MiniLM-L6-v2 model: {0}")]
    Architecture(String),
    /// `tokenizer.json` does not hold the tokenizer that the model was trained with.
    #[error("tokenizer.json is unusable: {0}")]
    Tokenizer(String),
    /// The instruction set that was asked for is not available on this processor.
    #[error("instruction set {0} is not available on this processor")]
    Level(Level),
}
