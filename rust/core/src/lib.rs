//! The engine's core: the journal, and what follows it in memory: windows, records by key, and recall.
//!
//! Knows: `filter`, `fingerprint`, `items`, `journal`, `kernels`, `late`, `recall`, `supervision`, `vectors`, `wire`.
//! It must not know Python, the database or the transport.

mod absences;
mod core;
pub mod records;
pub mod rows;
pub mod windows;

pub use self::core::{
    CommitError, Committed, Core, FollowError, InvalidRecord, Known, Settings, Torn, Unapplied,
};
