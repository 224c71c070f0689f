//! The core over journals in memory and on disk.

mod commits;
mod requests;
