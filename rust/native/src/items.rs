//! The items of the store for Python: loading those of a tenant, searching them, listing their namespaces.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use remora_core::Core;
use remora_items::{Cold, Items, Listing, Load, Match, Put, Query, Search, Shown, Similarity};

use super::errors::torn_error;
use super::filters::expression;
use super::vectors::floats;

/// A namespace and a key, as they are encoded.
type Place<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// A score, the item as replies have it, its place and its revision, and until when it lives by its refresh.
type ItemHit<'py> = (
    Option<f64>,
    Bound<'py, PyBytes>,
    Place<'py>,
    u64,
    Option<i64>,
);

/// What the database has of an item: namespace, key, body, revision and expire time.
type Row = (
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    u64,
    Option<i64>,
);

create_exception!(
    remora_server._native,
    ColdItems,
    PyKeyError,
    "The items are not in memory."
);

/// See `_native.pyi`.
#[pyclass(name = "Items", module = "remora_server._native", frozen)]
pub(super) struct PyItems {
    core: Arc<Core>,
}

impl PyItems {
    pub(super) fn of(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The items, unless a panic may have left half of a change in memory.
    fn items(&self) -> PyResult<&Items> {
        self.core.require_whole().map_err(torn_error)?;
        Ok(self.core.items())
    }

    fn published(&self) -> u64 {
        self.core.journal().published()
    }
}

#[pymethods]
impl PyItems {
    fn begin(&self, kind: u32, tenant: &str) -> PyResult<PyItemLoad> {
        let load = self.items()?.begin(kind, tenant);
        Ok(PyItemLoad {
            core: Arc::clone(&self.core),
            load: Mutex::new(Some(load)),
        })
    }

    #[pyo3(signature = (kind, tenant, prefix, *, expression, query, skip, limit, now, refresh))]
    #[expect(clippy::too_many_arguments, reason = "the last are keywords in Python")]
    fn search<'py>(
        &self,
        py: Python<'py>,
        kind: u32,
        tenant: &str,
        prefix: &[u8],
        expression: Option<&Bound<'_, PyAny>>,
        query: Option<(String, Bound<'_, PyAny>, &str)>,
        skip: usize,
        limit: usize,
        now: i64,
        refresh: bool,
    ) -> PyResult<(Vec<ItemHit<'py>>, u64)> {
        let filter = expression.map(self::expression).transpose()?;
        let query = query.map(self::query).transpose()?;
        let search = Search {
            prefix,
            filter: filter.as_ref(),
            query: query.as_ref(),
            skip,
            limit,
            now,
        };
        let items = self.items()?;
        let shown = py.detach(|| items.search((kind, tenant), &search, || self.published()));
        let Shown { found, revision } = shown.map_err(cold_error)?;
        let hits = found.iter().map(|hit| {
            let (encoded, refreshed) = hit.encoded(refresh.then_some(now));
            let place = (PyBytes::new(py, &hit.namespace), PyBytes::new(py, &hit.key));
            let encoded = PyBytes::new(py, &encoded);
            (hit.score, encoded, place, hit.revision, refreshed)
        });
        Ok((hits.collect(), revision))
    }

    #[pyo3(signature = (kind, tenant, *, matches, max_depth, skip, limit, now))]
    #[expect(clippy::too_many_arguments, reason = "the last are keywords in Python")]
    fn namespaces(
        &self,
        py: Python<'_>,
        kind: u32,
        tenant: &str,
        matches: Vec<(String, Vec<String>)>,
        max_depth: Option<usize>,
        skip: usize,
        limit: usize,
        now: i64,
    ) -> PyResult<(Vec<Vec<String>>, bool, u64)> {
        let matches: Vec<_> = matches.into_iter().map(matched).collect::<PyResult<_>>()?;
        let listing = Listing {
            matches: &matches,
            max_depth,
            skip,
            limit,
            now,
        };
        let items = self.items()?;
        let shown = py.detach(|| items.namespaces((kind, tenant), &listing, || self.published()));
        let Shown { found, revision } = shown.map_err(cold_error)?;
        Ok((found.0, found.1, revision))
    }

