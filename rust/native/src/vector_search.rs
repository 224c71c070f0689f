//! The search among vectors for Python: loading parts, and searching them.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use remora_core::Core;
use remora_vectors::{Cold, Hit, Load, Name, Query, Search, Shown, TextSearch, Vectors};

use super::errors::torn_error;
use super::filters::expression;
use super::vectors::floats;

/// Scores and bodies, best first, and the revision that was searched.
type Ranked<'py> = (Vec<(f64, Bound<'py, PyBytes>)>, u64);

create_exception!(
    remora_server._native,
    ColdVectors,
    PyKeyError,
    "The vectors are not in memory."
);

/// See `_native.pyi`.
#[pyclass(name = "Vectors", module = "remora_server._native", frozen)]
pub(super) struct PyVectors {
    core: Arc<Core>,
}

impl PyVectors {
    pub(super) fn of(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The vectors, unless a panic may have left half of a change in memory.
    fn vectors(&self) -> PyResult<&Vectors> {
        self.core.require_whole().map_err(torn_error)?;
        Ok(self.core.vectors())
    }

    fn published(&self) -> u64 {
        self.core.journal().published()
    }
}

#[pymethods]
impl PyVectors {
    #[pyo3(signature = (kind, tenant, partition, user_id, *, by_words))]
    fn begin(
        &self,
        kind: u32,
        tenant: &str,
        partition: &[u8],
        user_id: &str,
        by_words: bool,
    ) -> PyResult<PyVectorLoad> {
        let name = Name {
            kind,
            tenant,
            partition,
        };
        let load = self.vectors()?.begin(&name, user_id, by_words);
        Ok(PyVectorLoad {
            core: Arc::clone(&self.core),
            load: Mutex::new(Some(load)),
        })
    }

    #[pyo3(signature = (kind, tenant, partition, vector, *, k, threshold, expression))]
    #[expect(clippy::too_many_arguments, reason = "the last are keywords in Python")]
    fn search<'py>(
        &self,
        py: Python<'py>,
        kind: u32,
        tenant: &str,
        partition: &[u8],
        vector: &Bound<'_, PyAny>,
        k: usize,
        threshold: Option<f64>,
        expression: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Ranked<'py>> {
        let query = finite(vector)?;
        let filter = expression.map(self::expression).transpose()?;
        let search = Search {
            query: &query,
            k,
            threshold,
            filter: filter.as_ref(),
        };
        let name = Name {
            kind,
            tenant,
            partition,
        };
        let vectors = self.vectors()?;
        let shown = py.detach(|| vectors.search(&name, &search, || self.published()));
        Ok(ranked(py, shown.map_err(cold_error)?))
    }

    #[pyo3(signature = (kind, tenant, partition, text, vector, *, k, threshold, expression, comparable))]
    #[expect(clippy::too_many_arguments, reason = "the last are keywords in Python")]
    fn search_text<'py>(
        &self,
        py: Python<'py>,
        kind: u32,
        tenant: &str,
        partition: &[u8],
        text: &str,
        vector: Option<&Bound<'_, PyAny>>,
        k: usize,
        threshold: Option<f64>,
        expression: Option<&Bound<'_, PyAny>>,
        comparable: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Ranked<'py>> {
        let query = vector.map(finite).transpose()?;
        let filter = expression.map(self::expression).transpose()?;
        let comparable = comparable.map(self::expression).transpose()?;
        let search = TextSearch {
            text,
            query: query.as_ref(),
            k,
            threshold,
            filter: filter.as_ref(),
            comparable: comparable.as_ref(),
        };
        let name = Name {
            kind,
            tenant,
            partition,
        };
        let vectors = self.vectors()?;
        let shown = py.detach(|| vectors.search_text(&name, &search, || self.published()));
        Ok(ranked(py, shown.map_err(cold_error)?))
    }

    #[pyo3(signature = (kind, tenant, partition, *, expression))]
    fn count(
        &self,
        py: Python<'_>,
        kind: u32,
        tenant: &str,
        partition: &[u8],
        expression: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(usize, u64)> {
        let filter = expression.map(self::expression).transpose()?;
        let name = Name {
            kind,
            tenant,
            partition,
        };
        let vectors = self.vectors()?;
        let shown = py.detach(|| vectors.count(&name, filter.as_ref(), || self.published()));
        let shown = shown.map_err(cold_error)?;
        Ok((shown.found, shown.revision))
    }

    #[pyo3(signature = (kind, tenant, partition, *, expression))]
    fn keys<'py>(
        &self,
        py: Python<'py>,
        kind: u32,
        tenant: &str,
        partition: &[u8],
        expression: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let filter = expression.map(self::expression).transpose()?;
        let name = Name {
            kind,
            tenant,
            partition,
        };
        let vectors = self.vectors()?;
        let shown = py.detach(|| vectors.keys(&name, filter.as_ref(), || self.published()));
        let keys = shown.map_err(cold_error)?.found.into_iter();
        Ok(keys.map(|key| PyBytes::new(py, &key)).collect())
    }
}

fn finite(vector: &Bound<'_, PyAny>) -> PyResult<Query> {
    let values = floats(vector)?;
    if !values.iter().all(|value| value.is_finite()) {
        return Err(PyValueError::new_err("a vector has finite values"));
    }
    Ok(Query::new(values))
}

fn ranked(py: Python<'_>, shown: Shown<Vec<Hit>>) -> Ranked<'_> {
    let encoded = |hit: Hit| (hit.score, PyBytes::new(py, &hit.body));
    let hits = shown.found.into_iter().map(encoded);
    (hits.collect(), shown.revision)
}

fn cold_error(_: Cold) -> PyErr {
    ColdVectors::new_err("the vectors are not in memory")
}

/// See `_native.pyi`.
#[pyclass(name = "VectorLoad", module = "remora_server._native", frozen)]
pub(super) struct PyVectorLoad {
    core: Arc<Core>,
    load: Mutex<Option<Load>>,
}

#[pymethods]
impl PyVectorLoad {
    fn fill(&self, py: Python<'_>, rows: Vec<(PyBackedBytes, PyBackedBytes)>) -> PyResult<usize> {
        py.detach(|| {
            let load = self.load.lock();
            let load = load.as_ref().ok_or_else(ended)?;
            let rows = rows.iter().map(|(key, body)| {
                let (key, body) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(body));
                (key, body)
            });
            load.fill(rows);
            Ok(load.bytes())
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let load = self.load.lock().take();
            load.ok_or_else(ended)?.finish();
            self.core.vectors().evict();
            Ok(())
        })
    }

    fn abandon(&self, py: Python<'_>) {
        py.detach(|| {
            drop(self.load.lock().take());
            self.core.vectors().evict();
        });
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the load has ended")
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ColdVectors", module.py().get_type::<ColdVectors>())?;
    module.add_class::<PyVectors>()?;
    module.add_class::<PyVectorLoad>()
}
