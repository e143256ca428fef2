//! A lake, asked.

use crate::column::{text, texts};
use crate::feed::{Feed, Outcome, Sink};
use crate::rows::{Reader, Rows};
use crate::table::{Cell, Table, millis, schema};
use crate::time::moment_if;
use crate::{error, json};
use arrow_array::ArrayRef;
use arrow_schema::{DataType, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use trawl_io::RealFs;
use trawl_query::{
    Archives, Comparison, DEFAULT_LIMIT, DiffEvent, Filter, ItemTable, NamesQuery, Options, Page, Pinned, Principal,
    QueryError, Side,
};
use trawl_store::{DirStore, Store};

/// Rows of one Arrow batch.
const BATCH: usize = 8192;
/// The largest body that `capture` gives as bytes.
const MAX_BODY: u64 = 1 << 30;

/// A lake in a directory. It answers from one version until `refresh` is called.
#[pyclass(frozen, module = "trawl")]
pub struct Lake {
    uri: String,
    lake: trawl_query::Lake,
    pinned: Mutex<Arc<Pinned>>,
    who: Principal,
}

fn store(uri: &str) -> Arc<dyn Store> {
    Arc::new(DirStore::new(uri))
}

impl Lake {
    fn pin(&self) -> Arc<Pinned> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks without holding the interpreter.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        question: impl Fn(&Pinned, &Principal) -> Result<T, QueryError> + Send + Sync,
    ) -> PyResult<T> {
        let pinned = self.pin();
        let answer = py.detach(|| question(&pinned, &self.who).map_err(|problem| pinned.explain(problem)));
        answer.map_err(error::of_query)
    }

    fn dataset(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<u32> {
        if let Ok(id) = name.extract::<u32>() {
            return Ok(id);
        }
        let name: String = name.extract()?;
        self.ask(py, |pinned, who| pinned.dataset_id(&name, who))
    }

    /// Rows that `push` makes, item by item.
    fn items(
        &self,
        dataset_id: u32,
        limit: Option<u64>,
        run: impl Fn(&Pinned, &Principal, &mut Each<'_>) -> Result<(), QueryError> + Send + Sync + 'static,
    ) -> Rows {
        let (pinned, who) = (self.pin(), self.who.clone());
        let run = Arc::new(run);
        let schema = ItemTable::new().schema();
        let told = schema.clone();
        Rows::new(schema, move || {
            let (pinned, who, run) = (pinned.clone(), who.clone(), run.clone());
            feed(told.clone(), move |sink| {
                let (mut table, mut left, mut failed) = (ItemTable::new(), limit.unwrap_or(u64::MAX), None);
                let ended = run(&pinned, &who, &mut |domain, item| {
                    if left == 0 {
                        return ControlFlow::Break(());
                    }
                    left -= 1;
                    table.push(dataset_id, domain, &item);
                    if table.rows() < BATCH {
                        return ControlFlow::Continue(());
                    }
                    match table.take().map(|batch| sink.push(batch)) {
                        Ok(true) => ControlFlow::Continue(()),
                        Ok(false) => ControlFlow::Break(()),
                        Err(problem) => {
                            failed = Some(problem);
                            ControlFlow::Break(())
                        }
                    }
                });
                if let Some(problem) = failed {
                    return Err(problem.into());
                }
                ended.map_err(|problem| pinned.explain(problem))?;
                if table.rows() > 0 {
                    sink.push(table.take()?);
                }
                Ok(())
            })
        })
    }
}

type Each<'a> = dyn FnMut(&str, trawl_query::UrlItem) -> ControlFlow<()> + 'a;

fn feed(schema: SchemaRef, make: impl FnOnce(&Sink) -> Outcome + Send + 'static) -> PyResult<Reader> {
    let feed = Feed::start(schema, make).map_err(|problem| error::of_any(&problem))?;
    Ok(Box::new(feed))
}

#[pymethods]
impl Lake {
    /// Opens a lake. `principals` are the names under which datasets are asked for; `None` asks as the operator, who sees all.
    #[new]
    #[pyo3(signature = (path, *, principals=None, credentials=false))]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        principals: Option<Vec<String>>,
        credentials: bool,
    ) -> PyResult<Self> {
        let uri: String = py.import("os")?.call_method1("fspath", (path,))?.extract()?;
        let who = principals.map_or_else(Principal::operator, Principal::named).with_credentials(credentials);
        let opened = py.detach(|| {
            let lake = trawl_query::Lake::open(store(&uri), Options::default())?;
            let pinned = lake.pin()?;
            Ok((lake, pinned))
        });
        let (lake, pinned) = opened.map_err(error::of_query)?;
        Ok(Self { uri, lake, pinned: Mutex::new(pinned), who })
    }

    fn __repr__(&self) -> String {
        format!("<trawl.Lake {:?} at version {:?}>", self.uri, self.pin().version())
    }

    /// The version that answers.
    #[getter]
    fn version(&self) -> String {
        self.pin().version().to_owned()
    }

    /// Moves on to the newest version; gives its name.
    fn refresh(&self, py: Python<'_>) -> PyResult<String> {
        let newest = py.detach(|| self.lake.pin()).map_err(error::of_query)?;
        let version = newest.version().to_owned();
        *self.pinned.lock().unwrap_or_else(PoisonError::into_inner) = newest;
        Ok(version)
    }

    /// The datasets: number, name, rows, domains and when each was made.
    fn datasets(&self, py: Python<'_>) -> PyResult<Rows> {
        let all = self.ask(py, |pinned, who| pinned.datasets(who))?;
        let columns = schema(&[
            ("dataset_id", DataType::Int32, false),
            ("name", DataType::Utf8, false),
            ("source", DataType::Utf8, true),
            ("created", millis(), false),
            ("rows", DataType::UInt64, false),
            ("domains", DataType::UInt64, false),
            ("domains_exact", DataType::Boolean, false),
        ]);
        small(&columns, |table| {
            for one in &all {
                table.push([
                    Cell::Small(Some(one.dataset_id.cast_signed())),
                    Cell::Text(Some(&one.name)),
                    Cell::Text(one.source.as_deref()),
                    Cell::Time(Some(one.created.0)),
                    Cell::Count(one.rows),
                    Cell::Count(one.domains),
                    Cell::Flag(one.domains_exact),
                ])?;
            }
            Ok(())
        })
    }

    /// What the whole lake holds, as the API's `/v1/stats`.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats = self.ask(py, |pinned, who| pinned.stats_for(who))?;
        json::answer(py, &stats)
    }

    /// The datasets that hold a domain. A host name stands for its registrable domain.
    fn domain(&self, py: Python<'_>, name: &str) -> PyResult<Domain> {
        let answer = self.ask(py, |pinned, who| pinned.domain(name, who))?;
        let value = serde_json::to_value(&answer).map_err(|problem| error::of_any(&problem))?;
        Ok(Domain { name: answer.domain, value })
    }

    /// Domains by prefix, suffix or dataset: a page of names, as the API's `/v1/domains`.
    #[pyo3(signature = (prefix="", *, suffix="", dataset=None, after=None, limit=1000))]
    fn domains<'py>(
        &self,
        py: Python<'py>,
        prefix: &str,
        suffix: &str,
        dataset: Option<&Bound<'py, PyAny>>,
        after: Option<&str>,
        limit: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dataset = dataset.map(|name| self.dataset(py, name)).transpose()?;
        let wanted = NamesQuery { prefix, suffix, after, dataset, limit };
        let answer = self.ask(py, |pinned, who| pinned.names(&wanted, who))?;
        json::answer(py, &answer)
    }

    /// The URLs of a domain in a dataset, as `Rows` that are read as they are consumed.
    #[pyo3(signature = (domain, dataset, *, columns=None, host=None, path_prefix=None, since=None, until=None, status=None, error_class=None, limit=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn urls(
        &self,
        py: Python<'_>,
        domain: String,
        dataset: &Bound<'_, PyAny>,
        columns: Option<Vec<String>>,
        host: Option<String>,
        path_prefix: Option<String>,
        since: Option<&Bound<'_, PyAny>>,
        until: Option<&Bound<'_, PyAny>>,
        status: Option<u16>,
        error_class: Option<String>,
        limit: Option<u64>,
    ) -> PyResult<Rows> {
        let dataset_id = self.dataset(py, dataset)?;
        let (from, until) = (moment_if(since)?, moment_if(until)?);
        let filter = Filter { host, path_prefix, from, until, status, error_class };
        // Asked once for nothing: what is not there is an error now, not in the middle of a table.
        self.ask(py, |pinned, who| pinned.urls(&domain, dataset_id, &Page::at(0, 0), &filter, who))?;
        let rows = self.items(dataset_id, limit, move |pinned, who, each| {
            pinned.export_domain(&domain, dataset_id, &filter, who, each)
        });
        rows.select(columns.as_deref())
    }

    /// One page of the same, as the API's JSON: by offset, or from an earlier answer's `next_cursor`.
    #[pyo3(signature = (domain, dataset, *, offset=0, limit=DEFAULT_LIMIT, cursor=None, host=None, path_prefix=None, since=None, until=None, status=None, error_class=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn page<'py>(
        &self,
        py: Python<'py>,
        domain: &str,
        dataset: &Bound<'py, PyAny>,
        offset: u64,
        limit: u32,
        cursor: Option<String>,
        host: Option<String>,
        path_prefix: Option<String>,
        since: Option<&Bound<'py, PyAny>>,
        until: Option<&Bound<'py, PyAny>>,
        status: Option<u16>,
        error_class: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dataset_id = self.dataset(py, dataset)?;
        let (from, until) = (moment_if(since)?, moment_if(until)?);
        let filter = Filter { host, path_prefix, from, until, status, error_class };
        let page = Page { offset, limit, cursor };
        let answer = self.ask(py, |pinned, who| pinned.urls(domain, dataset_id, &page, &filter, who))?;
        json::answer(py, &answer)
    }

    /// Every row with a URL, across datasets, as the API's `/v1/url`.
    #[pyo3(signature = (url, *, limit=DEFAULT_LIMIT))]
    fn url<'py>(&self, py: Python<'py>, url: &str, limit: u32) -> PyResult<Bound<'py, PyAny>> {
        let answer = self.ask(py, |pinned, who| pinned.url(url, limit, who))?;
        json::answer(py, &answer)
    }

    /// All rows of a dataset, domain by domain, read as they are consumed.
    #[pyo3(signature = (dataset, *, columns=None, limit=None))]
    fn scan(
        &self,
        py: Python<'_>,
        dataset: &Bound<'_, PyAny>,
        columns: Option<Vec<String>>,
        limit: Option<u64>,
    ) -> PyResult<Rows> {
        let dataset_id = self.dataset(py, dataset)?;
        let wanted = NamesQuery { dataset: Some(dataset_id), limit: 0, ..NamesQuery::default() };
        self.ask(py, |pinned, who| pinned.names(&wanted, who))?;
        let rows = self.items(dataset_id, limit, move |pinned, who, each| {
            pinned.export_dataset(dataset_id, &Filter::default(), who, each)
        });
        rows.select(columns.as_deref())
    }

    /// Which datasets hold each of many domains: a column of names in, a row for each name and dataset out.
    fn lookup(&self, names: &Bound<'_, PyAny>) -> PyResult<Rows> {
        let chunks = Arc::new(texts(names)?);
        let columns = schema(&[
            ("name", DataType::Utf8, false),
            ("dataset_id", DataType::Int32, false),
            ("rows", DataType::UInt64, false),
            ("distinct_urls", DataType::UInt64, false),
            ("distinct_exact", DataType::Boolean, false),
            ("first_ts", millis(), true),
            ("last_ts", millis(), true),
        ]);
        let (pinned, who, told) = (self.pin(), self.who.clone(), columns.clone());
        Ok(Rows::new(columns, move || {
            let (pinned, who, chunks, columns) = (pinned.clone(), who.clone(), chunks.clone(), told.clone());
            feed(told.clone(), move |sink| look_up(&pinned, &who, &chunks, &columns, sink))
        }))
    }

    /// What two datasets have in common, and what only one of them has.
    #[pyo3(signature = (a, b, *, domain=None))]
    fn diff(
        &self,
        py: Python<'_>,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        domain: Option<String>,
    ) -> PyResult<Diff> {
        let (a, b) = (self.dataset(py, a)?, self.dataset(py, b)?);
        Ok(Diff { pinned: self.pin(), who: self.who.clone(), a, b, domain })
    }

    /// The stored body of a capture: that of the URL whose time is nearest to `ts`, the newest without one. A revisit gives the
    /// body it refers to.
    #[pyo3(signature = (url, dataset=None, *, ts=None))]
    fn capture<'py>(
        &self,
        py: Python<'py>,
        url: &str,
        dataset: Option<&Bound<'py, PyAny>>,
        ts: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let dataset = dataset.map(|name| self.dataset(py, name)).transpose()?;
        let ts = moment_if(ts)?;
        let body = self.ask(py, |pinned, who| {
            let row = pinned.capture(dataset, url, ts, who)?;
            let mut body = Vec::new();
            pinned.replay(&Archives::new(Arc::new(RealFs)), &row, who, &mut |replayed| {
                let read = replayed.body.take(MAX_BODY + 1).read_to_end(&mut body);
                match read {
                    Ok(_) if body.len() as u64 <= MAX_BODY => Ok(()),
                    Ok(_) => {
                        Err(QueryError::BadRequest { why: "the body has more than 1 GiB: read it from its archive" })
                    }
                    Err(problem) => Err(QueryError::Lake { source: Box::new(problem) }),
                }
            })?;
            Ok(body)
        })?;
        Ok(PyBytes::new(py, &body))
    }
}

