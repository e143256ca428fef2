//! The writing side of the log.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::error::{Error, Result};

/// Lines are written out when this much has gathered, whatever the clock says: it bounds memory.
const BUFFER_BYTES: usize = 1 << 20;

/// How a request travelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proto {
    /// HTTP/1.x without encryption.
    Http1,
    /// HTTP/1.x over TLS.
    Https1,
    /// HTTP/2 over TLS.
    Https2,
}

impl Proto {
    fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1",
            Self::Https1 => "https/1",
            Self::Https2 => "https/2",
        }
    }
}

/// One request, as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) conn: u64,
    pub(crate) stream: u64,
    pub(crate) proto: Proto,
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) method: &'a [u8],
    pub(crate) target: &'a [u8],
    pub(crate) agent: Option<&'a [u8]>,
    pub(crate) if_none_match: Option<&'a [u8]>,
    pub(crate) if_modified_since: Option<&'a [u8]>,
    /// Not logged.
    pub(crate) accept_encoding: Option<&'a [u8]>,
}

impl Request<'_> {
    /// A request of which nothing is known yet.
    pub(crate) fn unknown(proto: Proto) -> Self {
        Self {
            conn: 0,
            stream: 0,
            proto,
            host: None,
            method: b"-",
            target: b"",
            agent: None,
            if_none_match: None,
            if_modified_since: None,
            accept_encoding: None,
        }
    }
}

/// A request that is being answered; it goes into the log however it ends, also when the client leaves.
pub(crate) struct Pending<'a> {
    log: &'a Log,
    start: u64,
    request: &'a Request<'a>,
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) whole: bool,
    last_write: u64,
}

impl<'a> Pending<'a> {
    pub(crate) fn new(log: &'a Log, start: u64, request: &'a Request<'a>) -> Self {
        log.begun.fetch_add(1, Ordering::Relaxed);
        Self { log, start, request, status: 0, bytes: 0, whole: false, last_write: start }
    }

    /// Notes that bytes are about to be handed to the system: a client may have them, and ask again, from now on.
    pub(crate) fn writing(&mut self) {
        self.last_write = self.log.now();
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let end = if self.whole { self.last_write } else { self.log.now() };
        self.log.request(self, end);
    }
}

/// The log of a running server.
pub(crate) struct Log {
    zero: Instant,
    zero_unix_us: u64,
    begun: AtomicU64,
    sink: Option<(PathBuf, Mutex<Sink>)>,
}

struct Sink {
    file: File,
    buffer: Vec<u8>,
    failed: Option<std::io::Error>,
}

impl Sink {
    fn write_out(&mut self) {
        if let Err(error) = self.file.write_all(&self.buffer) {
            self.failed.get_or_insert(error);
        }
        self.buffer.clear();
    }
}

fn lock(sink: &Mutex<Sink>) -> MutexGuard<'_, Sink> {
    // A panic while holding the lock leaves at worst a half-written line.
    sink.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    /// Starts a log; without a path nothing is kept. An existing file is appended to.
    pub(crate) fn open(path: Option<&Path>, seed: u64, zero: Instant, unix_us: u64) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::with(zero, unix_us, None)) };
        let fail = |what| move |source| Error::Log { path: path.to_owned(), what, source };
        let file = File::options().create(true).append(true).open(path).map_err(fail("cannot open the log"))?;
        let mut sink = Sink { file, buffer: Vec::with_capacity(BUFFER_BYTES), failed: None };
        let _ = writeln!(sink.buffer, "testweb-log 1\tseed={seed}\tunix_us={unix_us}");
        Ok(Self::with(zero, unix_us, Some((path.to_owned(), Mutex::new(sink)))))
    }

    fn with(zero: Instant, zero_unix_us: u64, sink: Option<(PathBuf, Mutex<Sink>)>) -> Self {
        Self { zero, zero_unix_us, begun: AtomicU64::new(0), sink }
    }

    /// Requests that have come, also those that are not answered yet.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Where the log is.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.sink.as_ref().map(|(path, _)| path.as_path())
    }

    /// Microseconds since time zero.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The clock on the wall, Unix seconds.
    pub(crate) fn unix_s(&self) -> u64 {
        self.zero_unix_us.saturating_add(self.now()) / 1_000_000
    }

    fn line(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let Some((_, sink)) = &self.sink else { return };
        let mut sink = lock(sink);
        write(&mut sink.buffer);
        sink.buffer.push(b'\n');
        if sink.buffer.len() >= BUFFER_BYTES {
            sink.write_out();
        }
    }

    pub(crate) fn opened(&self, conn: u64, local: SocketAddr, remote: SocketAddr) {
        let time = self.now();
        self.line(|out| {
            let _ = write!(out, "C\t{time}\t{conn}\t{local}\t{remote}");
        });
    }

    /// A TLS handshake: the name asked for, and the protocol agreed on, or `None` if it was cut off.
    pub(crate) fn secured(&self, conn: u64, name: Option<&str>, protocol: Option<&str>) {
        let time = self.now();
        self.line(|out| {
            let _ = write!(out, "S\t{time}\t{conn}");
            push_field(out, name.map(str::as_bytes));
            push_field(out, protocol.map(str::as_bytes));
        });
    }

    /// Virtual time was set, and goes on at a rate.
    pub(crate) fn clock_set(&self, unix_s: u64, rate: f64) {
        let time = self.now();
        self.line(|out| {
            let _ = write!(out, "T\t{time}\t{unix_s}\t{rate}");
        });
    }

    pub(crate) fn closed(&self, conn: u64) {
        let time = self.now();
        self.line(|out| {
            let _ = write!(out, "X\t{time}\t{conn}");
        });
    }

    fn request(&self, pending: &Pending<'_>, end: u64) {
        let (request, start) = (pending.request, pending.start);
        let length = end.saturating_sub(start);
        self.line(|out| {
            let _ = write!(out, "R\t{start}\t{length}\t{}\t{}\t{}", request.conn, request.stream, request.proto.name());
            push_field(out, request.host);
            push_field(out, Some(request.method));
            push_field(out, Some(request.target));
            let _ = write!(out, "\t{}\t{}", pending.status, pending.bytes);
            push_field(out, request.agent);
            push_field(out, request.if_none_match);
            push_field(out, request.if_modified_since);
            out.extend_from_slice(if pending.whole { b"\tok" } else { b"\tcut" });
        });
    }

    /// Hands everything logged so far to the system.
    pub(crate) fn flush(&self) {
        if let Some((_, sink)) = &self.sink {
            lock(sink).write_out();
        }
    }

    /// Flushes, and reports the first failure of the log's life.
    pub(crate) fn finish(&self) -> Result<()> {
        let Some((path, sink)) = &self.sink else { return Ok(()) };
        let mut sink = lock(sink);
        sink.write_out();
        match sink.failed.take() {
            None => Ok(()),
            Some(source) => Err(Error::Log { path: path.clone(), what: "cannot write the log", source }),
        }
    }
}

fn push_field(out: &mut Vec<u8>, value: Option<&[u8]>) {
    out.push(b'\t');
    match value {
        None => out.push(b'-'),
        Some(b"-") => out.extend_from_slice(b"\\x2d"),
        Some(value) => {
            for &byte in value {
                match byte {
                    b'\\' | 0..=0x1f | 0x7f.. => {
                        let _ = write!(out, "\\x{byte:02x}");
                    }
                    _ => out.push(byte),
                }
            }
        }
    }
}
