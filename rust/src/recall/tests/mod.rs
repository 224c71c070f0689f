//! Recall against a store in plain maps and naive searches of it.

mod filters;
mod loads;
mod model;
pub(super) mod naive;
mod phrases;
mod rules;
mod scores;
