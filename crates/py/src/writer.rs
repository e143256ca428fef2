//! Archives written: any container that can be made, by the ending of its name.

use crate::archive::Capture;
use crate::place::{self, now};
use crate::{error, locked, time, upkeep};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use trawl_archive::{About, Creation, Registry, Target};
use trawl_io::{Fs, RealFs};
use trawl_model::{Body, CaptureFacts, CaptureSink, Clock, Message, Outcome};

/// Writes captures into a new archive. Use it in a `with` block: the archive appears when the block ends without an error.
#[pyclass(frozen, module = "trawl")]
pub struct Writer {
    path: PathBuf,
    sink: Mutex<Option<Box<dyn CaptureSink>>>,
}

impl Writer {
    fn sink(&self) -> MutexGuard<'_, Option<Box<dyn CaptureSink>>> {
        locked(&self.sink)
    }

    fn commit(&self, py: Python<'_>, capture: trawl_model::Capture<'_>) -> PyResult<Option<u64>> {
        let written = py.detach(|| {
            let mut sink = self.sink();
            let sink = sink.as_mut()?;
            // A sink would drop it without a word.
            Some(sink.carries().takes(&capture).then(|| sink.write(capture)))
        });
        match written {
            Some(Some(written)) => Ok(written.map_err(|problem| error::of(&problem))?.map(|place| place.offset)),
            Some(None) => Err(error::refused(format!(
                "{}: this container has no room for such a capture: only for responses with their bodies",
                self.path.display()
            ))),
            None => Err(error::refused(format!("{} is finished", self.path.display()))),
        }
    }
}

#[pymethods]
impl Writer {
    /// Begins an archive: `pages.warc.gz`, `pages.warc.zst`, `pages.wacz`, …; its name says which container it is.
    #[new]
    fn new(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<Self> {
        let path = PathBuf::from(place::path(path)?);
        let format = Registry::default().target(&path).map_err(|problem| error::refused(problem.to_string()))?;
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let mut creation = Creation::new(fs, Target::File(path.clone()), Arc::new(place::ids()?), Clock::new(now));
        creation.about = About { software: concat!("trawl/", env!("CARGO_PKG_VERSION")).into(), ..About::default() };
        let sink = py.detach(|| format.create(creation)).map_err(|problem| error::of(&problem))?;
        Ok(Self { path, sink: Mutex::new(Some(sink)) })
    }

    /// Adds a capture that was read from an archive, as it is. Gives its offset, where that is known already.
    fn write(&self, py: Python<'_>, capture: &Capture) -> PyResult<Option<u64>> {
        self.commit(py, capture.to_write()?)
    }

    /// Adds a response: its head (status line and fields, as bytes) and its body.
    #[pyo3(signature = (url, head, body, *, ts=None))]
    fn add(
        &self,
        py: Python<'_>,
        url: String,
        head: Vec<u8>,
        body: Vec<u8>,
        ts: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<u64>> {
        if trawl_http::Head::new(&head).status().is_none() || !head.ends_with(b"\r\n\r\n") {
            return Err(error::refused(
                "expected the head of an HTTP response, from its status line to the empty line",
            ));
        }
        let started_at = time::moment_if(ts)?.unwrap_or_else(now);
        let message = Message { head: head.into(), body: Body::Memory(body.into()) };
        self.commit(
            py,
            trawl_model::Capture {
                url,
                started_at,
                request: None,
                outcome: Outcome::Response { message, payload_digest: None, truncated: None },
                facts: CaptureFacts { fetched_at: started_at, ..CaptureFacts::default() },
            },
        )
    }

    /// Completes the archive and publishes it under its name.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let Some(sink) = self.sink().take() else { return Ok(()) };
        let written = py.detach(|| sink.finish()).map_err(|problem| error::of(&problem))?;
        if written.dropped.is_empty() {
            return Ok(());
        }
        let lost =
            written.dropped.iter().map(|(what, count)| format!("{what} ({count})")).collect::<Vec<_>>().join(", ");
        upkeep::warn(py, &[format!("{}: left out what this container cannot carry: {lost}", self.path.display())])
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _trace: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if kind.is_none() {
            return self.finish(py);
        }
        // Dropped without an end: nothing is published.
        drop(self.sink().take());
        Ok(())
    }
}
