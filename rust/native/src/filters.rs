//! Filters as Python gives them.

use bytes::Bytes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};
use remora_core::windows;
use remora_filter::{Condition, Expression, Scalar, UnknownOperator};

/// Deeper than this no expression is: the RPCs' limit is lower.
const MAX_DEPTH: usize = 32;

/// See `_native.pyi`.
#[pyfunction]
fn passing_messages<'py>(
    py: Python<'py>,
    page: &[u8],
    expression: &Bound<'_, PyAny>,
) -> PyResult<Vec<(u64, Bound<'py, PyBytes>)>> {
    let expression = nested(expression, 0)?;
    let page = Bytes::copy_from_slice(page);
    let passing = py.detach(|| windows::passing(page, &expression));
    let passing = passing.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let made = passing.into_iter();
    Ok(made
        .map(|(sequence, message)| (sequence, PyBytes::new(py, &message)))
        .collect())
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(passing_messages, module)?)
}

/// `("all" | "any", expressions)`, `("not", expression)` or `("condition", key, operator, values)`.
pub(super) fn expression(given: &Bound<'_, PyAny>) -> PyResult<Expression> {
    nested(given, 0)
}

fn nested(given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Expression> {
    if depth == MAX_DEPTH {
        return Err(PyValueError::new_err("the expression is too deep"));
    }
    let kind: String = given.get_item(0)?.extract()?;
    let parts = || -> PyResult<Vec<Expression>> {
        let parts = given.get_item(1)?;
        parts
            .try_iter()?
            .map(|part| nested(&part?, depth + 1))
            .collect()
    };
    match kind.as_str() {
        "all" => Ok(Expression::All(parts()?)),
        "any" => Ok(Expression::Any(parts()?)),
        "not" => {
            let part = nested(&given.get_item(1)?, depth + 1)?;
            Ok(Expression::Not(Box::new(part)))
        }
        "condition" => Ok(Expression::Condition(condition(given)?)),
        _ => Err(PyValueError::new_err(format!(
            "unknown expression {kind:?}"
        ))),
    }
}

fn condition(given: &Bound<'_, PyAny>) -> PyResult<Condition> {
    let (_, key, operator, values): (PyBackedStr, String, String, Vec<Bound<'_, PyAny>>) =
        given.extract()?;
    Ok(Condition {
        key,
        operator: operator
            .parse()
            .map_err(|error: UnknownOperator| PyValueError::new_err(error.to_string()))?,
        values: values.iter().map(scalar).collect::<PyResult<_>>()?,
    })
}

fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    if value.is_none() {
        Ok(Scalar::Null)
    } else if let Ok(boolean) = value.cast::<PyBool>() {
        Ok(Scalar::Boolean(boolean.is_true()))
    } else if value.is_instance_of::<PyInt>() {
        value.extract().map(Scalar::Integer)
    } else if value.is_instance_of::<PyFloat>() {
        value.extract().map(Scalar::Number)
    } else if let Ok(text) = value.cast::<PyString>() {
        Ok(Scalar::Text(text.to_str()?.into()))
    } else {
        let message = "a value is None, bool, int, float or str";
        Err(PyTypeError::new_err(message))
    }
}
