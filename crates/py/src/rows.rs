//! Rows: a table that every consumer reads anew.

use crate::column::STREAM;
use crate::table::Table;
use crate::{error, locked, work};
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMillisecondType, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use trawl_model::UnixMillis;
use trawl_store::Cancel;

/// A reader of batches that may move between threads.
pub type Reader = Box<dyn RecordBatchReader + Send>;
/// Starts to read; the reading ends early when it is cancelled.
type Open = dyn Fn(Cancel) -> PyResult<Reader> + Send + Sync;

/// A table of rows. Nothing is read before somebody asks, and every consumer starts at the first row.
///
/// `pyarrow.table(rows)`, `polars.DataFrame(rows)`, `duckdb.sql("select * from rows")` and pandas take it as it is.
#[pyclass(frozen, module = "trawl")]
pub struct Rows {
    schema: SchemaRef,
    open: Arc<Open>,
}

impl Rows {
    /// Rows that `open` starts to read.
    pub fn new(schema: SchemaRef, open: impl Fn(Cancel) -> PyResult<Reader> + Send + Sync + 'static) -> Self {
        Self { schema, open: Arc::new(open) }
    }

    /// A table that is small enough to be made at once.
    pub fn small(columns: &SchemaRef, fill: impl FnOnce(&mut Table) -> Result<(), ArrowError>) -> PyResult<Self> {
        let made = Table::new(columns).and_then(|mut table| {
            fill(&mut table)?;
            table.take()
        });
        let batch = made.map_err(|problem| error::of(&problem))?;
        let told = columns.clone();
        Ok(Self::new(columns.clone(), move |_| {
            Ok(Box::new(RecordBatchIterator::new([Ok(batch.clone())], told.clone())))
        }))
    }

    /// What another library makes of these rows. What fails is the lake or the archive: its error is ours, not that of a library
    /// which knows only the text.
    fn given<'py>(
        &self,
        py: Python<'py>,
        take: impl FnOnce(Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (failed, open) = (Arc::new(Mutex::new(None)), self.open.clone());
        let note = failed.clone();
        let rows = Self::new(self.schema.clone(), move |cancel| {
            Ok(Box::new(Noted { inner: open(cancel)?, failed: note.clone() }))
        });
        take(Bound::new(py, rows)?).map_err(|theirs| match locked(&failed).take() {
            Some(problem) => {
                let ours = error::of(&problem);
                ours.set_cause(py, Some(theirs));
                ours
            }
            None => theirs,
        })
    }

    /// The same rows, these columns of them.
    pub fn select(self, columns: Option<&[String]>) -> PyResult<Self> {
        let Some(columns) = columns else { return Ok(self) };
        let position = |name: &String| {
            let known =
                || self.schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
            self.schema
                .index_of(name)
                .map_err(|_| error::refused(format!("there is no column {name:?}; there are {}", known())))
        };
        let wanted: Vec<usize> = columns.iter().map(position).collect::<PyResult<_>>()?;
        let schema = Arc::new(self.schema.project(&wanted).map_err(|problem| error::of(&problem))?);
        let (open, told) = (self.open, schema.clone());
        Ok(Self::new(schema, move |cancel| {
            Ok(Box::new(Selected { inner: open(cancel)?, wanted: wanted.clone(), schema: told.clone() }))
        }))
    }
}

struct Selected {
    inner: Reader,
    wanted: Vec<usize>,
    schema: SchemaRef,
}

impl Iterator for Selected {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next().map(|batch| batch?.project(&self.wanted))
    }
}

impl RecordBatchReader for Selected {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Keeps the first error of a reader as it was.
struct Noted {
    inner: Reader,
    failed: Arc<Mutex<Option<ArrowError>>>,
}

impl Iterator for Noted {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next().map(|batch| {
            batch.map_err(|problem| {
                let text = match &problem {
                    ArrowError::ExternalError(inner) => inner.to_string(),
                    other => other.to_string(),
                };
                *locked(&self.failed) = Some(problem);
                ArrowError::ExternalError(text.into())
            })
        })
    }
}

impl RecordBatchReader for Noted {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }
}