    #[pyo3(signature = (kind, tenant, places, *, now))]
    fn created(
        &self,
        py: Python<'_>,
        kind: u32,
        tenant: &str,
        places: Vec<(PyBackedBytes, PyBackedBytes)>,
        now: i64,
    ) -> PyResult<Vec<Option<i64>>> {
        let own = |bytes: &PyBackedBytes| Bytes::copy_from_slice(bytes);
        let places: Vec<_> = places
            .iter()
            .map(|(namespace, key)| (own(namespace), own(key)))
            .collect();
        let items = self.items()?;
        let shown = py.detach(|| items.created((kind, tenant), &places, now, || self.published()));
        Ok(shown.map_err(cold_error)?.found)
    }

    #[pyo3(signature = (kind, tenant, *, now))]
    fn expired<'py>(
        &self,
        py: Python<'py>,
        kind: u32,
        tenant: &str,
        now: i64,
    ) -> PyResult<Vec<Place<'py>>> {
        let items = self.items()?;
        let shown = py.detach(|| items.expired((kind, tenant), now, || self.published()));
        let found = shown.map_err(cold_error)?.found.into_iter();
        Ok(found
            .map(|(namespace, key)| (PyBytes::new(py, &namespace), PyBytes::new(py, &key)))
            .collect())
    }
}

fn query((model, vector, similarity): (String, Bound<'_, PyAny>, &str)) -> PyResult<Query> {
    let values = floats(&vector)?;
    if !values.iter().all(|value| value.is_finite()) {
        return Err(PyValueError::new_err("a vector has finite values"));
    }
    Ok(Query {
        model,
        vector: remora_vectors::Query::new(values),
        similarity: match similarity {
            "cosine" => Similarity::Cosine,
            "inner_product" => Similarity::InnerProduct,
            "l2" => Similarity::L2,
            _ => return Err(unknown("similarity", similarity)),
        },
    })
}

fn matched((kind, labels): (String, Vec<String>)) -> PyResult<Match> {
    match kind.as_str() {
        "prefix" => Ok(Match::Prefix(labels)),
        "suffix" => Ok(Match::Suffix(labels)),
        _ => Err(unknown("match", &kind)),
    }
}

fn unknown(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("unknown {what} {name:?}"))
}

fn cold_error(_: Cold) -> PyErr {
    ColdItems::new_err("the items are not in memory")
}

/// See `_native.pyi`.
#[pyclass(name = "ItemLoad", module = "remora_server._native", frozen)]
pub(super) struct PyItemLoad {
    core: Arc<Core>,
    load: Mutex<Option<Load>>,
}

#[pymethods]
impl PyItemLoad {
    fn fill(&self, py: Python<'_>, rows: Vec<Row>) -> PyResult<usize> {
        py.detach(|| {
            let load = self.load.lock();
            let load = load.as_ref().ok_or_else(ended)?;
            load.fill(rows.iter().map(put));
            Ok(load.bytes())
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let load = self.load.lock().take();
            load.ok_or_else(ended)?.finish();
            self.core.items().evict();
            Ok(())
        })
    }

    fn abandon(&self, py: Python<'_>) {
        py.detach(|| {
            drop(self.load.lock().take());
            self.core.items().evict();
        });
    }
}

fn put((namespace, key, body, revision, expire_time): &Row) -> Put {
    Put {
        namespace: Bytes::copy_from_slice(namespace),
        key: Bytes::copy_from_slice(key),
        body: Bytes::copy_from_slice(body),
        revision: *revision,
        expire_time: *expire_time,
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the load has ended")
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ColdItems", module.py().get_type::<ColdItems>())?;
    module.add_class::<PyItems>()?;
    module.add_class::<PyItemLoad>()
}
