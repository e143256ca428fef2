//! Captures of any container: one after another, one by its place, or as a table.

use crate::feed::{Feed, Outcome, Sink};
use crate::rows::Rows;
use crate::table::{Cell, Table, millis, schema};
use crate::{error, locked, place, work};
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use trawl_archive::{Found, Registry};
use trawl_http::{Head, decode_content};
use trawl_io::Fs;
use trawl_model::{
    Advice, Body, CaptureFacts, Digest, DoorError, Entry, Failure, Message, Outcome as Came, Pick, Place, Revisit,
    Truncated, UnixMillis,
};
use trawl_store::Cancel;

/// Captures read ahead of the one that Python looks at.
const AHEAD: usize = 16;
/// A body is kept in memory; one that is larger is left out unless asked for.
const MAX_BODY: u64 = 64 << 20;

/// One capture: a response, a revisit or a failed fetch.
#[pyclass(frozen, module = "trawl")]
pub struct Capture {
    /// The URL as it was fetched.
    #[pyo3(get)]
    url: String,
    /// When the fetch began, RFC 3339 in UTC.
    #[pyo3(get)]
    ts: String,
    /// `response`, `revisit` or `failure`.
    #[pyo3(get)]
    kind: &'static str,
    /// HTTP status, if a response came.
    #[pyo3(get)]
    status: Option<u16>,
    /// Digest of the stored body, if the container has it: `sha1:…`.
    #[pyo3(get)]
    digest: Option<String>,
    /// Why the stored body is shorter than what the server had, if it is: `length`, `time`, `disconnect` or `unspecified`.
    #[pyo3(get)]
    truncated: Option<&'static str>,
    /// Why the fetch failed: a class such as `dns_nxdomain`.
    #[pyo3(get)]
    error: Option<String>,
    /// The file that holds it.
    #[pyo3(get)]
    file: String,
    /// Where in the file it begins.
    #[pyo3(get)]
    offset: u64,
    /// Its stored bytes; 0 where unknown.
    #[pyo3(get)]
    length: u64,
    started_at: UnixMillis,
    request: Option<(Bytes, Bytes)>,
    outcome: Kept,
    facts: CaptureFacts,
}

/// What came back, in memory.
enum Kept {
    /// A response; of a body that is larger than was asked for only the length.
    Response {
        head: Bytes,
        body: Result<Bytes, u64>,
        payload_digest: Option<Digest>,
        truncated: Option<Truncated>,
    },
    Revisit(Revisit),
    Failed(Failure),
}

impl Capture {
    fn head_bytes(&self) -> &Bytes {
        static NONE: Bytes = Bytes::new();
        match &self.outcome {
            Kept::Response { head, .. } | Kept::Revisit(Revisit { head, .. }) => head,
            Kept::Failed(_) => &NONE,
        }
    }

    fn stored(&self) -> PyResult<Bytes> {
        match &self.outcome {
            Kept::Response { body: Ok(bytes), .. } => Ok(bytes.clone()),
            Kept::Response { body: Err(length), .. } => Err(error::refused(format!(
                "the body of {} has {length} bytes; read it with a larger max_body",
                self.url
            ))),
            _ => Err(error::not_found(format!("a {} has no body of its own", self.kind))),
        }
    }

    /// The capture as archives take it.
    pub(crate) fn to_write(&self) -> PyResult<trawl_model::Capture<'static>> {
        let message = |head: &Bytes, body: Bytes| Message { head: head.clone(), body: Body::Memory(body) };
        let outcome = match &self.outcome {
            Kept::Response { head, payload_digest, truncated, .. } => Came::Response {
                message: message(head, self.stored()?),
                payload_digest: payload_digest.clone(),
                truncated: *truncated,
            },
            Kept::Revisit(revisit) => Came::Revisit(revisit.clone()),
            Kept::Failed(failure) => Came::Failed(failure.clone()),
        };
        Ok(trawl_model::Capture {
            url: self.url.clone(),
            started_at: self.started_at,
            request: self.request.as_ref().map(|(head, body)| message(head, body.clone())),
            outcome,
            facts: self.facts.clone(),
        })
    }
}

