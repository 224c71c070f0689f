//! What is read of a text: its words, the names in it, and the signs that rules look for. It knows nothing of messages.

pub(crate) mod english;
pub(crate) mod identifiers;
pub(crate) mod names;
pub(crate) mod signs;
pub(crate) mod spelling;
pub(crate) mod words;
