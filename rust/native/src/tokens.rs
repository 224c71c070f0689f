//! Token counts for Python.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use remora_tokens::{self as tokens, Encoding};

/// See `_native.pyi`.
#[pyfunction]
fn count_tokens(
    py: Python<'_>,
    encoding: &str,
    texts: Vec<Bound<'_, PyString>>,
) -> PyResult<Vec<usize>> {
    let encoding = parse_encoding(encoding)?;
    each(py, &texts, |text| tokens::count(encoding, text))
}

/// See `_native.pyi`.
#[pyfunction]
fn approximate_tokens(py: Python<'_>, texts: Vec<Bound<'_, PyString>>) -> PyResult<Vec<usize>> {
    each(py, &texts, tokens::approximate)
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (encoding, text, max_tokens, keep_end = false))]
fn trim_tokens(
    py: Python<'_>,
    encoding: &str,
    text: &Bound<'_, PyString>,
    max_tokens: usize,
    keep_end: bool,
) -> PyResult<String> {
    let encoding = parse_encoding(encoding)?;
    let text = well_formed(text)?;
    let trim = if keep_end {
        tokens::trim_start
    } else {
        tokens::trim_end
    };
    Ok(py.detach(|| trim(encoding, &text, max_tokens).to_owned()))
}

/// See `_native.pyi`.
#[pyfunction]
fn encoding_for_model(model: &str) -> Option<&'static str> {
    Encoding::for_model(model).map(Encoding::name)
}

/// See `_native.pyi`.
#[pyfunction]
fn vocabulary<'py>(py: Python<'py>, encoding: &str) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let encoding = parse_encoding(encoding)?;
    let tokens = py.detach(|| tokens::vocabulary(encoding));
    Ok(tokens
        .into_iter()
        .map(|token| PyBytes::new(py, token))
        .collect())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(count_tokens, module)?)?;
    module.add_function(wrap_pyfunction!(approximate_tokens, module)?)?;
    module.add_function(wrap_pyfunction!(trim_tokens, module)?)?;
    module.add_function(wrap_pyfunction!(encoding_for_model, module)?)?;
    module.add_function(wrap_pyfunction!(vocabulary, module)?)
}

pub(super) fn parse_encoding(name: &str) -> PyResult<Encoding> {
    Encoding::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("unknown encoding {name:?}")))
}

/// Texts of so many bytes together keep the GIL: giving it up and getting it back takes longer than counting them.
const BRIEF_BYTES: usize = 8 << 10;

/// Applies a function to each text, of many while other Python threads run.
fn each(
    py: Python<'_>,
    texts: &[Bound<'_, PyString>],
    apply: impl Fn(&str) -> usize + Send + Sync,
) -> PyResult<Vec<usize>> {
    let texts = texts
        .iter()
        .map(well_formed)
        .collect::<PyResult<Vec<_>>>()?;
    let apply_all = || texts.iter().map(|text| apply(text)).collect();
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    Ok(if bytes <= BRIEF_BYTES {
        apply_all()
    } else {
        py.detach(apply_all)
    })
}

/// A text as tiktoken reads it: surrogates that form a pair are the character, others become U+FFFD.
fn well_formed<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, str>> {
    if let Ok(text) = text.to_str() {
        return Ok(Cow::Borrowed(text));
    }
    let encoded = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
    let (units, _) = encoded.cast::<PyBytes>()?.as_bytes().as_chunks::<2>();
    let units = units
        .iter()
        .copied()
        .map(u16::from_le_bytes)
        .collect::<Vec<_>>();
    Ok(Cow::Owned(String::from_utf16_lossy(&units)))
}
