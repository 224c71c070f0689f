//! The instruction sets for Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use remora_kernels::{Kernels, Level};

/// The instruction sets that this processor can run, the slowest first.
#[pyfunction]
fn available_kernels() -> Vec<&'static str> {
    Kernels::available()
        .map(|kernels| kernels.level().name())
        .collect()
}

pub(super) fn kernels_named(name: &str) -> PyResult<&'static Kernels> {
    let level: Level = name
        .parse()
        .map_err(|error| PyValueError::new_err(format!("{error}")))?;
    let lacking = || PyValueError::new_err(format!("this processor cannot run {level}"));
    Kernels::for_level(level).ok_or_else(lacking)
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(available_kernels, module)?)
}
