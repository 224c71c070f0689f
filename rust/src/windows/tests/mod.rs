//! Windows against a model that keeps every state it was ever in.

mod history;
mod model;
