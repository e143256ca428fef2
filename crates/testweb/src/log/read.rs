//! The reading side of the log: lines to events, without trust in the lines.

use std::io::BufRead;
use std::net::SocketAddr;

/// One request, as the server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// When its head was complete, microseconds.
    pub start_us: u64,
    /// When its last bytes were about to be sent, or when it was cut.
    pub end_us: u64,
    /// The connection, unique over the whole file.
    pub conn: u64,
    /// Its number on the connection.
    pub stream: u64,
    /// Whether it came over TLS.
    pub secure: bool,
    /// The `Host` header, or the authority of HTTP/2.
    pub host: Option<String>,
    /// The method.
    pub method: String,
    /// The request target; for what was not HTTP, its first bytes.
    pub target: String,
    /// The status of the response; 0 if none began.
    pub status: u16,
    /// Body bytes sent.
    pub bytes: u64,
    /// `User-Agent`.
    pub agent: Option<String>,
    /// `If-None-Match`.
    pub if_none_match: Option<String>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<String>,
    /// Whether the response was sent to its end.
    pub whole: bool,
}

/// One line of a log. Times are microseconds since the first server that wrote to the file started.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A server started.
    Started {
        /// The seed of its web.
        seed: u64,
    },
    /// Virtual time was set, and goes on at a rate from here.
    Clock {
        /// When.
        time_us: u64,
        /// Virtual Unix seconds.
        unix_s: u64,
        /// Virtual seconds per real second.
        rate: f64,
    },
    /// A connection was accepted.
    Opened {
        /// When.
        time_us: u64,
        /// Which.
        conn: u64,
        /// The server's end.
        local: SocketAddr,
        /// The client's end.
        remote: SocketAddr,
    },
    /// A TLS handshake was done, or cut off.
    Secured {
        /// When.
        time_us: u64,
        /// On which connection.
        conn: u64,
        /// The server name the client asked for.
        name: Option<String>,
        /// The protocol agreed on; `None` if the handshake was cut off.
        protocol: Option<String>,
    },
    /// A request ended.
    Request(Box<Record>),
    /// A connection ended.
    Closed {
        /// When.
        time_us: u64,
        /// Which.
        conn: u64,
    },
}

/// Longest line that is read; longer ones are faults.
const MAX_LINE_BYTES: u64 = 1 << 20;
/// Connections of the second server that wrote to a file are numbered from here, those of the third from twice this.
const RUN: u64 = 1 << 40;

/// Reads a log line by line.
#[derive(Debug)]
pub struct LogReader<R> {
    input: R,
    line: u64,
    /// Servers seen so far, and how much later than the first the current one started.
    runs: u64,
    first_unix_us: u64,
    shift_us: u64,
}

impl<R: BufRead> LogReader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Self {
        Self { input, line: 0, runs: 0, first_unix_us: 0, shift_us: 0 }
    }

    /// The next line's number (from 1) and its event, or what is wrong with it; `None` at the end.
    pub fn next_event(&mut self) -> std::io::Result<Option<(u64, Result<Event, String>)>> {
        let mut bytes = Vec::new();
        let read = std::io::Read::take(&mut self.input, MAX_LINE_BYTES).read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        if bytes.pop() != Some(b'\n') {
            return Ok(Some((self.line, Err("expected a line end, found the end of the file or a huge line".into()))));
        }
        let event = match std::str::from_utf8(&bytes) {
            Ok(text) => self.parse(text),
            Err(error) => Err(format!("expected text, found other bytes at {}", error.valid_up_to())),
        };
        Ok(Some((self.line, event)))
    }

    fn parse(&mut self, text: &str) -> Result<Event, String> {
        let mut fields =
            Fields { fields: text.split('\t'), shift_us: self.shift_us, conns: self.runs.saturating_sub(1) * RUN };
        let event = match fields.text("kind")? {
            "testweb-log 1" => {
                let seed = fields.after("seed=")?;
                let unix_us = fields.after("unix_us=")?;
                self.runs += 1;
                if self.runs == 1 {
                    self.first_unix_us = unix_us;
                }
                self.shift_us = unix_us.saturating_sub(self.first_unix_us);
                Event::Started { seed }
            }
            _ if self.runs == 0 => return Err("expected a first line \"testweb-log 1\", found another".into()),
            "T" => Event::Clock {
                time_us: fields.time()?,
                unix_s: fields.number("virtual time")?,
                rate: fields.text("rate")?.parse().map_err(|_| "expected a rate, found something else".to_owned())?,
            },
            "C" => Event::Opened {
                time_us: fields.time()?,
                conn: fields.conn()?,
                local: fields.address("local address")?,
                remote: fields.address("remote address")?,
            },
            "S" => Event::Secured {
                time_us: fields.time()?,
                conn: fields.conn()?,
                name: fields.value("name")?,
                protocol: fields.value("protocol")?,
            },
            "R" => Event::Request(Box::new(fields.record()?)),
            "X" => Event::Closed { time_us: fields.time()?, conn: fields.conn()? },
            other => {
                return Err(format!("expected a kind of line, found {:?}", other.chars().take(20).collect::<String>()));
            }
        };
        match fields.fields.next() {
            None => Ok(event),
            Some(_) => Err("expected the end of the line, found more fields".into()),
        }
    }
}

