//! Threads and tasks that survive a panic, notes of panics for the log, and failpoints for tests.
//!
//! Knows no other crate. Each point of `failpoints` is in one of the crates that use this one.

pub mod failpoints;
pub mod panics;
mod supervision;

pub use supervision::{Panicked, caught, caught_task, keep_task, keep_thread};