#[pymethods]
impl Capture {
    fn __repr__(&self) -> String {
        format!(
            "<trawl.Capture {} {} {}>",
            self.ts,
            self.status.map_or_else(|| self.kind.into(), |s| s.to_string()),
            self.url
        )
    }

    /// The header fields of the response, in order: pairs of name and value.
    #[getter]
    fn headers(&self) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
        Head::new(self.head_bytes()).fields().map(|field| (text(field.name), text(&field.value))).collect()
    }

    /// The head of the response as it is stored.
    #[getter]
    fn head<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.head_bytes())
    }

    /// The media type as served.
    #[getter]
    fn content_type(&self) -> Option<String> {
        Head::new(self.head_bytes()).text("content-type")
    }

    /// The body: as it is stored (content codings as received), or decoded.
    #[pyo3(signature = (*, decode=false))]
    fn body<'py>(&self, py: Python<'py>, decode: bool) -> PyResult<Bound<'py, PyBytes>> {
        let stored = self.stored()?;
        if !decode {
            return Ok(PyBytes::new(py, &stored));
        }
        let codings = Head::new(self.head_bytes()).known_codings();
        let decoded = py.detach(|| {
            let mut out = Vec::new();
            let mut reader = decode_content(&*stored, &codings, MAX_BODY)?;
            std::io::Read::read_to_end(&mut reader, &mut out).map(|_| out)
        });
        Ok(PyBytes::new(
            py,
            &decoded.map_err(|problem| error::corrupt(format!("the body of {}: {problem}", self.url)))?,
        ))
    }
}

/// What comes through the channel; `None` is the end. A thread that panics just goes away, and its captures must not look complete.
type Fed = Option<Result<Capture, DoorError>>;

/// Captures in the order they are stored. Damage is passed over and counted.
#[pyclass(frozen, module = "trawl")]
pub struct Captures {
    /// `None` after the end.
    captures: Mutex<Option<Receiver<Fed>>>,
    damage: Mutex<Vec<String>>,
}

impl Captures {
    fn fed(&self) -> Result<Fed, RecvTimeoutError> {
        let mut captures = locked(&self.captures);
        let Some(receiver) = &*captures else { return Ok(None) };
        let fed = receiver.recv_timeout(work::LOOK_EVERY);
        let goes_on = match &fed {
            Ok(Some(Ok(_))) | Err(RecvTimeoutError::Timeout) => true,
            Ok(Some(Err(problem))) => problem.advice == Advice::Skip,
            Ok(None) | Err(RecvTimeoutError::Disconnected) => false,
        };
        if !goes_on {
            *captures = None;
        }
        fed
    }
}

#[pymethods]
impl Captures {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Capture>> {
        loop {
            match py.detach(|| self.fed()) {
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(error::other("the thread that reads these captures ended before their end"));
                }
                Ok(None) => return Ok(None),
                Ok(Some(Ok(capture))) => return Ok(Some(capture)),
                Ok(Some(Err(problem))) if problem.advice == Advice::Skip => {
                    locked(&self.damage).push(problem.to_string());
                }
                Ok(Some(Err(problem))) => return Err(error::of(&problem)),
            }
        }
    }

    /// What could not be read so far: a message each.
    #[getter]
    fn damage(&self) -> Vec<String> {
        locked(&self.damage).clone()
    }
}

/// The archives of a path. An index beside them has nothing to add, and by itself it has no captures to read.
fn archives(fs: &Arc<dyn Fs>, path: &Path) -> Result<Vec<Found>, DoorError> {
    let (indexes, archives): (Vec<_>, Vec<_>) =
        Registry::default().files(fs, path)?.into_iter().partition(Found::is_index);
    match indexes.first() {
        Some(index) if archives.is_empty() => {
            let message = format!("{}: expected an archive, found only an index of captures", index.path.display());
            Err(DoorError::new(Advice::Stop, message))
        }
        _ => Ok(archives),
    }
}

