//! The Python face of the engine: one file per module, each converts arguments, releases the GIL and calls.

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
