//! Identifiers that sort by time.

use pyo3::prelude::*;

/// A new UUIDv7 (RFC 9562) as text: unique, and ordered by the millisecond in which it was made.
#[pyfunction]
fn new_id() -> String {
    uuid::Uuid::now_v7().hyphenated().to_string()
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(new_id, module)?)
}
