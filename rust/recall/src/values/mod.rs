//! Values that messages and questions are made of: attributes, short shared strings, vectors, and the weights of a ranking.

mod profile;
mod vector;

pub use profile::{Profile, UnknownProfile, Weights};
pub(crate) use remora_filter::{Scalar, Symbol, Symbols};
pub(crate) use vector::ModelVector;
pub use vector::Vector;
