//! Lexical search for Python: a segment with its analyzer, and the analyzer alone.

use std::sync::LazyLock;

use parking_lot::RwLock;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use remora_lexical::{Analyzer, Parameters, Query, Segment, Statistics, Term};

/// Slots are dense; a search allocates four bytes for each up to the highest.
const SLOTS: u32 = 1 << 24;

static ANALYZER: LazyLock<Analyzer> = LazyLock::new(Analyzer::new);

/// A BM25 index of documents in slots.
#[pyclass(frozen, module = "remora_server._native")]
#[derive(Default)]
struct LexicalSegment {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    segment: Segment,
    /// One more than the highest slot that was ever used.
    bound: usize,
}

#[pymethods]
impl LexicalSegment {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn upsert(&self, py: Python<'_>, slot: u32, text: &str) -> PyResult<()> {
        if slot >= SLOTS {
            return Err(PyValueError::new_err(format!(
                "slot must be below {SLOTS}, not {slot}"
            )));
        }
        py.detach(|| {
            let document = ANALYZER.document(text);
            let mut state = self.state.write();
            state.segment.upsert(slot, &document);
            state.bound = state.bound.max(slot as usize + 1);
        });
        Ok(())
    }

    fn remove(&self, py: Python<'_>, slot: u32) -> bool {
        py.detach(|| self.state.write().segment.remove(slot))
    }

    fn search(&self, py: Python<'_>, query: &str, k: usize) -> Vec<(u32, f32)> {
        py.detach(|| {
            let terms = ANALYZER.analyze(query);
            best(&self.state.read().scores(terms), k)
        })
    }

    fn bytes(&self, py: Python<'_>) -> usize {
        py.detach(|| self.state.read().segment.bytes())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.state.read().segment.len())
    }
}

impl State {
    fn scores(&self, terms: Vec<Term>) -> Vec<f32> {
        let mut statistics = Statistics::new(terms);
        self.segment.count_into(&mut statistics);
        let mut scores = vec![0.0; self.bound];
        self.segment
            .score_into(&Query::new(&statistics, Parameters::default()), &mut scores);
        scores
    }
}

/// The k highest scores above zero with their slots, ties by slot.
fn best(scores: &[f32], k: usize) -> Vec<(u32, f32)> {
    let mut hits: Vec<_> = (0..)
        .zip(scores.iter().copied())
        .filter(|(_, score)| *score > 0.0)
        .collect();
    hits.sort_unstable_by(|left: &(u32, f32), right| {
        right.1.total_cmp(&left.1).then(left.0.cmp(&right.0))
    });
    hits.truncate(k);
    hits
}

/// The terms of a text in its order, repeats included, as they read before they are hashed.
#[pyfunction]
fn analyze(py: Python<'_>, text: &str) -> Vec<String> {
    py.detach(|| ANALYZER.words(text))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LexicalSegment>()?;
    module.add_function(wrap_pyfunction!(analyze, module)?)
}
