//! The rows of records for Python, which writes them.

use bytes::Bytes;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::rows::{Column, Rows, Table};

/// See `_native.pyi`.
#[pyclass(name = "Rows", module = "remora_server._native")]
#[derive(Default)]
pub(super) struct PyRows {
    rows: Rows,
}

/// Validity, offsets and values.
type Buffers<'py> = (
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyBytes>>,
    Bound<'py, PyBytes>,
);

#[pymethods]
impl PyRows {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn add(&mut self, revision: u64, payload: &[u8]) -> PyResult<()> {
        let payload = Bytes::copy_from_slice(payload);
        let added = self.rows.add(revision, payload);
        added.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(usize, Vec<Buffers<'py>>)> {
        let read = reader(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let table = py.detach(|| read(&self.rows));
        let columns = table.columns.into_iter().map(|column| buffers(py, &column));
        Ok((table.rows, columns.collect()))
    }
}

fn reader(table: &str) -> Option<fn(&Rows) -> Table> {
    Some(match table {
        "conversations" => Rows::conversations,
        "heads" => Rows::heads,
        "messages" => Rows::messages,
        "embeddings" => Rows::embeddings,
        "steps" => Rows::steps,
        "working_memories" => Rows::working_memories,
        "requests" => Rows::requests,
        "deleted" => Rows::deleted,
        "replaced_conversations" => Rows::replaced_conversations,
        "replaced_heads" => Rows::replaced_heads,
        "moved" => Rows::moved,
        "cleared" => Rows::cleared,
        "cleared_steps" => Rows::cleared_steps,
        "saved_steps" => Rows::saved_steps,
        "moved_memories" => Rows::moved_memories,
        _ => return None,
    })
}

fn buffers<'py>(py: Python<'py>, column: &Column) -> Buffers<'py> {
    let bytes = |buffer: &Vec<u8>| PyBytes::new(py, buffer);
    (
        column.validity.as_ref().map(bytes),
        column.offsets.as_ref().map(bytes),
        bytes(&column.values),
    )
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRows>()
}
