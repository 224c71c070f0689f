//! Records by key for Python: their kinds, pages of them, and what is loaded.

use std::sync::Arc;

use pyo3::create_exception;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyList, PyTuple};
use remora_core::records::{
    self, Cold, ColumnType, Content, Extent, Filters, Found, Kind, Kinds, LoadedRecord, Page,
    Position, Records, RefreshedRecord, Value,
};

create_exception!(
    remora_server._native,
    ColdRecords,
    PyKeyError,
    "The records are not in memory."
);

/// See `_native.pyi`.
#[pyclass(name = "RecordKind", module = "remora_server._native", frozen, eq)]
#[derive(PartialEq)]
pub(super) struct PyRecordKind(Kind);

#[pymethods]
impl PyRecordKind {
    #[new]
    #[pyo3(signature = (number, *, columns, orders, of_conversation, of_user, is_searched = false, holds_items = false))]
    fn new(
        number: u32,
        columns: Vec<String>,
        orders: Vec<Vec<usize>>,
        of_conversation: bool,
        of_user: bool,
        is_searched: bool,
        holds_items: bool,
    ) -> PyResult<Self> {
        let columns = columns.iter().map(|name| column_type(name));
        let kind = Kind {
            number,
            columns: columns.collect::<PyResult<_>>()?,
            orders,
            of_conversation,
            of_user,
            is_searched,
            holds_items,
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

/// The kind with a number.
pub(super) fn kind(records: &Records, number: u32) -> PyResult<&Arc<Kind>> {
    let kind = records.kinds().get(number);
    kind.ok_or_else(|| PyValueError::new_err(format!("records of kind {number} are not declared")))
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen)]
pub(super) struct StoredRecord(Found);

impl From<Found> for StoredRecord {
    fn from(found: Found) -> Self {
        Self(found)
    }
}

#[pymethods]
impl StoredRecord {
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.key)
    }

    #[getter]
    fn revision(&self) -> u64 {
        self.0.revision
    }

    #[getter]
    fn ordinal(&self) -> u32 {
        self.0.held.content.ordinal
    }

    #[getter]
    fn user_id(&self) -> &str {
        &self.0.held.content.user
    }

    #[getter]
    fn expire_time(&self) -> Option<i64> {
        self.0.held.expire_time
    }

    #[getter]
    fn upload_id(&self) -> &str {
        &self.0.held.content.upload_id
    }

    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let columns = self.0.held.content.columns.iter();
        let columns: PyResult<Vec<_>> = columns.map(|value| python_value(py, value)).collect();
        PyTuple::new(py, columns?)
    }

    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let body = self.0.held.body.as_ref()?;
        Some(PyBytes::new(py, body))
    }
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen)]
pub(super) struct RecordPage(Page);

impl From<Page> for RecordPage {
    fn from(page: Page) -> Self {
        Self(page)
    }
}

#[pymethods]
impl RecordPage {
    #[getter]
    fn revision(&self) -> u64 {
        self.0.revision
    }

    #[getter]
    fn more(&self) -> bool {
        self.0.more
    }

    #[getter]
    fn count(&self) -> usize {
        self.0.records.len()
    }

    #[getter]
    fn records<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let records = self.0.records.iter().cloned().map(StoredRecord);
        let records: PyResult<Vec<_>> = records.map(|record| Py::new(py, record)).collect();
        PyList::new(py, records?)
    }

    #[getter]
    fn encoded<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if !self.0.is_held() {
            return Ok(None);
        }
        let encoded = PyBytes::new_with(py, self.0.encoded_len(), |buffer| {
            self.0.encode(buffer);
            Ok(())
        })?;
        Ok(Some(encoded))
    }
}

/// (kind, tenant, conversation uid, partition, key, the record's revision, expire time).
pub(super) type RefreshedRow<'py> = (
    u32,
    String,
    u64,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    u64,
    Option<i64>,
);

pub(super) fn refreshed_row<'py>(py: Python<'py>, record: &RefreshedRecord) -> RefreshedRow<'py> {
    (
        record.kind.number,
        record.tenant.to_string(),
        record.conversation_uid,
        PyBytes::new(py, &record.partition),
        PyBytes::new(py, &record.key),
        record.revision,
        record.expire_time,
    )
}

fn python_value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Boolean(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        Value::Integer(integer) => integer.into_pyobject(py)?.into_any(),
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Text(text) => text.as_ref().into_pyobject(py)?.into_any(),
        Value::Data(data) => PyBytes::new(py, data).into_any(),
    })
}

fn value(column: ColumnType, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    Ok(match column {
        ColumnType::Boolean => Value::Boolean(value.extract()?),
        ColumnType::Integer => Value::Integer(value.extract()?),
        ColumnType::Number => Value::number(value.extract()?),
        ColumnType::Text => Value::Text(value.extract::<PyBackedStr>()?[..].into()),
        ColumnType::Data => Value::Data(value.extract::<&[u8]>()?.into()),
    })
}

