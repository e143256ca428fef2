//! Results on stdout, all else on stderr.

use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, BufWriter, StdoutLock, Write};
use trawl_url::{Printed, Redacted, redact};

/// Where a command's results go, and in which form. User names and passwords in URLs are left out, unless asked for.
pub struct Output {
    out: Results,
    form: Form,
    quiet: bool,
    /// The columns of the listing, once they are printed.
    header: Option<&'static [&'static str]>,
}

/// The form of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
    /// Listings as CSV.
    Csv,
}

/// The way to stdout.
enum Results {
    Redacted(Redacted<Stdout>),
    AsFound(Stdout),
}

type Stdout = BufWriter<NamedStdout>;

/// Stdout, with its name in its errors: a full disk behind it may be none of those that a command works on.
struct NamedStdout(StdoutLock<'static>);

impl Write for NamedStdout {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf).map_err(of_stdout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(of_stdout)
    }
}

/// The kind stays: a pipe that was closed is not reported.
fn of_stdout(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

impl Output {
    /// Results to stdout.
    pub fn new(form: Form, quiet: bool, credentials: bool) -> Self {
        let out = BufWriter::with_capacity(64 * 1024, NamedStdout(io::stdout().lock()));
        let printed = if form == Form::Json { Printed::Json } else { Printed::Text };
        let out = if credentials { Results::AsFound(out) } else { Results::Redacted(Redacted::new(out, printed)) };
        Self { out, form, quiet, header: None }
    }

    /// Whether user names and passwords in URLs were asked for.
    pub fn credentials(&self) -> bool {
        matches!(self.out, Results::AsFound(_))
    }

    /// Stdout for contents, which are printed byte for byte.
    pub fn contents(&mut self) -> io::Result<&mut dyn Write> {
        Ok(match &mut self.out {
            Results::Redacted(out) => out.exact()?,
            Results::AsFound(out) => out,
        })
    }

    fn out(&mut self) -> &mut dyn Write {
        match &mut self.out {
            Results::Redacted(out) => out,
            Results::AsFound(out) => out,
        }
    }

    /// Whether results are wanted as JSON.
    pub fn json(&self) -> bool {
        self.form == Form::Json
    }

    /// Whether listings are wanted as CSV.
    pub fn csv(&self) -> bool {
        self.form == Form::Csv
    }

    /// A row of a listing as CSV: these members of an object, under a line with their names. What an object lacks is empty.
    pub fn csv_row(&mut self, columns: &'static [&'static str], value: &impl Serialize) -> io::Result<()> {
        let value = serde_json::to_value(value)?;
        if self.header != Some(columns) {
            self.header = Some(columns);
            writeln!(self.out(), "{}", columns.join(","))?;
        }
        let fields: Vec<_> = columns.iter().map(|column| csv_field(value.get(column))).collect();
        writeln!(self.out(), "{}", fields.join(","))
    }

    /// Whether progress and remarks are unwanted.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// One JSON value on one line.
    pub fn json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(self.out(), value)?;
        self.out().write_all(b"\n")
    }

    /// A result: one JSON line, or what `text` writes.
    pub fn fact(
        &mut self,
        value: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.json() { self.json_line(value) } else { text(self.out()) }
    }

    /// A row of a listing: with `--csv` these members of it, else as [`Output::fact`].
    pub fn row(
        &mut self,
        columns: &'static [&'static str],
        value: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.csv() { self.csv_row(columns, value) } else { self.fact(value, text) }
    }

    /// A remark for people on stderr, unless `--quiet`.
    pub fn remark(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{}", harmless_lines(&shown(text)));
        }
    }

    /// Hands everything over.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out().flush()
    }
}

impl Write for Output {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.out().write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out().flush()
    }
}

fn csv_field(value: Option<&serde_json::Value>) -> String {
    let text = match value {
        None | Some(serde_json::Value::Null) => String::new(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// An error for people on stderr, `--quiet` or not.
pub fn complain(text: &str) {
    // If stderr is gone as well, the error cannot be reported.
    let _ = writeln!(io::stderr(), "trawl: {}", harmless_lines(&shown(text)));
}

/// A message without user names and passwords of URLs: messages end up in logs.
fn shown(text: &str) -> Cow<'_, str> {
    match redact(text.as_bytes(), Printed::Text) {
        Cow::Borrowed(_) => text.into(),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    }
}

/// A text of a source for a terminal and for programs that read lines: what would end the line, move the cursor or turn
/// the direction of writing is escaped.
pub fn harmless(text: &str) -> Cow<'_, str> {
    escape(text, harms)
}

/// As [`harmless`], where line ends are our own.
fn harmless_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| c != '\n' && harms(c))
}

fn harms(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(text: &str, harms: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&harms) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harms(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}
