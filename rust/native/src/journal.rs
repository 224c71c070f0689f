//! A journal on disk for Python: what is wrong with it, and every record that can still be read.

use std::ops::ControlFlow;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use remora_journal::{self as journal, Inspection, Note, Options, Record};

use super::core::sixteen_bytes;
use super::errors::journal_error;

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen, get_all)]
struct JournalSegment {
    name: String,
    first_revision: u64,
    bytes: u64,
    batches: u64,
    records: u64,
    sealed: bool,
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen, get_all)]
struct JournalFinding {
    segment: String,
    offset: u64,
    bytes: u64,
    reason: String,
    torn_end: bool,
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen, get_all)]
struct JournalInspection {
    store_id: Option<Py<PyBytes>>,
    segments: Vec<Py<JournalSegment>>,
    findings: Vec<Py<JournalFinding>>,
    first_revision: u64,
    last_revision: u64,
    missing: Vec<(u64, u64)>,
    refused: bool,
    noted_published: Option<u64>,
    noted_applied: Option<u64>,
    note_unreadable: bool,
}

impl JournalInspection {
    fn new(py: Python<'_>, found: Inspection) -> PyResult<Self> {
        let segments = found.segments.iter().map(|segment| {
            let segment = segment.clone();
            let report = JournalSegment {
                name: segment.name,
                first_revision: segment.first_revision,
                bytes: segment.bytes,
                batches: segment.batches,
                records: segment.records,
                sealed: segment.is_sealed,
            };
            Py::new(py, report)
        });
        let findings = found.findings.iter().map(|finding| {
            let finding = finding.clone();
            let report = JournalFinding {
                segment: finding.segment,
                offset: finding.offset,
                bytes: finding.bytes,
                reason: finding.reason,
                torn_end: finding.is_torn_end,
            };
            Py::new(py, report)
        });
        let noted = match found.note {
            Note::Found(reached) => Some(reached),
            Note::Absent | Note::Unreadable => None,
        };
        Ok(Self {
            store_id: found.store_id.map(|id| PyBytes::new(py, &id).unbind()),
            segments: segments.collect::<PyResult<_>>()?,
            findings: findings.collect::<PyResult<_>>()?,
            first_revision: found.first_revision,
            last_revision: found.last_revision,
            missing: found.missing.clone(),
            refused: found.is_refused(),
            noted_published: noted.map(|reached| reached.published),
            noted_applied: noted.map(|reached| reached.applied),
            note_unreadable: found.note == Note::Unreadable,
        })
    }
}

fn options(store_id: Option<&[u8]>, applied_revision: u64) -> PyResult<Options> {
    let store_id = store_id
        .map(|id| sixteen_bytes("store_id", id))
        .transpose()?;
    Ok(Options {
        store_id,
        applied_revision,
        ..Options::default()
    })
}

#[pyfunction]
#[pyo3(signature = (directory, *, store_id, applied_revision))]
fn inspect_journal(
    py: Python<'_>,
    directory: PathBuf,
    store_id: Option<&[u8]>,
    applied_revision: u64,
) -> PyResult<JournalInspection> {
    let options = options(store_id, applied_revision)?;
    let found = py.detach(|| journal::inspect(directory, &options));
    JournalInspection::new(py, found.map_err(journal_error)?)
}

#[pyfunction]
#[pyo3(signature = (directory, keep, *, store_id, applied_revision))]
fn salvage_journal(
    py: Python<'_>,
    directory: PathBuf,
    keep: &Bound<'_, PyAny>,
    store_id: Option<&[u8]>,
    applied_revision: u64,
) -> PyResult<JournalInspection> {
    let options = options(store_id, applied_revision)?;
    let mut raised = None;
    let found = journal::salvage(directory, &options, |record: Record| {
        let payload = PyBytes::new(py, &record.payload);
        match keep.call1((record.revision, payload)) {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                raised = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match raised {
        Some(error) => Err(error),
        None => JournalInspection::new(py, found.map_err(journal_error)?),
    }
}

/// Adds the names of this module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<JournalSegment>()?;
    module.add_class::<JournalFinding>()?;
    module.add_class::<JournalInspection>()?;
    module.add_function(wrap_pyfunction!(inspect_journal, module)?)?;
    module.add_function(wrap_pyfunction!(salvage_journal, module)?)?;
    Ok(())
}
