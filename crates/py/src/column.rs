//! Arrow columns in and out, by the PyCapsule protocol. The only module with unsafe code: capsules hold bare pointers.

use crate::error;
use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi::{self, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{ArrowError, DataType};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyTuple};
use std::ffi::CStr;
use std::sync::Arc;

const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";
/// The name of a capsule that holds a stream.
pub const STREAM: &CStr = c"arrow_array_stream";

/// Items of an iterable after which its reader looks whether somebody pressed Ctrl-C.
const LOOK_EVERY: usize = 1 << 16;

/// A column of values: `pyarrow.array(column)`, `polars.Series(column)`, `list(column)`.
#[pyclass(frozen, module = "trawl")]
pub struct Column(pub ArrayRef);

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("<trawl.Column of {} {}>", self.0.len(), self.0.data_type())
    }

    /// The values as a list; `None` where there is none.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::rows::values(py, &self.0)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_list(py)?.call_method0("__iter__")
    }

    /// Two capsules: the type and the values.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // A producer may ignore what a consumer would like best.
        let _ = requested_schema;
        let (array, schema) = ffi::to_ffi(&self.0.to_data()).map_err(|problem| error::of(&problem))?;
        let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
        let array = PyCapsule::new_with_value(py, array, ARRAY)?;
        PyTuple::new(py, [schema.into_any(), array.into_any()])
    }
}

/// The chunks of a column of texts: anything with Arrow's protocol (pyarrow, polars, pandas 3), or an iterable of str and None.
pub fn texts(value: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    let arrow = |problem: ArrowError| error::refused(format!("expected a column of texts: {problem}"));
    let chunks: Vec<ArrayRef> = if value.hasattr("__arrow_c_stream__")? {
        ArrayStreamReader::try_new(stream(value)?).map_err(arrow)?.collect::<Result<_, _>>().map_err(arrow)?
    } else if value.hasattr("__arrow_c_array__")? {
        vec![array(value)?]
    } else {
        let mut builder = LargeStringBuilder::new();
        for (n, item) in value.try_iter()?.enumerate() {
            // No Python code runs here that would notice Ctrl-C.
            if n % LOOK_EVERY == 0 {
                value.py().check_signals()?;
            }
            builder.append_option(item?.extract::<Option<String>>()?);
        }
        vec![Arc::new(builder.finish())]
    };
    for chunk in &chunks {
        if !matches!(chunk.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null) {
            return Err(error::refused(format!("expected a column of texts, found one of {}", chunk.data_type())));
        }
        // Other libraries hand on whatever bytes they were given; here a text is UTF-8.
        chunk.to_data().validate_full().map_err(arrow)?;
    }
    Ok(chunks)
}

/// The text of a row.
pub fn text(chunk: &dyn Array, row: usize) -> Option<&str> {
    if chunk.is_null(row) {
        return None;
    }
    match chunk.data_type() {
        DataType::Utf8 => Some(chunk.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(chunk.as_string::<i64>().value(row)),
        DataType::Utf8View => Some(chunk.as_string_view().value(row)),
        _ => None,
    }
}

/// A stream of batches, or of chunks of a column, that another library gives.
#[expect(unsafe_code, reason = "a capsule holds a bare pointer")]
pub fn stream(value: &Bound<'_, PyAny>) -> PyResult<FFI_ArrowArrayStream> {
    let capsule = value.call_method0("__arrow_c_stream__")?;
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
    // SAFETY: a capsule of this name holds a valid ArrowArrayStream, says the protocol. `from_raw` moves it out and leaves a
    // released one behind, which the capsule's destructor knows to leave alone; the capsule lives until after the move.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) })
}

#[expect(unsafe_code, reason = "capsules hold bare pointers")]
fn array(value: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let capsules = value.call_method0("__arrow_c_array__")?;
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names hold an ArrowArray and the ArrowSchema that describes it, says the protocol. The array is moved
    // out, the schema is only read; both capsules are alive, since `capsules` is.
    let (array, schema) = unsafe { (FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    // Somebody else may have taken what is in them; their pointers lead nowhere then.
    if array.is_released() || schema.release().is_none() {
        return Err(error::refused("expected a column of texts, found one that was taken before"));
    }
    // SAFETY: neither is released.
    let data = unsafe { ffi::from_ffi(array, schema) };
    Ok(arrow_array::make_array(data.map_err(|problem| error::refused(problem.to_string()))?))
}
