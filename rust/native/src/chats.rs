//! Lists of chat messages for Python.

use std::borrow::Cow;

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use remora_chats::{ChatList, Malformed, Measure, PlainMessage};

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

/// Sequence, role, text, the whole encoded, name, time of sending, session, tokens of the text, id.
type Plain<'a, 'py> = (
    u64,
    &'a str,
    &'a str,
    Bound<'py, PyBytes>,
    &'a str,
    i64,
    &'a str,
    i32,
    &'a str,
);

/// A message that is nothing but text, or any other as it is.
#[derive(IntoPyObject)]
enum Listed<'a, 'py> {
    Plain(Plain<'a, 'py>),
    Encoded(Bound<'py, PyBytes>),
}

/// See `_native.pyi`.
#[pyfunction]
fn plain_message<'a, 'py>(encoded: &'a Bound<'py, PyBytes>) -> Option<Plain<'a, 'py>> {
    let message = PlainMessage::read(encoded.as_bytes())?;
    Some(plain(message, encoded.clone()))
}

/// See `_native.pyi`.
#[pyfunction]
fn plain_messages<'a, 'py>(encoded: &'a Bound<'py, PyBytes>) -> PyResult<Vec<Listed<'a, 'py>>> {
    let list = ChatList::read(encoded.as_bytes()).map_err(malformed)?;
    let listed = list.encoded().map(|encoded_message| {
        let whole = PyBytes::new(encoded.py(), encoded_message);
        match PlainMessage::read(encoded_message) {
            Some(message) => Listed::Plain(plain(message, whole)),
            None => Listed::Encoded(whole),
        }
    });
    Ok(listed.collect())
}

fn plain<'a, 'py>(message: PlainMessage<'a>, encoded: Bound<'py, PyBytes>) -> Plain<'a, 'py> {
    (
        message.sequence,
        message.role,
        message.text,
        encoded,
        message.name,
        message.sent_time,
        message.session_id,
        message.token_count,
        message.id,
    )
}

fn malformed(error: Malformed) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn out_of_range() -> PyErr {
    PyIndexError::new_err("there are fewer messages")
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<EncodedMessages>()?;
    module.add_function(wrap_pyfunction!(plain_message, module)?)?;
    module.add_function(wrap_pyfunction!(plain_messages, module)?)
}