struct Fields<'a> {
    fields: std::str::Split<'a, char>,
    shift_us: u64,
    conns: u64,
}

impl<'a> Fields<'a> {
    fn text(&mut self, what: &str) -> Result<&'a str, String> {
        self.fields.next().ok_or_else(|| format!("expected a {what}, found the end of the line"))
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, String> {
        let text = self.text(what)?;
        text.parse().map_err(|_| format!("expected a {what}, found {:?}", text.chars().take(20).collect::<String>()))
    }

    fn after(&mut self, name: &str) -> Result<u64, String> {
        let text = self.text(name)?;
        let value = text.strip_prefix(name).and_then(|v| v.parse().ok());
        value.ok_or_else(|| {
            format!("expected {name} and a number, found {:?}", text.chars().take(40).collect::<String>())
        })
    }

    fn time(&mut self) -> Result<u64, String> {
        Ok(self.number::<u64>("time")?.saturating_add(self.shift_us))
    }

    fn conn(&mut self) -> Result<u64, String> {
        Ok(self.number::<u64>("connection")?.saturating_add(self.conns))
    }

    fn address(&mut self, what: &str) -> Result<SocketAddr, String> {
        self.number(what)
    }

    /// A value that may be absent, with its escapes undone. Bytes that are not text become U+FFFD.
    fn value(&mut self, what: &str) -> Result<Option<String>, String> {
        let text = self.text(what)?;
        if text == "-" {
            return Ok(None);
        }
        if !text.contains('\\') {
            return Ok(Some(text.to_owned()));
        }
        let mut bytes = Vec::with_capacity(text.len());
        let mut parts = text.split('\\');
        bytes.extend_from_slice(parts.next().unwrap_or("").as_bytes());
        for part in parts {
            let code = part.strip_prefix('x').and_then(|p| p.split_at_checked(2));
            let (hex, rest) =
                code.ok_or_else(|| format!("expected an escape in the {what}, found a bare backslash"))?;
            bytes.push(
                u8::from_str_radix(hex, 16)
                    .map_err(|_| format!("expected two hex digits in the {what}, found others"))?,
            );
            bytes.extend_from_slice(rest.as_bytes());
        }
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn record(&mut self) -> Result<Record, String> {
        let start_us = self.time()?;
        let length: u64 = self.number("length")?;
        Ok(Record {
            start_us,
            end_us: start_us.saturating_add(length),
            conn: self.conn()?,
            stream: self.number("stream")?,
            secure: match self.text("protocol")? {
                "http/1" => false,
                "https/1" | "https/2" => true,
                other => return Err(format!("expected a protocol, found {other:?}")),
            },
            host: self.value("host")?,
            method: self.value("method")?.unwrap_or_default(),
            target: self.value("target")?.unwrap_or_default(),
            status: self.number("status")?,
            bytes: self.number("byte count")?,
            agent: self.value("agent")?,
            if_none_match: self.value("entity tag")?,
            if_modified_since: self.value("date")?,
            whole: match self.text("end")? {
                "ok" => true,
                "cut" => false,
                other => return Err(format!("expected ok or cut, found {other:?}")),
            },
        })
    }
}
