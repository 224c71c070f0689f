//! Windows against a model that keeps every state it was ever in.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod history;
mod model;
mod strays;
mod weights;
