//! What is in memory: parts with their content and the changes that wait for it, loaded on demand and evicted by bytes,
//! and those of them in which a search looks. It knows nothing of scores.

mod account;
mod eviction;
mod inbox;
mod loading;
mod part;
mod registry;
mod scope;

pub use inbox::{Later, Op};
pub use part::{Progress, StoredDocument, StoredDocuments};
pub(crate) use registry::Registry;
pub use scope::Scope;
pub(crate) use scope::{View, speakers};