fn column_value(kind: &Kind, column: usize, found: &Bound<'_, PyAny>) -> PyResult<Value> {
    let declared = kind.columns.get(column).copied();
    let unknown = || PyValueError::new_err(format!("kind {} has no column {column}", kind.number));
    value(declared.ok_or_else(unknown)?, found)
}

/// Columns and what they must hold.
pub(super) fn filters(kind: &Kind, pairs: &[(usize, Bound<'_, PyAny>)]) -> PyResult<Filters> {
    let filters = pairs
        .iter()
        .map(|(column, found)| Ok((*column, column_value(kind, *column, found)?)));
    filters.collect()
}

/// An order of a kind, by its number.
pub(super) fn order(kind: &Kind, order: usize) -> PyResult<usize> {
    if order <= kind.orders.len() {
        return Ok(order);
    }
    let message = format!("kind {} has no order {order}", kind.number);
    Err(PyValueError::new_err(message))
}

/// A position as Python has it: a key, or columns, revision and ordinal.
pub(super) fn position(
    kind: &Kind,
    order: usize,
    found: &Bound<'_, PyTuple>,
) -> PyResult<Position> {
    if order == 0 {
        return Ok(Position::Key(found.get_item(0)?.extract::<&[u8]>()?.into()));
    }
    let columns = &kind.orders[order - 1];
    if found.len() != columns.len() + 2 {
        let message = format!(
            "a position in order {order} has {} values",
            columns.len() + 2
        );
        return Err(PyValueError::new_err(message));
    }
    let values = columns.iter().zip(found.iter());
    let values = values.map(|(column, found)| column_value(kind, *column, &found));
    Ok(Position::Columns {
        values: values.collect::<PyResult<_>>()?,
        revision: found.get_item(columns.len())?.extract()?,
        ordinal: found.get_item(columns.len() + 1)?.extract()?,
    })
}

fn python_position<'py>(py: Python<'py>, position: &Position) -> PyResult<Bound<'py, PyTuple>> {
    match position {
        Position::Key(key) => PyTuple::new(py, [PyBytes::new(py, key)]),
        Position::Columns {
            values,
            revision,
            ordinal,
        } => {
            let values = values.iter().map(|value| python_value(py, value));
            let mut found = values.collect::<PyResult<Vec<_>>>()?;
            found.push(revision.into_pyobject(py)?.into_any());
            found.push(ordinal.into_pyobject(py)?.into_any());
            PyTuple::new(py, found)
        }
    }
}

/// Columns of a loaded row before those of the kind.
const FIXED: usize = 7;

/// A row of the database: key, revision, ordinal, user id, expire time, upload id, body, columns.
pub(super) fn loaded_record(kind: &Kind, row: &Bound<'_, PyTuple>) -> PyResult<LoadedRecord> {
    if row.len() != FIXED + kind.columns.len() {
        let message = format!("a row of kind {} has {} values", kind.number, row.len());
        return Err(PyValueError::new_err(message));
    }
    let columns = kind.columns.iter().zip(row.iter().skip(FIXED));
    let columns = columns.map(|(column, found)| value(*column, &found));
    let body = row.get_item(6)?;
    let body: Option<&[u8]> = body.extract()?;
    Ok(LoadedRecord {
        key: row.get_item(0)?.extract::<&[u8]>()?.into(),
        revision: row.get_item(1)?.extract()?,
        content: Content {
            ordinal: row.get_item(2)?.extract()?,
            user: row.get_item(3)?.extract::<PyBackedStr>()?[..].into(),
            upload_id: row.get_item(5)?.extract::<PyBackedStr>()?[..].into(),
            columns: columns.collect::<PyResult<_>>()?,
        },
        expire_time: row.get_item(4)?.extract()?,
        body: body.map(Into::into),
    })
}

/// What was loaded, as Python says it.
pub(super) fn extent(
    kind: &Kind,
    range: (
        usize,
        Option<&Bound<'_, PyTuple>>,
        Option<&Bound<'_, PyTuple>>,
    ),
    whole: bool,
) -> PyResult<Extent> {
    let (number, from, to) = range;
    let order = order(kind, number)?;
    match from {
        _ if whole => Ok(Extent::Whole),
        None => Ok(Extent::Keys),
        Some(from) => Ok(Extent::Range {
            order,
            from: position(kind, order, from)?,
            to: to.map(|to| position(kind, order, to)).transpose()?,
        }),
    }
}

pub(super) fn cold_error(py: Python<'_>, cold: &Cold) -> PyErr {
    let raised = ColdRecords::new_err(cold.to_string());
    let after = cold.after.as_ref();
    let after = after.map(|after| python_position(py, after)).transpose();
    let set = after.and_then(|after| raised.value(py).setattr("after", after));
    set.err().unwrap_or(raised)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRecordKind>()?;
    module.add_class::<StoredRecord>()?;
    module.add_class::<RecordPage>()?;
    module.add("ColdRecords", module.py().get_type::<ColdRecords>())?;
    module.add_function(wrap_pyfunction!(place, module)?)
}