fn path_of(path: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    place::path(path).map(PathBuf::from)
}

/// Reads the captures of an archive: WARC, ARC, WACZ, a seqdb container, a Nutch segment, or a directory of them.
///
/// Bodies of more than `max_body` bytes are not kept.
#[pyfunction]
#[pyo3(signature = (path, *, max_body=MAX_BODY))]
pub fn archive_read(py: Python<'_>, path: &Bound<'_, PyAny>, max_body: u64) -> PyResult<Captures> {
    let path = path_of(path)?;
    let fs = place::files()?;
    let found = work::run(py, &Cancel::default(), || archives(&fs, &path))?;
    let found = found.map_err(|problem| error::of(&problem))?;
    let (send, captures) = sync_channel(AHEAD);
    let work = move || {
        for archive in &found {
            let read = archive.open(&fs).and_then(|archive| {
                let Some(mut source) = archive.captures(Pick::All)? else { return Ok(true) };
                loop {
                    let next = match source.next_entry() {
                        Ok(None) => return Ok(true),
                        Ok(Some((Entry::Other(_), _))) => continue,
                        Ok(Some((Entry::Capture(capture), place))) => keep(*capture, &place, max_body),
                        Err(problem) if problem.advice == Advice::Skip => Err(problem),
                        Err(problem) => return Err(problem),
                    };
                    if send.send(Some(next)).is_err() {
                        return Ok(false);
                    }
                }
            });
            match read {
                Ok(true) => {}
                Ok(false) => return,
                // One archive that cannot be read ends the walk: a loop over captures must not pass over a whole file.
                Err(problem) => {
                    let _ = send.send(Some(Err(DoorError { advice: Advice::Stop, ..problem })));
                    return;
                }
            }
        }
        let _ = send.send(None);
    };
    std::thread::Builder::new().name("trawl captures".into()).spawn(work).map_err(|problem| error::of(&problem))?;
    Ok(Captures { captures: Mutex::new(Some(captures)), damage: Mutex::default() })
}

/// The capture at an offset of an archive file, as an index or a lake names it.
#[pyfunction]
#[pyo3(signature = (path, offset, *, max_body=MAX_BODY))]
pub fn archive_at(py: Python<'_>, path: &Bound<'_, PyAny>, offset: u64, max_body: u64) -> PyResult<Capture> {
    let path = path_of(path)?;
    let fs = place::files()?;
    let found = py.detach(|| one_at(&fs, &path, offset, max_body));
    match found.map_err(|problem| error::of(&problem))? {
        Some(capture) => Ok(capture),
        None => {
            let message = format!("{}: there is no capture at offset {offset}", path.display());
            Err(error::not_found(message))
        }
    }
}

fn one_at(fs: &Arc<dyn Fs>, path: &Path, offset: u64, max_body: u64) -> Result<Option<Capture>, DoorError> {
    let Some(format) = Registry::default().detect(fs, path)? else {
        return Err(DoorError::new(Advice::Stop, format!("{} is not an archive", path.display())));
    };
    let archive = Found { path: path.to_owned(), format }.open(fs)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let place = Place::new(&*name, offset, 0);
    let Some(mut source) = archive.captures(Pick::At(&place))? else { return Ok(None) };
    loop {
        match source.next_entry()? {
            None => return Ok(None),
            Some((Entry::Capture(capture), at)) if at.offset == offset => {
                return keep(*capture, &at, max_body).map(Some);
            }
            Some((_, at)) if at.offset > offset => return Ok(None),
            Some(_) => {}
        }
    }
}

