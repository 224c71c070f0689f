//! Records by key for Python: their kinds, and where the database finds them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::records::{self, ColumnType, Kind, Kinds};

/// See `_native.pyi`.
#[pyclass(name = "RecordKind", module = "remora_server._native", frozen, eq)]
#[derive(PartialEq)]
pub(super) struct PyRecordKind(Kind);

#[pymethods]
impl PyRecordKind {
    #[new]
    #[pyo3(signature = (number, *, columns, orders, of_conversation, of_user))]
    fn new(
        number: u32,
        columns: Vec<String>,
        orders: Vec<Vec<usize>>,
        of_conversation: bool,
        of_user: bool,
    ) -> PyResult<Self> {
        let columns = columns.iter().map(|name| column_type(name));
        let kind = Kind {
            number,
            columns: columns.collect::<PyResult<_>>()?,
            orders,
            of_conversation,
            of_user,
        };
        declared([kind.clone()])?;
        Ok(Self(kind))
    }

    #[getter]
    fn number(&self) -> u32 {
        self.0.number
    }
}

fn column_type(name: &str) -> PyResult<ColumnType> {
    Ok(match name {
        "bool" => ColumnType::Boolean,
        "int64" => ColumnType::Integer,
        "double" => ColumnType::Number,
        "text" => ColumnType::Text,
        "bytes" => ColumnType::Data,
        _ => {
            let message = format!("no column has the type {name:?}");
            return Err(PyValueError::new_err(message));
        }
    })
}

/// Kinds as they are declared.
pub(super) fn kinds(declared_kinds: &[PyRef<'_, PyRecordKind>]) -> PyResult<Kinds> {
    declared(declared_kinds.iter().map(|kind| kind.0.clone()))
}

fn declared(kinds: impl IntoIterator<Item = Kind>) -> PyResult<Kinds> {
    Kinds::new(kinds).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// See `_native.pyi`.
#[pyfunction]
fn place(tenant: &str, conversation_uid: u64, partition: &[u8]) -> u64 {
    records::place(tenant, conversation_uid, partition)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRecordKind>()?;
    module.add_function(wrap_pyfunction!(place, module)?)
}
