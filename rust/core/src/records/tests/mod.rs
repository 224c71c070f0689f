//! Records in memory: against a model that keeps every state they were ever in, and what becomes of memory.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod database;
mod keeper;
pub(crate) mod model;
mod pages;
mod refreshing;
mod residency;
