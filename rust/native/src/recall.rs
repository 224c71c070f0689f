//! Recall for Python: loading what is searched, and searching it.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use remora_core::{Core, Unapplied};
use remora_late::Pieces;
use remora_recall::{
    Filter, Found, FoundMessage, Names, Recall, Scope, Search, StoredDocument, StoredDocuments,
    Vector, Weights,
};

use super::errors::torn_error;
use super::filters::expression;
use super::vectors::{floats, refused};

/// See `_native.pyi`.
#[pyclass(name = "Recall", module = "remora_server._native", frozen)]
pub(super) struct PyRecall {
    core: Arc<Core>,
}

impl PyRecall {
    pub(super) fn of(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Recall, unless a panic may have left half of a change in memory.
    fn recall(&self) -> PyResult<&Recall> {
        self.core.require_whole().map_err(torn_error)?;
        Ok(self.core.recall())
    }
}

/// See `_native.pyi`.
#[pyclass(name = "Unapplied", module = "remora_server._native", frozen)]
pub(super) struct PyUnapplied(pub(super) Unapplied);

#[pymethods]
impl PyUnapplied {
    fn users(&self) -> Vec<String> {
        self.0.users().into_iter().map(str::to_owned).collect()
    }

    fn parts(&self, user_id: &str) -> Vec<(u64, String)> {
        let parts = self.0.parts(user_id).into_iter();
        parts.map(|(uid, id)| (uid, id.to_owned())).collect()
    }
}

/// The vectors of one stored message: model, little-endian f32, whether the caller made it, word pieces.
type StoredVectors = Vec<(String, PyBackedBytes, bool, PyBackedBytes)>;

#[pymethods]
impl PyRecall {
    fn revision(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.core.recall().revision())
    }

    fn has_part(&self, py: Python<'_>, tenant: &str, user_id: &str, uid: u64) -> PyResult<bool> {
        let recall = self.recall()?;
        Ok(py.detach(|| recall.has_part(tenant, user_id, uid)))
    }

    fn begin_part(
        &self,
        py: Python<'_>,
        tenant: &str,
        user_id: &str,
        uid: u64,
    ) -> PyResult<Option<(u64, u64)>> {
        let recall = self.recall()?;
        let progress = py.detach(|| recall.begin_part(tenant, user_id, uid));
        Ok(progress.map(|progress| (progress.since, progress.loaded)))
    }

    fn begin_user(&self, py: Python<'_>, tenant: &str, user_id: &str) -> PyResult<bool> {
        let recall = self.recall()?;
        Ok(py.detach(|| recall.begin_user(tenant, user_id)))
    }

    fn hold_user(&self, py: Python<'_>, tenant: &str, user_id: &str) -> PyResult<bool> {
        let recall = self.recall()?;
        Ok(py.detach(|| recall.hold_user(tenant, user_id)))
    }

    fn release_user(&self, py: Python<'_>, tenant: &str, user_id: &str) {
        py.detach(|| self.core.recall().release_user(tenant, user_id));
    }

    fn declare_parts(
        &self,
        py: Python<'_>,
        tenant: &str,
        user_id: &str,
        uids: Vec<u64>,
    ) -> Vec<(u64, u64)> {
        py.detach(|| self.core.recall().declare_parts(tenant, user_id, &uids))
    }

    fn finish_user(&self, py: Python<'_>, tenant: &str, user_id: &str) {
        py.detach(|| self.core.recall().finish_user(tenant, user_id));
    }

