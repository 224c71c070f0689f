//! What outlives a panic, how the process's log is told of one, and where tests plant one.
//!
//! It knows no other crate of the engine. Each point of `failpoints` stands in one of those that use it.

pub mod failpoints;
pub mod panics;
mod supervision;

pub use supervision::{Panicked, caught, caught_task, keep_task, keep_thread};
