//! Domains: one with the datasets that hold it, or a column of names looked up.

use crate::column::text;
use crate::feed::{Outcome, Sink};
use crate::json;
use crate::table::{Cell, Table};
use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use serde_json::Value;
use trawl_query::{Pinned, Principal};

/// Writes a row for each dataset that holds one of the names.
pub(crate) fn look_up(
    pinned: &Pinned,
    who: &Principal,
    chunks: &[ArrayRef],
    columns: &SchemaRef,
    sink: &Sink,
) -> Outcome {
    let mut table = Table::new(columns)?;
    for chunk in chunks {
        for row in 0..chunk.len() {
            sink.cancel.check()?;
            let Some(name) = text(chunk, row) else { continue };
            let counts = match pinned.domain_counts(name, who) {
                Ok(counts) => counts,
                // A name that no dataset holds, or that is no domain, has no row.
                Err(problem) if matches!(problem.status(), 400 | 404) => continue,
                Err(problem) => return Err(pinned.explain(problem).into()),
            };
            for one in counts {
                table.push([
                    Cell::Text(Some(name)),
                    Cell::Small(Some(one.dataset_id.cast_signed())),
                    Cell::Count(one.rows),
                    Cell::Count(one.distinct_urls),
                    Cell::Flag(one.distinct_exact),
                    Cell::Time(one.first_ts.map(|ts| ts.0)),
                    Cell::Time(one.last_ts.map(|ts| ts.0)),
                ])?;
            }
            if table.is_full() && !sink.push(table.take()?) {
                return Ok(());
            }
        }
    }
    if table.rows() > 0 {
        sink.push(table.take()?);
    }
    Ok(())
}

/// A domain, and the datasets that hold it.
#[pyclass(frozen, module = "trawl")]
pub struct Domain {
    /// The registrable domain, in punycode.
    #[pyo3(get)]
    pub(crate) name: String,
    pub(crate) value: Value,
}

#[pymethods]
impl Domain {
    fn __repr__(&self) -> String {
        let names: Vec<_> = self.value["datasets"].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
        format!("Domain({:?}, datasets={names:?})", self.name)
    }

    /// The datasets that hold it: a dict each, as the API's JSON has it.
    #[getter]
    fn datasets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.value["datasets"])
    }

    /// The API's JSON as a dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.value)
    }
}
