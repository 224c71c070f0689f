//! What is in memory: threads with their content and the changes that wait for it, loaded on demand and evicted by bytes,
//! and those of them in which a search looks. It knows nothing of scores.

mod account;
mod eviction;
mod inbox;
mod loading;
mod registry;
mod scope;
mod thread;

pub use inbox::{Later, Op};
pub(crate) use registry::Registry;
pub use scope::Scope;
pub(crate) use scope::{View, speakers};
pub use thread::StoredDocument;
