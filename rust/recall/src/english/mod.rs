//! What rules know of English: its times, dates, persons, and what has a name. A text in another language shows none of it,
//! and is ranked by everything else.

pub(super) mod dates;
pub(super) mod named;
pub(super) mod persons;
pub(super) mod temporal;
#[cfg(test)]
mod tests;
