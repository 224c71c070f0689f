//! Sentence embeddings for Python.

use std::path::PathBuf;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::encoder::{Encoder, EncoderError, Options, Precision};
use crate::kernels::Level;
use crate::late::Pieces;

create_exception!(
    remora_server._native,
    ModelError,
    PyException,
    "A model cannot be used."
);

/// See `_native.pyi`.
#[pyclass(name = "Encoder", module = "remora_server._native", frozen)]
struct PyEncoder(Encoder);

#[pymethods]
impl PyEncoder {
    #[new]
    #[pyo3(signature = (model_dir, precision = "f32", level = None))]
    fn new(
        py: Python<'_>,
        model_dir: PathBuf,
        precision: &str,
        level: Option<&str>,
    ) -> PyResult<Self> {
        let options = Options {
            precision: parse_precision(precision)?,
            level: level.map(parse_level).transpose()?,
        };
        py.detach(|| Encoder::open(&model_dir, options))
            .map(Self)
            .map_err(model_error)
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let texts = texts
            .iter()
            .map(|text| owned(&text))
            .collect::<PyResult<Vec<_>>>()?;
        let values = py.detach(|| {
            let texts = texts.iter().map(String::as_str).collect::<Vec<_>>();
            little_endian(&self.0.encode(&texts))
        });
        Ok(PyBytes::new(py, &values))
    }

    fn encode_with_pieces<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)> {
        let texts = texts
            .iter()
            .map(|text| owned(&text))
            .collect::<PyResult<Vec<_>>>()?;
        let (values, pieces) = py.detach(|| {
            let texts = texts.iter().map(String::as_str).collect::<Vec<_>>();
            let (values, pieces) = self.0.encode_with_pieces(&texts);
            let pieces = pieces.iter().map(Pieces::to_bytes).collect::<Vec<_>>();
            (little_endian(&values), pieces)
        });
        let pieces = pieces.iter().map(|pieces| PyBytes::new(py, pieces));
        Ok((PyBytes::new(py, &values), pieces.collect()))
    }

    fn token_vectors<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
    ) -> PyResult<(Vec<u32>, Bound<'py, PyBytes>)> {
        let text = owned(text)?;
        let (ids, values) = py.detach(|| {
            let tokens = self.0.token_vectors(&text);
            (tokens.ids, little_endian(&tokens.vectors))
        });
        Ok((ids, PyBytes::new(py, &values)))
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    #[getter]
    fn max_tokens(&self) -> usize {
        self.0.max_tokens()
    }

    #[getter]
    fn precision(&self) -> &'static str {
        match self.0.precision() {
            Precision::F32 => "f32",
            Precision::Int8 => "int8",
        }
    }

    #[getter]
    fn level(&self) -> &'static str {
        self.0.level().name()
    }
}

/// Adds the names of this module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ModelError", module.py().get_type::<ModelError>())?;
    module.add_class::<PyEncoder>()
}

fn model_error(error: EncoderError) -> PyErr {
    match error {
        EncoderError::Level(_) => PyValueError::new_err(error.to_string()),
        _ => ModelError::new_err(error.to_string()),
    }
}

fn parse_precision(name: &str) -> PyResult<Precision> {
    match name {
        "f32" => Ok(Precision::F32),
        "int8" => Ok(Precision::Int8),
        _ => Err(PyValueError::new_err(format!(
            "unknown precision {name:?}: expected f32 or int8"
        ))),
    }
}

fn parse_level(name: &str) -> PyResult<Level> {
    name.parse()
        .map_err(|error: crate::kernels::UnknownLevel| PyValueError::new_err(error.to_string()))
}

/// A copy of a text, U+FFFD in place of each lone surrogate.
fn owned(text: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = text.cast::<PyString>()?;
    match text.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => replaced(text),
    }
}

fn replaced(text: &Bound<'_, PyString>) -> PyResult<String> {
    let units = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
    let (units, _) = units.cast::<PyBytes>()?.as_bytes().as_chunks::<2>();
    let units = units.iter().map(|&unit| u16::from_le_bytes(unit));
    Ok(char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect())
}

fn little_endian(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}