fn keep(capture: trawl_model::Capture<'_>, place: &Place, max_body: u64) -> Result<Capture, DoorError> {
    let trawl_model::Capture { url, started_at, request, outcome, facts } = capture;
    let request = match request {
        Some(mut message) => Some((message.head.clone(), message.body.read_to_bytes(max_body)?)),
        None => None,
    };
    let (mut digest, mut cut, mut failed) = (None, None, None);
    let (kind, outcome) = match outcome {
        Came::Response { message: Message { head, mut body }, payload_digest, truncated } => {
            digest = payload_digest.as_ref().map(ToString::to_string);
            cut = truncated.map(Truncated::as_str);
            let body = match body.len_bytes() {
                length if length > max_body => Err(length),
                _ => Ok(body.read_to_bytes(max_body)?),
            };
            ("response", Kept::Response { head, body, payload_digest, truncated })
        }
        Came::Revisit(revisit) => {
            digest = revisit.payload_digest.as_ref().map(ToString::to_string);
            ("revisit", Kept::Revisit(revisit))
        }
        Came::Failed(failure) => {
            failed = Some(failure.class.to_string());
            ("failure", Kept::Failed(failure))
        }
    };
    let mut kept = Capture {
        url,
        ts: started_at.to_string(),
        kind,
        status: None,
        digest,
        truncated: cut,
        error: failed,
        file: place.file.to_string(),
        offset: place.offset,
        length: place.length,
        started_at,
        request,
        outcome,
        facts,
    };
    kept.status = Head::new(kept.head_bytes()).status();
    Ok(kept)
}

/// The captures of an archive as a table: URL, time, status, media type, digest, length and place; no bodies.
#[pyfunction]
#[pyo3(signature = (path, *, columns=None))]
pub fn archive_captures(path: &Bound<'_, PyAny>, columns: Option<Vec<String>>) -> PyResult<Rows> {
    let path = path_of(path)?;
    let long = |name| (name, DataType::Int64, true);
    let text = |name| (name, DataType::Utf8, true);
    let all = schema(&[
        ("url", DataType::Utf8, false),
        ("ts", millis(), false),
        ("kind", DataType::Utf8, false),
        ("status", DataType::Int32, true),
        text("content_type"),
        text("digest"),
        long("body_length"),
        text("error"),
        text("file"),
        long("offset"),
        long("length"),
    ]);
    let told = all.clone();
    let rows = Rows::new(all, move |cancel| {
        let (fs, path, columns) = (place::files()?, path.clone(), told.clone());
        let feed = Feed::start(told.clone(), cancel, move |sink| tabulate(&fs, &path, &columns, sink));
        Ok(Box::new(feed.map_err(|problem| error::of(&problem))?))
    });
    rows.select(columns.as_deref())
}

fn tabulate(fs: &Arc<dyn Fs>, path: &Path, columns: &SchemaRef, sink: &Sink) -> Outcome {
    let mut table = Table::new(columns)?;
    for found in archives(fs, path)? {
        let archive = found.open(fs)?;
        let Some(mut source) = archive.captures(Pick::All)? else { continue };
        loop {
            sink.cancel.check()?;
            let (capture, place) = match source.next_entry()? {
                None => break,
                Some((Entry::Other(_), _)) => continue,
                Some((Entry::Capture(capture), place)) => (capture, place),
            };
            let (kind, head, digest, length, failed) = match &capture.outcome {
                Came::Response { message, payload_digest, .. } => {
                    ("response", message.head.clone(), payload_digest.as_ref(), Some(message.body.len_bytes()), None)
                }
                Came::Revisit(revisit) => {
                    ("revisit", revisit.head.clone(), revisit.payload_digest.as_ref(), None, None)
                }
                Came::Failed(failure) => ("failure", Bytes::new(), None, None, Some(failure.class.as_str())),
            };
            let head = Head::new(&head);
            let long = |n: u64| i64::try_from(n).map(Some).map_err(|_| "a length past 2^63");
            table.push([
                Cell::Text(Some(&capture.url)),
                Cell::Time(Some(capture.started_at.0)),
                Cell::Text(Some(kind)),
                Cell::Small(head.status().map(i32::from)),
                Cell::Text(head.text("content-type").as_deref()),
                Cell::Text(digest.map(ToString::to_string).as_deref()),
                Cell::Long(length.map_or(Ok(None), long)?),
                Cell::Text(failed),
                Cell::Text(Some(&place.file)),
                Cell::Long(long(place.offset)?),
                Cell::Long(long(place.length)?),
            ])?;
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