    #[pyo3(signature = (tenant, user_id, uid, conversation_id, messages, embeddings, *, through, unapplied = None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn fill_part(
        &self,
        py: Python<'_>,
        tenant: &str,
        user_id: &str,
        uid: u64,
        conversation_id: &str,
        messages: Vec<PyBackedBytes>,
        embeddings: Vec<StoredVectors>,
        through: Option<u64>,
        unapplied: Option<&PyUnapplied>,
    ) -> PyResult<()> {
        if messages.len() != embeddings.len() {
            return Err(PyValueError::new_err("embeddings are one list a message"));
        }
        let recall = self.recall()?;
        py.detach(|| {
            let documents = messages.iter().zip(&embeddings).map(stored).collect();
            let later = unapplied.map(|unapplied| unapplied.0.later(user_id, uid));
            let later = later.unwrap_or_default();
            let stored = StoredDocuments { documents, through };
            recall.fill_part(tenant, user_id, uid, conversation_id, stored, later);
        });
        Ok(())
    }

    fn abandon(&self, py: Python<'_>, tenant: &str, user_id: &str, uid: Option<u64>) {
        py.detach(|| self.core.recall().abandon(tenant, user_id, uid));
    }

    fn bytes_in_memory(&self) -> usize {
        self.core.recall().bytes()
    }

    #[pyo3(signature = (tenant, *, user_id, uid))]
    fn bytes_of(
        &self,
        py: Python<'_>,
        tenant: &str,
        user_id: Option<&str>,
        uid: Option<u64>,
    ) -> PyResult<usize> {
        let scope = scope(user_id, uid)?;
        Ok(py.detach(|| self.core.recall().bytes_of(tenant, scope)))
    }

    #[pyo3(signature = (tenant, *, user_id, uid, published))]
    fn speakers(
        &self,
        py: Python<'_>,
        tenant: &str,
        user_id: Option<&str>,
        uid: Option<u64>,
        published: u64,
    ) -> PyResult<Vec<String>> {
        let scope = scope(user_id, uid)?;
        let recall = self.recall()?;
        Ok(py.detach(|| recall.speakers(tenant, scope, published)))
    }

    #[pyo3(signature = (tenant, *, user_id, uid, model, published))]
    fn pending(
        &self,
        py: Python<'_>,
        tenant: &str,
        user_id: Option<&str>,
        uid: Option<u64>,
        model: &str,
        published: u64,
    ) -> PyResult<usize> {
        let scope = scope(user_id, uid)?;
        let recall = self.recall()?;
        Ok(py.detach(|| recall.pending(tenant, scope, model, published)))
    }

    #[pyo3(signature = (tenant, *, user_id, uid, model, published))]
    fn dimensions(
        &self,
        py: Python<'_>,
        tenant: &str,
        user_id: Option<&str>,
        uid: Option<u64>,
        model: &str,
        published: u64,
    ) -> PyResult<Vec<usize>> {
        let scope = scope(user_id, uid)?;
        let recall = self.recall()?;
        Ok(py.detach(|| recall.dimensions(tenant, scope, model, published)))
    }

    #[pyo3(signature = (tenant, *, user_id, uid, text, doubtful, source, vector, pieces, model, profile, k, threshold, weights, half_life, roles, sent, received,
                        expression, exclude, without_roles, seen, around, published))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn search(
        &self,
        py: Python<'_>,
        tenant: &str,
        user_id: Option<&str>,
        uid: Option<u64>,
        text: &str,
        doubtful: Vec<String>,
        source: Option<(u64, u64)>,
        vector: Option<&Bound<'_, PyAny>>,
        pieces: &[u8],
        model: &str,
        profile: &str,
        k: usize,
        threshold: Option<f64>,
        weights: HashMap<String, f64>,
        half_life: Option<f64>,
        roles: Vec<String>,
        sent: (Option<i64>, Option<i64>),
        received: (Option<i64>, Option<i64>),
        expression: Option<&Bound<'_, PyAny>>,
        exclude: Vec<(u64, u64)>,
        without_roles: Vec<String>,
        seen: Vec<(u64, u64)>,
        around: usize,
        published: u64,
    ) -> PyResult<SearchResult> {
        if half_life.is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite())) {
            return Err(PyValueError::new_err("half_life must be above 0"));
        }
        if threshold.is_some_and(f64::is_nan) {
            return Err(PyValueError::new_err("threshold must be a number"));
        }
        let vector = vector.map(floats).transpose()?;
        let pieces = Pieces::from_bytes(pieces)
            .ok_or_else(|| PyValueError::new_err("the bytes do not divide into pieces"))?;
        let search = Search {
            tenant,
            scope: scope(user_id, uid)?,
            text,
            doubtful: &doubtful,
            source,
            vector: vector.as_deref(),
            pieces: &pieces,
            model,
            profile: profile.parse().map_err(value_error)?,
            k,
            threshold,
            weights: named_weights(&weights)?,
            half_life,
            filter: Filter {
                roles,
                sent: sent.into(),
                received: received.into(),
                expression: expression.map(self::expression).transpose()?,
            },
            exclude: &exclude,
            without_roles: &without_roles,
            seen: &seen,
            around,
            published,
        };
        let recall = self.recall()?;
        let found = py.detach(|| recall.search(&search));
        SearchResult::new(py, found.map_err(refused)?)
    }
}

