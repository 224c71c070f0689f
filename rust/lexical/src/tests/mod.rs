//! Behaviour of the analyzer and of segments.

mod analysis;
mod scoring;
mod stemming;
