//! A lake, asked. What changes it is in `ingest.rs` and `upkeep.rs`.

mod items;

pub use items::feed;

use crate::column::texts;
use crate::diff::Diff;
use crate::domain::{Domain, look_up};
use crate::rows::Rows;
use crate::table::{Cell, millis, schema};
use crate::time::moment_if;
use crate::{error, ingest, json, locked, place, upkeep, work};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use trawl_ingest::IngestSettings;
use trawl_maintain::Compact;
use trawl_query::{Archives, DEFAULT_LIMIT, Filter, NamesQuery, Options, Page, Pinned, Principal, QueryError};
use trawl_store::{Cancel, Store, is_remote};

/// The largest body that `capture` gives as bytes.
const MAX_BODY: u64 = 1 << 30;

/// Bytes that are kept on this machine of a lake on a server.
const CACHE_BYTES: u64 = 1 << 30;

/// A lake in a directory or at `s3://bucket/prefix`. It answers from one version until `refresh` is called.
#[pyclass(frozen, module = "trawl")]
pub struct Lake {
    pub(crate) uri: String,
    pub(crate) store: Arc<dyn Store>,
    lake: trawl_query::Lake,
    pinned: Mutex<Arc<Pinned>>,
    who: Principal,
}

impl Lake {
    fn pin(&self) -> Arc<Pinned> {
        locked(&self.pinned).clone()
    }

    /// Asks without holding the interpreter. A question to a directory takes less time than a thread would.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&Pinned, &Principal) -> Result<T, QueryError> + Send,
    ) -> PyResult<T> {
        if is_remote(&self.uri) {
            return self.ask_long(py, question);
        }
        let pinned = self.pin();
        let answer = py.detach(|| question(&pinned, &self.who).map_err(|problem| pinned.explain(problem)));
        answer.map_err(|problem| error::of(&problem))
    }

    /// The same for a question that may take seconds: Ctrl-C ends it.
    fn ask_long<T: Send>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(&Pinned, &Principal) -> Result<T, QueryError> + Send,
    ) -> PyResult<T> {
        let cancel = Cancel::default();
        let pinned = self.pin().within(work::effort(&cancel));
        let answer =
            work::run(py, &cancel, || question(&pinned, &self.who).map_err(|problem| pinned.explain(problem)))?;
        answer.map_err(|problem| error::of(&problem))
    }

    /// Moves on to the newest version.
    pub(crate) fn moved_on(&self, py: Python<'_>) -> PyResult<String> {
        let newest = work::run(py, &Cancel::default(), || self.lake.pin())?.map_err(|problem| error::of(&problem))?;
        let version = newest.version().to_owned();
        *locked(&self.pinned) = newest;
        Ok(version)
    }

    pub(crate) fn dataset(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<u32> {
        if let Ok(id) = name.extract::<u32>() {
            return Ok(id);
        }
        let name: String = name.extract()?;
        self.ask(py, |pinned, who| pinned.dataset_id(&name, who))
    }
}

