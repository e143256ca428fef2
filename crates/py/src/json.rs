//! JSON values as Python objects.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

/// A value as Python has it. Numbers keep all 64 bits.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(n), _, _) => n.into_bound_py_any(py),
            (_, Some(n), _) => n.into_bound_py_any(py),
            (_, _, n) => n.into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            Ok(list.into_any())
        }
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (name, member) in members {
                dict.set_item(name, to_python(py, member)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

/// An answer of the API as Python has it.
pub fn answer<'py>(py: Python<'py>, answer: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(answer).map_err(|error| crate::error::of(&error))?;
    to_python(py, &value)
}
