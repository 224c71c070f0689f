//! Lexical analysis for Python, which compares it with other implementations.

use std::sync::LazyLock;

use pyo3::prelude::*;
use remora_lexical::Analyzer;

static ANALYZER: LazyLock<Analyzer> = LazyLock::new(Analyzer::new);

/// The terms of a text in its order, repeats included, as they read before they are hashed.
#[pyfunction]
fn analyze(py: Python<'_>, text: &str) -> Vec<String> {
    py.detach(|| ANALYZER.words(text))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(analyze, module)?)
}
