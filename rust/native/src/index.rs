//! Exact vector search for Python, and the instruction sets that it may run on.

use parking_lot::RwLock;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use remora_index::{self as index, Hit, IdSet, Query, Segment};
use remora_kernels::{Kernels, Level};

/// Slots are dense: a segment spends four bytes on each up to the highest.
const SLOTS: u32 = 1 << 24;

/// Values in a vector, at most; above the width of every known embedding model.
const DIMENSIONS: usize = 1 << 16;

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
create_exception!(
    remora_server._native,
    VectorDimensionError,
    VectorError,
    "A vector has the wrong number of values."
);

/// An exact cosine index of vectors in slots.
#[pyclass(frozen, module = "remora_server._native")]
struct VectorSegment {
    dim: usize,
    level: Level,
    segment: RwLock<Segment>,
}

#[pymethods]
impl VectorSegment {
    #[new]
    #[pyo3(signature = (dim, level = None))]
    fn new(dim: usize, level: Option<&str>) -> PyResult<Self> {
        if !(1..=DIMENSIONS).contains(&dim) {
            return Err(PyValueError::new_err(format!(
                "dim must be 1 to {DIMENSIONS}, not {dim}"
            )));
        }
        let kernels = level.map_or_else(|| Ok(Kernels::best()), kernels_named)?;
        let segment = RwLock::new(Segment::with_kernels(dim, kernels));
        Ok(Self {
            dim,
            level: kernels.level(),
            segment,
        })
    }

    #[getter]
    fn dim(&self) -> usize {
        self.dim
    }

    #[getter]
    fn level(&self) -> &'static str {
        self.level.name()
    }

    fn upsert(&self, py: Python<'_>, slot: u32, vector: &Bound<'_, PyAny>) -> PyResult<()> {
        if slot >= SLOTS {
            return Err(PyValueError::new_err(format!(
                "slot must be below {SLOTS}, not {slot}"
            )));
        }
        let vector = floats(vector)?;
        py.detach(|| self.segment.write().upsert(slot, &vector))
            .map_err(|error| refused(py, error))
    }

    fn remove(&self, py: Python<'_>, slot: u32) -> bool {
        py.detach(|| self.segment.write().remove(slot))
    }

    #[pyo3(signature = (query, k, allowed = None, threshold = None))]
    fn search(
        &self,
        py: Python<'_>,
        query: &Bound<'_, PyAny>,
        k: usize,
        allowed: Option<Vec<u32>>,
        threshold: Option<f32>,
    ) -> PyResult<Vec<(u32, f32)>> {
        if threshold.is_some_and(f32::is_nan) {
            return Err(PyValueError::new_err("threshold must be a number"));
        }
        let query = floats(query)?;
        let hits = py.detach(|| {
            let query = Query::new(&query, self.dim)?;
            let segment = self.segment.read();
            let filter = allowed.map(|slots| filter(&segment, slots));
            Ok(segment.search(&query, k, filter.as_ref(), threshold))
        });
        let hits = hits.map_err(|error| refused(py, error))?;
        Ok(hits
            .into_iter()
            .map(|Hit { slot, score }| (slot, score))
            .collect())
    }

    fn bytes(&self, py: Python<'_>) -> usize {
        py.detach(|| self.segment.read().bytes())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.segment.read().len())
    }
}

/// The instruction set that is used where none is chosen.
#[pyfunction]
fn kernel_level() -> &'static str {
    Kernels::best().level().name()
}

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

/// The slots that hold a vector: the others need no place in the set.
fn filter(segment: &Segment, slots: Vec<u32>) -> IdSet {
    slots
        .into_iter()
        .filter(|slot| segment.contains(*slot))
        .collect()
}

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

pub(super) fn refused(py: Python<'_>, error: index::VectorError) -> PyErr {
    let message = error.to_string();
    match error {
        index::VectorError::Zero => ZeroVectorError::new_err(message),
        index::VectorError::NotFinite => NotFiniteVectorError::new_err(message),
        index::VectorError::Dimension { expected, actual } => {
            let raised = VectorDimensionError::new_err(message);
            let value = raised.value(py);
            let fields = value
                .setattr("expected", expected)
                .and_then(|()| value.setattr("actual", actual));
            fields.err().unwrap_or(raised)
        }
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<VectorSegment>()?;
    module.add("VectorError", py.get_type::<VectorError>())?;
    module.add("ZeroVectorError", py.get_type::<ZeroVectorError>())?;
    module.add(
        "NotFiniteVectorError",
        py.get_type::<NotFiniteVectorError>(),
    )?;
    module.add(
        "VectorDimensionError",
        py.get_type::<VectorDimensionError>(),
    )?;
    module.add_function(wrap_pyfunction!(kernel_level, module)?)?;
    module.add_function(wrap_pyfunction!(available_kernels, module)?)
}
