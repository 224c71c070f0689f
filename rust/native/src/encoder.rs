//! Sentence embeddings for Python.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use remora_encoder::{BackgroundEncoder, Encoder, EncoderError, Options, Precision, Unmade};
use remora_kernels::Level;
use remora_late::Pieces;

create_exception!(
    remora_server._native,
    ModelError,
    PyException,
    "A model cannot be used."
);

create_exception!(
    remora_server._native,
    EncoderClosed,
    PyException,
    "A background encoder was closed before it was done."
);

create_exception!(
    remora_server._native,
    EncoderPanicked,
    PyException,
    "A background encoder panicked with one of the texts."
);

/// See `_native.pyi`.
#[pyclass(name = "Encoder", module = "remora_server._native", frozen)]
struct PyEncoder(Arc<Encoder>);

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
            .map(|encoder| Self(Arc::new(encoder)))
            .map_err(model_error)
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let texts = all_owned(texts)?;
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
        let texts = all_owned(texts)?;
        let (values, pieces) = py.detach(|| {
            let texts = texts.iter().map(String::as_str).collect::<Vec<_>>();
            let (values, pieces) = self.0.encode_with_pieces(&texts);
            let pieces = pieces.iter().map(Pieces::to_bytes).collect::<Vec<_>>();
            (little_endian(&values), pieces)
        });
        Ok(to_python(py, &values, &pieces))
    }

    fn unknown_words(&self, text: &str) -> Vec<String> {
        self.0.unknown_words(text)
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
        precision_name(&self.0)
    }

    #[getter]
    fn level(&self) -> &'static str {
        self.0.level().name()
    }
}

/// See `_native.pyi`.
#[pyclass(name = "BackgroundEncoder", module = "remora_server._native", frozen)]
struct PyBackgroundEncoder {
    encoder: Arc<Encoder>,
    thread: BackgroundEncoder,
}

#[pymethods]
impl PyBackgroundEncoder {
    #[new]
    fn new(encoder: &Bound<'_, PyEncoder>) -> PyResult<Self> {
        let encoder = Arc::clone(&encoder.get().0);
        let thread = BackgroundEncoder::start(Arc::clone(&encoder))?;
        Ok(Self { encoder, thread })
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let texts = all_owned(texts)?;
        let values = py.detach(|| {
            let made = self.thread.encode(texts, false);
            made.map(|made| little_endian(&made.values))
        });
        Ok(PyBytes::new(py, &values.map_err(unmade)?))
    }

    fn encode_with_pieces<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>)> {
        let texts = all_owned(texts)?;
        let made = py.detach(|| {
            let made = self.thread.encode(texts, true)?;
            let pieces = made.pieces.iter().map(Pieces::to_bytes).collect::<Vec<_>>();
            Ok((little_endian(&made.values), pieces))
        });
        let (values, pieces) = made.map_err(unmade)?;
        Ok(to_python(py, &values, &pieces))
    }

    fn close(&self) {
        self.thread.close();
    }

    #[getter]
    fn thread_id(&self) -> i32 {
        self.thread.thread_id()
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.encoder.dimension()
    }

    #[getter]
    fn precision(&self) -> &'static str {
        precision_name(&self.encoder)
    }

    #[getter]
    fn level(&self) -> &'static str {
        self.encoder.level().name()
    }
}

/// Adds the names of this module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ModelError", module.py().get_type::<ModelError>())?;
    module.add("EncoderClosed", module.py().get_type::<EncoderClosed>())?;
    module.add("EncoderPanicked", module.py().get_type::<EncoderPanicked>())?;
    module.add_class::<PyEncoder>()?;
    module.add_class::<PyBackgroundEncoder>()
}

fn model_error(error: EncoderError) -> PyErr {
    match error {
        EncoderError::Level(_) => PyValueError::new_err(error.to_string()),
        _ => ModelError::new_err(error.to_string()),
    }
}

fn precision_name(encoder: &Encoder) -> &'static str {
    match encoder.precision() {
        Precision::F32 => "f32",
        Precision::Int8 => "int8",
    }
}

fn unmade(error: Unmade) -> PyErr {
    match error {
        Unmade::Closed => EncoderClosed::new_err(error.to_string()),
        Unmade::Panicked => EncoderPanicked::new_err(error.to_string()),
    }
}

/// Embeddings and word pieces.
fn to_python<'py>(
    py: Python<'py>,
    values: &[u8],
    pieces: &[Vec<u8>],
) -> (Bound<'py, PyBytes>, Vec<Bound<'py, PyBytes>>) {
    let pieces = pieces.iter().map(|pieces| PyBytes::new(py, pieces));
    (PyBytes::new(py, values), pieces.collect())
}

fn all_owned(texts: &Bound<'_, PyList>) -> PyResult<Vec<String>> {
    texts.iter().map(|text| owned(&text)).collect()
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
        .map_err(|error: remora_kernels::UnknownLevel| PyValueError::new_err(error.to_string()))
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
