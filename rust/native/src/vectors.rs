//! Vectors as Python gives them, and why one is refused.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use remora_index as index;

create_exception!(
    remora_server._native,
    VectorError,
    PyValueError,
    "A vector is refused."
);
create_exception!(
    remora_server._native,
    ZeroVectorError,
    VectorError,
    "A vector has no direction."
);
create_exception!(
    remora_server._native,
    NotFiniteVectorError,
    VectorError,
    "A value is infinite or not a number."
);

/// The values of a buffer of f32, or of bytes that hold little-endian f32.
pub(super) fn floats(vector: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let py = vector.py();
    let buffer = PyUntypedBuffer::get(vector)?;
    if let Ok(values) = buffer.as_typed::<f32>() {
        return values.to_vec(py);
    }
    let Ok(bytes) = buffer.as_typed::<u8>() else {
        return Err(PyTypeError::new_err(
            "a vector is a buffer of f32, or bytes of little-endian f32",
        ));
    };
    let bytes = bytes.to_vec(py)?;
    let (values, []) = bytes.as_chunks() else {
        let length = bytes.len();
        return Err(VectorError::new_err(format!(
            "{length} bytes do not divide into values of 4"
        )));
    };
    Ok(values.iter().copied().map(f32::from_le_bytes).collect())
}

pub(super) fn refused(error: index::VectorError) -> PyErr {
    let message = error.to_string();
    match error {
        index::VectorError::Zero => ZeroVectorError::new_err(message),
        index::VectorError::NotFinite => NotFiniteVectorError::new_err(message),
        index::VectorError::Dimension { .. } => VectorError::new_err(message),
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("VectorError", py.get_type::<VectorError>())?;
    module.add("ZeroVectorError", py.get_type::<ZeroVectorError>())?;
    module.add(
        "NotFiniteVectorError",
        py.get_type::<NotFiniteVectorError>(),
    )
}
