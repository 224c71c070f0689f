//! The core over journals in memory and on disk.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod commits;
mod records;
mod requests;
mod unapplied;
