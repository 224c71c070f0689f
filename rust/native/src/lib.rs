//! The engine as the Python module `_native`: one file per part. Each converts arguments, releases the GIL and calls.
//!
//! Knows: `chats`, `core`, `encoder`, `filter`, `index`, `items`, `journal`, `kernels`, `late`, `lexical`, `recall`,
//! `supervision`, `tokens`, `transport`, `vectors`. Only this crate knows Python. It contains no rules.
#![cfg(feature = "python")]

use pyo3::prelude::*;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator;
mod chats;
mod core;
mod digests;
mod encoder;
mod errors;
mod filters;
mod ids;
mod items;
mod journal;
mod kernels;
mod lexical;
mod panics;
mod recall;
mod records;
mod rows;
mod tokens;
mod transport;
mod vector_search;
mod vectors;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    chats::register(module)?;
    core::register(module)?;
    digests::register(module)?;
    encoder::register(module)?;
    errors::register(module)?;
    filters::register(module)?;
    ids::register(module)?;
    items::register(module)?;
    journal::register(module)?;
    kernels::register(module)?;
    lexical::register(module)?;
    panics::register(module)?;
    recall::register(module)?;
    records::register(module)?;
    rows::register(module)?;
    tokens::register(module)?;
    transport::register(module)?;
    vector_search::register(module)?;
    vectors::register(module)
}
