//! Panics for Python, which logs them.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use remora_supervision::failpoints;
use remora_supervision::panics;

/// See `_native.pyi`.
#[pyfunction]
fn next_panic(py: Python<'_>, timeout: f64) -> PyResult<Option<(String, String, i32, u64)>> {
    let patience = Duration::try_from_secs_f64(timeout);
    let patience = patience.map_err(|_| PyValueError::new_err("not a number of seconds"))?;
    let noted = py.detach(|| panics::next(patience));
    Ok(noted.map(|panic| (panic.location, panic.thread, panic.thread_id, panic.unnoted)))
}

/// Adds the names of this module. From now on, panics are noted and not printed.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let points = std::env::var(failpoints::VARIABLE).unwrap_or_default();
    failpoints::arm(&points).map_err(|error| PyValueError::new_err(error.to_string()))?;
    panics::note_all();
    module.add_function(wrap_pyfunction!(next_panic, module)?)
}
