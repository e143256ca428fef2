//! URLs: one at a time, or a column of them.

use crate::column::{Column, text, texts};
use crate::{error, work};
use arrow_array::builder::{ArrayBuilder, LargeStringBuilder, UInt64Builder};
use arrow_array::{Array, ArrayRef};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use trawl_store::Cancel;
use trawl_url::key::{self, HostGroup, Policy};
use trawl_url::{LakeUrl, Reject, SuffixList, domain_id, domain_prefix};

/// One text or a column: texts of a column that `of` refuses become null, a single one is an error.
fn each<'py>(
    value: &Bound<'py, PyAny>,
    of: impl Fn(&str) -> Result<String, Reject> + Sync + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if let Ok(one) = value.cast::<PyString>() {
        let one = one.to_str()?;
        return of(one).map_err(|reject| error::refused(reject.to_string()))?.into_bound_py_any(py);
    }
    let chunks = texts(value)?;
    let column = over(py, &chunks, LargeStringBuilder::new(), |out: &mut LargeStringBuilder, url| {
        out.append_option(url.and_then(|url| of(url).ok()));
    })?;
    column.into_bound_py_any(py)
}

/// Rows after which a long column looks whether it is still wanted.
const LOOK_EVERY: usize = 4096;

/// Calls `each` for the texts of a column, without the interpreter.
fn over<B: ArrayBuilder>(
    py: Python<'_>,
    chunks: &[ArrayRef],
    mut out: B,
    each: impl Fn(&mut B, Option<&str>) + Sync + Send,
) -> PyResult<Column> {
    let cancel = Cancel::default();
    let column = work::run(py, &cancel, || {
        for chunk in chunks {
            for row in 0..chunk.len() {
                if row % LOOK_EVERY == 0 && cancel.check().is_err() {
                    break;
                }
                each(&mut out, text(chunk, row));
            }
        }
        out.finish()
    })?;
    Ok(Column(column))
}

fn lake(url: &str) -> Result<LakeUrl, Reject> {
    LakeUrl::parse(url, SuffixList::builtin())
}

/// The lake form of a URL: the spelling under which a lake stores and compares it.
///
/// A str gives a str, or raises `Refused`. A column gives a `Column`, null where a text is not a URL.
#[pyfunction]
#[pyo3(name = "url_normalise")]
pub fn url_normalise<'py>(url: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    each(url, |url| Ok(lake(url)?.as_str().to_owned()))
}

/// The registrable domain of a URL, in punycode.
#[pyfunction]
pub fn url_domain<'py>(url: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    each(url, |url| Ok(lake(url)?.domain().to_owned()))
}

/// The SURT of a URL, by which rows are sorted.
#[pyfunction]
pub fn url_surt<'py>(url: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    each(url, |url| Ok(lake(url)?.surt()))
}

/// The 128-bit URL key of a `.meguri` file, as 32 hex digits: 16 of the host, 16 of the path.
#[pyfunction]
pub fn url_key<'py>(url: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    each(url, |url| {
        let (_, key) = key_of(url, &lake(url)?)?;
        Ok(format!("{:016x}{:016x}", key.host, key.path))
    })
}

/// The url_id of a URL, as it is written: xxh3_64 of its bytes. An int, or a column of them.
#[pyfunction]
pub fn url_id<'py>(url: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = url.py();
    if let Ok(one) = url.cast::<PyString>() {
        return trawl_url::url_id(one.to_str()?.as_bytes()).into_bound_py_any(py);
    }
    let chunks = texts(url)?;
    let column = over(py, &chunks, UInt64Builder::new(), |out: &mut UInt64Builder, url| {
        out.append_option(url.map(|url| trawl_url::url_id(url.as_bytes())));
    })?;
    column.into_bound_py_any(py)
}

/// Everything `trawl url --json` says of a URL: a dict with `lake` and `key`.
#[pyfunction]
pub fn url_parse<'py>(py: Python<'py>, url: &str) -> PyResult<Bound<'py, PyDict>> {
    let parsed = lake(url).map_err(|reject| error::refused(reject.to_string()))?;
    let (canonical, url_key) = key_of(url, &parsed).map_err(|reject| error::refused(reject.to_string()))?;
    let id = domain_id(parsed.domain());
    let (all, forms, keys) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
    forms.set_item("url", parsed.as_str())?;
    forms.set_item("scheme", parsed.scheme())?;
    forms.set_item("host", parsed.host())?;
    forms.set_item("port", parsed.port())?;
    forms.set_item("path_query", parsed.path_query())?;
    forms.set_item("domain", parsed.domain())?;
    forms.set_item("surt", parsed.surt())?;
    forms.set_item("url_id", format!("{:016x}", trawl_url::url_id(url.as_bytes())))?;
    forms.set_item("domain_id", format!("{id:016x}"))?;
    forms.set_item("domain_prefix", domain_prefix(id, 2))?;
    keys.set_item("url", canonical)?;
    keys.set_item("host_key", format!("{:016x}", url_key.host))?;
    keys.set_item("path_key", format!("{:016x}", url_key.path))?;
    all.set_item("input", url)?;
    all.set_item("lake", forms)?;
    all.set_item("key", keys)?;
    Ok(all)
}

/// The key form and its key; a URL without a scheme is http to the lake, while the key form takes absolute URLs only.
fn key_of(url: &str, parsed: &LakeUrl) -> Result<(String, key::UrlKey), Reject> {
    let policy = Policy::default();
    let absolute = key::canonical(url.as_bytes(), None, &policy);
    let canonical = absolute.or_else(|_| key::canonical(parsed.as_str().as_bytes(), None, &policy))?;
    let key = key::of(&canonical, HostGroup::Registrable, SuffixList::builtin());
    Ok((canonical, key))
}