fn value_error(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn stored((message, vectors): (&PyBackedBytes, &StoredVectors)) -> StoredDocument {
    StoredDocument {
        encoded: Bytes::copy_from_slice(message),
        own_vector: vectors.iter().any(|(_, _, by_caller, _)| *by_caller),
        vectors: vectors
            .iter()
            .map(|(model, values, _, pieces)| Vector {
                model: model.clone(),
                values: Bytes::copy_from_slice(values),
                pieces: Bytes::copy_from_slice(pieces),
            })
            .collect(),
    }
}

fn scope(user: Option<&str>, uid: Option<u64>) -> PyResult<Scope<'_>> {
    match (user, uid) {
        (Some(user), Some(uid)) => Ok(Scope::Part { user, uid }),
        (Some(user), None) => Ok(Scope::User { user }),
        (None, None) => Ok(Scope::Tenant),
        (None, Some(_)) => Err(PyValueError::new_err("a part is a user's")),
    }
}

fn named_weights(given: &HashMap<String, f64>) -> PyResult<Weights> {
    let mut weights = Weights::default();
    for (name, value) in given {
        let Some(weight) = weights.named(name).filter(|_| value.is_finite()) else {
            return Err(PyValueError::new_err(format!("no weight {name}: {value}")));
        };
        *weight = *value;
    }
    Ok(weights)
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen)]
struct SearchResult {
    #[pyo3(get)]
    hits: Vec<Py<RecallHit>>,
    #[pyo3(get)]
    pending: usize,
    #[pyo3(get)]
    complete: bool,
    #[pyo3(get)]
    background: (f64, f64, f64, f64),
}

impl SearchResult {
    fn new(py: Python<'_>, found: Found) -> PyResult<Self> {
        let hits = found
            .hits
            .into_iter()
            .map(|hit| Py::new(py, RecallHit(hit)));
        Ok(Self {
            hits: hits.collect::<PyResult<_>>()?,
            pending: found.pending,
            complete: found.complete,
            background: (
                found.background.documents,
                found.background.whole,
                found.background.most,
                found.background.cosine,
            ),
        })
    }
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen)]
struct RecallHit(FoundMessage);

#[pymethods]
impl RecallHit {
    #[getter]
    fn uid(&self) -> u64 {
        self.0.uid
    }

    #[getter]
    fn sequence(&self) -> u64 {
        self.0.sequence
    }

    #[getter]
    fn conversation_id(&self) -> &str {
        &self.0.conversation_id
    }

    #[getter]
    fn score(&self) -> f64 {
        self.0.score
    }

    #[getter]
    fn components(&self) -> Vec<(&'static str, f64, f64)> {
        let components = self.0.components.iter();
        components
            .map(|part| (part.name, part.value, part.weight))
            .collect()
    }

    #[getter]
    fn encoded<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encoded)
    }

    #[getter]
    fn before(hit: Py<Self>) -> Beside {
        Beside {
            hit,
            side: |found| &found.before,
        }
    }

    #[getter]
    fn after(hit: Py<Self>) -> Beside {
        Beside {
            hit,
            side: |found| &found.after,
        }
    }
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen, sequence)]
struct Beside {
    hit: Py<RecallHit>,
    side: fn(&FoundMessage) -> &[Bytes],
}

impl Beside {
    fn messages(&self) -> &[Bytes] {
        (self.side)(&self.hit.get().0)
    }
}

#[pymethods]
impl Beside {
    fn __len__(&self) -> usize {
        self.messages().len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyBytes>> {
        let message = self.messages().get(index);
        let message = message.ok_or_else(|| PyIndexError::new_err("there are fewer messages"))?;
        Ok(PyBytes::new(py, message))
    }
}

/// The texts without the names of those who take part.
#[pyfunction]
fn strip_names(py: Python<'_>, texts: Vec<String>, speakers: Vec<String>) -> Vec<String> {
    py.detach(|| {
        let names = Names::of(speakers.iter().map(String::as_str));
        texts.iter().map(|text| names.strip(text)).collect()
    })
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRecall>()?;
    module.add_class::<PyUnapplied>()?;
    module.add_class::<SearchResult>()?;
    module.add_class::<RecallHit>()?;
    module.add_class::<Beside>()?;
    module.add_function(wrap_pyfunction!(strip_names, module)?)
}
