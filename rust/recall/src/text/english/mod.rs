//! What rules know of English: its times, dates, persons, what has a name, and what a sentence is about. A text in another
//! language shows none of it, and is ranked by everything else.

pub(crate) mod changes;
pub(crate) mod dates;
pub(crate) mod named;
pub(crate) mod persons;
pub(crate) mod subject;
pub(crate) mod temporal;
#[cfg(test)]
mod tests;
