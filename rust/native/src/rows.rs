//! The rows of records for Python, which writes them.

use bytes::Bytes;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use remora_core::rows::{Column, Rows, Table};

use super::records::PyRecordKind;

/// See `_native.pyi`.
#[pyclass(name = "Rows", module = "remora_server._native")]
pub(super) struct PyRows {
    rows: Rows,
}

/// Validity, offsets and values.
pub(super) type Buffers<'py> = (
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyBytes>>,
    Bound<'py, PyBytes>,
);

/// How many rows, and their columns.
pub(super) type PyTable<'py> = (usize, Vec<Buffers<'py>>);

#[pymethods]
impl PyRows {
    #[new]
    #[pyo3(signature = (kinds = Vec::new()))]
    fn new(kinds: Vec<PyRef<'_, PyRecordKind>>) -> PyResult<Self> {
        let rows = Rows::new(super::records::kinds(&kinds)?);
        Ok(Self { rows })
    }

    fn add(&mut self, revision: u64, payload: &[u8]) -> PyResult<()> {
        let payload = Bytes::copy_from_slice(payload);
        let added = self.rows.add(revision, payload);
        added.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<PyTable<'py>> {
        let read = py.detach(|| read(&self.rows, name));
        let read = read.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Ok(buffers_of(py, &read))
    }
}

/// A table of records is named by the number of their kind, a dot and what of them.
fn read(rows: &Rows, name: &str) -> Option<Table> {
    match name.split_once('.') {
        Some((kind, name)) => rows.records(kind.parse().ok()?, name),
        None => Some(reader(name)?(rows)),
    }
}

pub(super) fn buffers_of<'py>(py: Python<'py>, table: &Table) -> PyTable<'py> {
    let columns = table.columns.iter().map(|column| buffers(py, column));
    (table.rows, columns.collect())
}

fn reader(table: &str) -> Option<fn(&Rows) -> Table> {
    Some(match table {
        "conversations" => Rows::conversations,
        "heads" => Rows::heads,
        "messages" => Rows::messages,
        "embeddings" => Rows::embeddings,
        "requests" => Rows::requests,
        "deleted" => Rows::deleted,
        "replaced_conversations" => Rows::replaced_conversations,
        "replaced_heads" => Rows::replaced_heads,
        "moved" => Rows::moved,
        "cleared" => Rows::cleared,
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