/// A table that is small enough to be made at once.
fn small(columns: &SchemaRef, fill: impl FnOnce(&mut Table) -> Result<(), arrow_schema::ArrowError>) -> PyResult<Rows> {
    let made = Table::new(columns).and_then(|mut table| {
        fill(&mut table)?;
        table.take()
    });
    let batch = made.map_err(|problem| error::of_any(&problem))?;
    let told = columns.clone();
    Ok(Rows::new(columns.clone(), move || {
        Ok(Box::new(arrow_array::RecordBatchIterator::new([Ok(batch.clone())], told.clone())))
    }))
}

fn look_up(pinned: &Pinned, who: &Principal, chunks: &[ArrayRef], columns: &SchemaRef, sink: &Sink) -> Outcome {
    let mut table = Table::new(columns)?;
    for chunk in chunks {
        for row in 0..chunk.len() {
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
            if table.rows() >= BATCH && !sink.push(table.take()?) {
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
    name: String,
    value: Value,
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

/// Two datasets side by side. Each method compares anew.
#[pyclass(frozen, module = "trawl")]
pub struct Diff {
    pinned: Arc<Pinned>,
    who: Principal,
    a: u32,
    b: u32,
    domain: Option<String>,
}

fn side(side: Side) -> &'static str {
    match side {
        Side::A => "a",
        Side::B => "b",
        Side::Both => "both",
    }
}

impl Diff {
    fn rows(&self, columns: &[(&str, DataType, bool)], urls: bool, both: bool) -> Rows {
        let columns = schema(columns);
        let (pinned, who, a, b, domain) = (self.pinned.clone(), self.who.clone(), self.a, self.b, self.domain.clone());
        let told = columns.clone();
        Rows::new(columns, move || {
            let (pinned, who, domain, columns) = (pinned.clone(), who.clone(), domain.clone(), told.clone());
            feed(told.clone(), move |sink| {
                let mut table = Table::new(&columns)?;
                let mut failed = None;
                let what = Comparison { a, b, domain: domain.as_deref(), urls: true };
                pinned
                    .diff(&what, &who, &mut |event| {
                        let pushed = match event {
                            DiffEvent::Url { domain, side: found, url } if urls && (both || found != Side::Both) => {
                                let cells = [domain, side(found), url];
                                table.push(cells.map(|text| Cell::Text(Some(text))))
                            }
                            DiffEvent::Domain(diff) if !urls => {
                                let tally = diff.urls.unwrap_or_default();
                                let counts = [diff.rows_a, diff.rows_b, tally.only_a, tally.only_b, tally.both];
                                let names = [diff.domain.as_str(), side(diff.side)].map(|text| Cell::Text(Some(text)));
                                table.push(names.into_iter().chain(counts.map(Cell::Count)))
                            }
                            _ => Ok(()),
                        };
                        let made = pushed.and_then(|()| match table.rows() {
                            0..BATCH => Ok(true),
                            _ => Ok(sink.push(table.take()?)),
                        });
                        match made {
                            Ok(true) => ControlFlow::Continue(()),
                            Ok(false) => ControlFlow::Break(()),
                            Err(problem) => {
                                failed = Some(problem);
                                ControlFlow::Break(())
                            }
                        }
                    })
                    .map_err(|problem| pinned.explain(problem))?;
                if let Some(problem) = failed {
                    return Err(problem.into());
                }
                if table.rows() > 0 {
                    sink.push(table.take()?);
                }
                Ok(())
            })
        })
    }
}

#[pymethods]
impl Diff {
    /// URLs that only one dataset has (`in` is `a` or `b`); with `both=True` also those in both.
    #[pyo3(signature = (*, both=false))]
    fn urls(&self, both: bool) -> Rows {
        let columns =
            [("domain", DataType::Utf8, false), ("in", DataType::Utf8, false), ("url", DataType::Utf8, false)];
        self.rows(&columns, true, both)
    }

    /// Every domain of either dataset, with its rows and URLs.
    fn domains(&self) -> Rows {
        let count = |name| (name, DataType::UInt64, false);
        let text = |name| (name, DataType::Utf8, false);
        let columns = [
            text("domain"),
            text("in"),
            count("rows_a"),
            count("rows_b"),
            count("urls_only_a"),
            count("urls_only_b"),
            count("urls_both"),
        ];
        self.rows(&columns, false, true)
    }

    /// How many domains and URLs are where, as `trawl query diff --json` says at its end.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let what = Comparison { a: self.a, b: self.b, domain: self.domain.as_deref(), urls: true };
        let found = py.detach(|| self.pinned.diff(&what, &self.who, &mut |_| ControlFlow::Continue(())));
        let found = found.map_err(|problem| error::of_query(self.pinned.explain(problem)))?;
        json::answer(py, &found)
    }
}