#[pymethods]
impl Lake {
    /// Opens a lake, or makes one where none is if `create` says so. `principals` are the names under which datasets are asked for;
    /// `None` asks as the operator, who sees all. `version` names an older one that answers, or the one that other processes read.
    #[new]
    #[pyo3(signature = (path, *, create=false, principals=None, credentials=false, cache_bytes=CACHE_BYTES, version=None))]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        create: bool,
        principals: Option<Vec<String>>,
        credentials: bool,
        cache_bytes: u64,
        version: Option<String>,
    ) -> PyResult<Self> {
        let uri = place::path(path)?;
        let who = principals.map_or_else(Principal::operator, Principal::named).with_credentials(credentials);
        let opened = work::run(py, &Cancel::default(), || {
            let store = place::store(&uri, cache_bytes)?;
            if create {
                place::make(&uri, &store)?;
            }
            let lake = trawl_query::Lake::open(store.clone(), Options::default());
            let lake = lake.map_err(|problem| error::of(&problem))?;
            let pinned = version.map_or_else(|| lake.pin(), |version| lake.pin_version(&version));
            let pinned = pinned.map_err(|problem| error::of(&problem))?;
            Ok::<_, PyErr>((store, lake, pinned))
        })?;
        let (store, lake, pinned) = opened?;
        Ok(Self { uri, store, lake, pinned: Mutex::new(pinned), who })
    }

    fn __repr__(&self) -> String {
        format!("<trawl.Lake {:?} at version {:?}>", self.uri, self.pin().version())
    }

    /// The path or address it was opened by.
    #[getter]
    fn path(&self) -> &str {
        &self.uri
    }

    /// The version that answers.
    #[getter]
    fn version(&self) -> String {
        self.pin().version().to_owned()
    }

    /// Moves on to the newest version; gives its name.
    fn refresh(&self, py: Python<'_>) -> PyResult<String> {
        self.moved_on(py)
    }

    /// The datasets: number, name, rows, domains and when each was made.
    fn datasets(&self, py: Python<'_>) -> PyResult<Rows> {
        let all = self.ask_long(py, |pinned, who| pinned.datasets(who))?;
        let columns = schema(&[
            ("dataset_id", DataType::Int32, false),
            ("name", DataType::Utf8, false),
            ("source", DataType::Utf8, true),
            ("created", millis(), false),
            ("rows", DataType::UInt64, false),
            ("domains", DataType::UInt64, false),
            ("domains_exact", DataType::Boolean, false),
        ]);
        Rows::small(&columns, |table| {
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
        let stats = self.ask_long(py, |pinned, who| pinned.stats_for(who))?;
        json::answer(py, &stats)
    }

    /// The datasets that hold a domain. A host name stands for its registrable domain.
    fn domain(&self, py: Python<'_>, name: &str) -> PyResult<Domain> {
        let answer = self.ask(py, |pinned, who| pinned.domain(name, who))?;
        let value = serde_json::to_value(&answer).map_err(|problem| error::of(&problem))?;
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
        let answer = self.ask_long(py, |pinned, who| pinned.names(&wanted, who))?;
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

    /// All rows of a dataset, domain by domain, read as they are consumed. `part=(k, n)` gives part k of n, 0 to n-1: every row
    /// is in one of them.
    #[pyo3(signature = (dataset, *, columns=None, limit=None, part=(0, 1)))]
    fn scan(
        &self,
        py: Python<'_>,
        dataset: &Bound<'_, PyAny>,
        columns: Option<Vec<String>>,
        limit: Option<u64>,
        part: (u8, u16),
    ) -> PyResult<Rows> {
        if !(1..=256).contains(&part.1) || u16::from(part.0) >= part.1 {
            return Err(error::refused(format!("part: expected (k, n) with k < n <= 256, found {part:?}")));
        }
        let dataset_id = self.dataset(py, dataset)?;
        let wanted = NamesQuery { dataset: Some(dataset_id), limit: 0, ..NamesQuery::default() };
        self.ask_long(py, |pinned, who| pinned.names(&wanted, who))?;
        let rows = self.items(dataset_id, limit, move |pinned, who, each| {
            pinned.export_part(dataset_id, part, &Filter::default(), who, each)
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
        Ok(Rows::new(columns, move |cancel| {
            let (pinned, who, chunks, columns) = (pinned.clone(), who.clone(), chunks.clone(), told.clone());
            feed(told.clone(), cancel, move |sink| look_up(&pinned, &who, &chunks, &columns, sink))
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
        let files = place::files()?;
        let body = self.ask_long(py, |pinned, who| {
            let row = pinned.capture(dataset, url, ts, who)?;
            let mut body = Vec::new();
            pinned.replay(&Archives::new(files), &row, who, &mut |replayed| {
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

    /// Reads files, or a table, into a dataset and publishes it; then this object answers from that version. Gives the report of
    /// `trawl lake ingest --json` as a dict.
    ///
    /// `sources`: a path, a pattern, an address, a list of them, or anything with `__arrow_c_stream__` (a DataFrame), which needs
    /// a `source_id`. A source that the dataset has is skipped. After Ctrl-C the lake answers as before; what had been read whole by
    /// then, `publish` makes visible.
    #[pyo3(signature = (sources, dataset, *, source_id=None, format=None, mode="append", allow_empty=false, source=None, memory_bytes=1 << 30, threads=2, zstd_level=6, temp_dir=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn ingest<'py>(
        &self,
        py: Python<'py>,
        sources: &Bound<'py, PyAny>,
        dataset: String,
        source_id: Option<String>,
        format: Option<&str>,
        mode: &str,
        allow_empty: bool,
        source: Option<String>,
        memory_bytes: usize,
        threads: usize,
        zstd_level: i32,
        temp_dir: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wanted = ingest::Wanted {
            given: ingest::Given::of(sources, source_id)?,
            dataset,
            format: format.map(str::parse).transpose().map_err(|problem: String| error::refused(problem))?,
            source,
        };
        let temp_dir = temp_dir.map(place::path).transpose()?.map_or_else(|| place::temp(&self.uri), PathBuf::from);
        let settings = IngestSettings {
            mode: ingest::mode(mode)?,
            allow_empty,
            memory_bytes,
            threads,
            zstd_level,
            ..IngestSettings::new(place::nonce()?, temp_dir)
        };
        let report = ingest::ingest(py, self, wanted, &settings)?;
        self.moved_on(py)?;
        json::to_python(py, &report)
    }

    /// Makes a version of what was ingested and not yet published, which is needed after an interruption.
    fn publish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        upkeep::publish(py, self)
    }

    /// Merges small Parquet files and index segments; with `full` all of them. Gives what was merged.
    #[pyo3(signature = (*, full=false, dataset=None, small_bytes=64 << 20, dry_run=false))]
    fn compact<'py>(
        &self,
        py: Python<'py>,
        full: bool,
        dataset: Option<&Bound<'py, PyAny>>,
        small_bytes: u64,
        dry_run: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dataset = dataset.map(|name| self.dataset(py, name)).transpose()?;
        let what = Compact { full, single: false, files: true, segments: true, dataset, small: small_bytes, dry_run };
        upkeep::compact(py, self, &what)
    }

    /// Deletes what no kept version needs. `dry_run` must be given: with True nothing is deleted and `gone` lists what would be.
    #[pyo3(signature = (*, dry_run, keep_versions=10, keep_states=100, grace_seconds=86_400.0))]
    fn gc<'py>(
        &self,
        py: Python<'py>,
        dry_run: bool,
        keep_versions: usize,
        keep_states: u64,
        grace_seconds: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        upkeep::collect(py, self, dry_run, keep_versions, keep_states, grace_seconds)
    }

    /// Checks every file and row. Gives `faults`, a list of messages, and what was not read.
    #[pyo3(signature = (*, index_only=false, max_read_bytes=None))]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        index_only: bool,
        max_read_bytes: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        upkeep::verify(py, self, index_only, max_read_bytes)
    }

    /// Puts a URL, a prefix, a domain or a dataset on the deny list: its rows are answered nowhere. Gives the entries that are new.
    #[pyo3(signature = (*, url=None, prefix=None, domain=None, dataset=None, reason=None, suffix=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn deny<'py>(
        &self,
        py: Python<'py>,
        url: Option<String>,
        prefix: Option<String>,
        domain: Option<String>,
        dataset: Option<String>,
        reason: Option<&str>,
        suffix: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let named = upkeep::named(url, prefix, domain, dataset)?;
        upkeep::deny(py, self, &named, reason, suffix)
    }

    /// Takes an entry off the deny list. Gives the entries that were on it.
    #[pyo3(signature = (*, url=None, prefix=None, domain=None, dataset=None))]
    fn allow<'py>(
        &self,
        py: Python<'py>,
        url: Option<String>,
        prefix: Option<String>,
        domain: Option<String>,
        dataset: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let named = upkeep::named(url, prefix, domain, dataset)?;
        upkeep::allow(py, self, &named)
    }

    /// The deny list.
    fn denied<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        upkeep::denied(py, self)
    }

    /// Writes files again without the rows that the deny list covers. `dry_run` must be given.
    #[pyo3(signature = (*, dry_run, dataset=None))]
    fn purge<'py>(
        &self,
        py: Python<'py>,
        dry_run: bool,
        dataset: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dataset = dataset.map(|name| self.dataset(py, name)).transpose()?;
        upkeep::purge(py, self, dataset, dry_run)
    }

    /// Drops a dataset; its files go with a later `gc`. `dry_run` must be given.
    #[pyo3(signature = (dataset, *, dry_run))]
    fn drop<'py>(&self, py: Python<'py>, dataset: &Bound<'py, PyAny>, dry_run: bool) -> PyResult<Bound<'py, PyAny>> {
        let dataset = self.dataset(py, dataset)?;
        upkeep::drop_dataset(py, self, dataset, dry_run)
    }
}