#[pymethods]
impl Rows {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<trawl.Rows: {}>", self.columns().join(", "))
    }

    /// A capsule with an Arrow stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore what a consumer would like best.
        let _ = requested_schema;
        let reader = py.detach(|| (self.open)(Cancel::default()))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
    }

    /// A capsule with the Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = arrow_array::ffi::FFI_ArrowSchema::try_from(&*self.schema);
        PyCapsule::new_with_value(py, schema.map_err(|problem| error::of(&problem))?, c"arrow_schema")
    }

    /// Each row as a dict; times are `datetime` in UTC.
    fn __iter__(&self, py: Python<'_>) -> PyResult<RowIterator> {
        let cancel = Cancel::default();
        let reader = py.detach(|| (self.open)(cancel.clone()))?;
        Ok(RowIterator { reader: Mutex::new(reader), cancel, rows: Mutex::default() })
    }

    /// All rows as a list of dicts.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let cancel = Cancel::default();
        let mut reader = py.detach(|| (self.open)(cancel.clone()))?;
        while let Some(batch) = work::run(py, &cancel, || reader.next())? {
            for row in dicts(py, &batch.map_err(|problem| error::of(&problem))?)? {
                list.append(row)?;
            }
        }
        Ok(list)
    }

    /// All rows as a `pyarrow.Table`.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let table = py.import("pyarrow")?.getattr("table")?;
        self.given(py, |rows| table.call1((rows,)))
    }

    /// A `pyarrow.RecordBatchReader`.
    fn reader<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.getattr("RecordBatchReader")?.call_method1("from_stream", (slf,))
    }

    /// All rows as a `pandas.DataFrame`.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_arrow(py)?.call_method0("to_pandas")
    }

    /// All rows as a `polars.DataFrame`.
    fn to_polars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let frame = py.import("polars")?.getattr("DataFrame")?;
        self.given(py, |rows| frame.call1((rows,)))
    }
}

/// Rows one by one.
#[pyclass(frozen, module = "trawl")]
struct RowIterator {
    reader: Mutex<Reader>,
    cancel: Cancel,
    /// Rows of the last batch that are still to come.
    rows: Mutex<VecDeque<Py<PyDict>>>,
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        loop {
            // No lock is held while Python code may run.
            let ready = locked(&self.rows).pop_front();
            if ready.is_some() {
                return Ok(ready);
            }
            // What Ctrl-C interrupted has lost a batch: the rows after it would look like the next ones.
            self.cancel.check().map_err(|problem| error::of(&problem))?;
            let Some(batch) = work::run(py, &self.cancel, || locked(&self.reader).next())? else { return Ok(None) };
            let made = dicts(py, &batch.map_err(|problem| error::of(&problem))?)?;
            locked(&self.rows).extend(made.into_iter().map(Bound::unbind));
        }
    }
}

fn dicts<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let columns: Vec<Bound<'py, PyAny>> =
        batch.columns().iter().map(|column| values(py, column)).collect::<PyResult<_>>()?;
    let mut rows = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let dict = PyDict::new(py);
        for (field, column) in batch.schema_ref().fields().iter().zip(&columns) {
            dict.set_item(field.name(), column.get_item(row)?)?;
        }
        rows.push(dict);
    }
    Ok(rows)
}

/// A column as a list of Python's values.
pub fn values<'py>(py: Python<'py>, column: &dyn Array) -> PyResult<Bound<'py, PyAny>> {
    let list = PyList::empty(py);
    // `datetime.fromtimestamp` knows no year after 9999 and rounds; a sum is exact.
    let from_millis = match column.data_type() {
        DataType::Timestamp(..) => {
            let datetime = py.import("datetime")?;
            let utc = datetime.getattr("timezone")?.getattr("utc")?;
            let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
            Some((epoch, datetime.getattr("timedelta")?))
        }
        _ => None,
    };
    for row in 0..column.len() {
        if column.is_null(row) {
            list.append(py.None())?;
            continue;
        }
        let value = match (column.data_type(), &from_millis) {
            (DataType::Timestamp(..), Some((epoch, delta))) => {
                let millis = column.as_primitive::<TimestampMillisecondType>().value(row);
                epoch.call_method1("__add__", (delta.call1((0, 0, 0, millis))?,)).map_err(|_| {
                    let time = UnixMillis(millis);
                    error::refused(format!(
                        "expected a time that Python has a datetime for, found {time}: read the table by Arrow"
                    ))
                })?
            }
            (DataType::LargeUtf8, _) => column.as_string::<i64>().value(row).into_bound_py_any(py)?,
            (DataType::Utf8, _) => column.as_string::<i32>().value(row).into_bound_py_any(py)?,
            (DataType::Int32, _) => column.as_primitive::<Int32Type>().value(row).into_bound_py_any(py)?,
            (DataType::Int64, _) => column.as_primitive::<Int64Type>().value(row).into_bound_py_any(py)?,
            (DataType::UInt64, _) => column.as_primitive::<UInt64Type>().value(row).into_bound_py_any(py)?,
            (DataType::Float64, _) => column.as_primitive::<Float64Type>().value(row).into_bound_py_any(py)?,
            (DataType::Boolean, _) => column.as_boolean().value(row).into_bound_py_any(py)?,
            (DataType::Binary, _) => column.as_binary::<i32>().value(row).into_bound_py_any(py)?,
            (other, _) => return Err(error::refused(format!("a column of {other} has no values in plain Python"))),
        };
        list.append(value)?;
    }
    Ok(list.into_any())
}
