//! Lists of chat messages for Python.

use std::borrow::Cow;

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use remora_chats::{ChatList, Malformed, Measure};

use super::tokens::parse_encoding;

/// A message's index, the id of a call, and whether it answers that call.
type ToolUse<'a> = (usize, Cow<'a, str>, bool);

/// See `_native.pyi`.
#[pyclass(frozen)]
struct EncodedMessages(ChatList<PyBackedBytes>);

#[pymethods]
impl EncodedMessages {
    #[new]
    fn new(encoded: PyBackedBytes) -> PyResult<Self> {
        ChatList::read(encoded).map(Self).map_err(malformed)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn costs(
        &self,
        py: Python<'_>,
        encoding: &str,
        begin: usize,
        end: usize,
    ) -> PyResult<(Vec<usize>, Vec<usize>)> {
        let measure = match encoding {
            "approximate" => Measure::Approximate,
            name => Measure::Exact(parse_encoding(name)?),
        };
        let costs = py.detach(|| self.0.costs(begin..end, measure));
        let costs = costs.ok_or_else(out_of_range)?.map_err(malformed)?;
        Ok((costs.tokens, costs.holding_more))
    }

    fn tool_uses(&self, begin: usize, end: usize) -> PyResult<Vec<ToolUse<'_>>> {
        let messages = self.0.messages(begin..end).ok_or_else(out_of_range)?;
        let mut uses = Vec::new();
        for (index, message) in (begin..end).zip(messages) {
            let message = message.map_err(malformed)?;
            let calls = message.tool_calls.iter().map(|call| (call.id, false));
            let results = message.tool_result_ids.iter().map(|id| (*id, true));
            let of_message = calls.chain(results);
            uses.extend(
                of_message.map(|(id, is_result)| (index, String::from_utf8_lossy(id), is_result)),
            );
        }
        Ok(uses)
    }
}

fn malformed(error: Malformed) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn out_of_range() -> PyErr {
    PyIndexError::new_err("there are fewer messages")
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<EncodedMessages>()
}
