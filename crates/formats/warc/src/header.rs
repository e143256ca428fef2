//! The header of a WARC record, parsed without reading and kept verbatim.
//!
//! ```text
//! WARC/1.1 CRLF                    version: 0.17, 0.18, 1.0, 1.1; some write it in lower case
//! WARC-Type: response CRLF         name ":" value, in any order, names case-insensitive
//!   continued CRLF                 a line that begins with blank continues the value above (1.0)
//! CRLF                             end of the header; the block of Content-Length bytes follows
//! ```

use crate::error::{At, Error, Result, shown};
use crate::limits::{Limits, Step};
use std::borrow::Cow;
use trawl_model::date::w3c_date;
use trawl_model::{Digest, UnixMillis};
use trawl_url::text_of;

/// A version of the format that its first line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// A draft, 2007.
    V0_17,
    /// A draft, 2008.
    V0_18,
    /// ISO 28500:2009.
    V1_0,
    /// ISO 28500:2017.
    #[default]
    V1_1,
    /// Anything else that looks like a version; lenient readers go on.
    Other,
}

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum RecordType {
    /// About the file.
    Warcinfo,
    /// What a server answered.
    Response,
    /// A thing without protocol information.
    Resource,
    /// What was asked.
    Request,
    /// About another record.
    Metadata,
    /// An answer whose body is stored elsewhere.
    Revisit,
    /// Another form of a record.
    Conversion,
    /// The next part of a record that was split.
    Continuation,
    /// A type this version of the standard does not name, or none.
    #[default]
    Unknown,
}

impl RecordType {
    const NAMED: [(Self, &'static str); 8] = [
        (Self::Warcinfo, "warcinfo"),
        (Self::Response, "response"),
        (Self::Resource, "resource"),
        (Self::Request, "request"),
        (Self::Metadata, "metadata"),
        (Self::Revisit, "revisit"),
        (Self::Conversion, "conversion"),
        (Self::Continuation, "continuation"),
    ];

    /// The name in files.
    pub fn as_str(self) -> &'static str {
        Self::NAMED.iter().find(|(t, _)| *t == self).map_or("unknown", |(_, name)| name)
    }

    fn from_bytes(name: &[u8]) -> Self {
        Self::NAMED.iter().find(|(_, n)| n.as_bytes().eq_ignore_ascii_case(name)).map_or(Self::Unknown, |(t, _)| *t)
    }
}

/// Where one field lies in the raw header.
#[derive(Debug, Clone, Copy)]
struct Span {
    name: (u32, u32),
    value: (u32, u32),
}

/// A record's header: verbatim bytes and the fields found in them.
#[derive(Debug, Clone, Default)]
pub struct RecordHeader {
    raw: Vec<u8>,
    spans: Vec<Span>,
    version: Version,
    record_type: RecordType,
    content_length: u64,
    oddities: Vec<&'static str>,
}

/// Parses a record header at the start of `buf`.
///
/// Lenient parsing accepts bare line feeds, blanks around names, unknown versions and missing mandatory fields, and
/// lists what it accepted in [`RecordHeader::oddities`]; a header without `Content-Length` is that of an empty block. One whose
/// `Content-Length` is no number is an error either way: where such a record ends is unknown.
pub fn record_header(buf: &[u8], limits: &Limits, lenient: bool) -> Result<Step<RecordHeader>> {
    let mut header = RecordHeader::default();
    Ok(match header.parse(buf, limits, lenient)? {
        Step::Done { used, .. } => Step::Done { value: header, used },
        Step::NeedMore { at_least } => Step::NeedMore { at_least },
    })
}

fn inside(n: usize) -> At {
    At { inside: n as u64, ..At::default() }
}

fn narrow(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl RecordHeader {
    /// [`record_header`] into an existing value, so that a reader allocates once per file rather than once per record.
    pub(crate) fn parse(&mut self, buf: &[u8], limits: &Limits, lenient: bool) -> Result<Step<()>> {
        self.spans.clear();
        self.oddities.clear();
        let limit = limits.header_bytes.min(u32::MAX as usize);
        let window = buf.get(..limit.min(buf.len())).unwrap_or(buf);
        let mut at = 0;
        let mut first = true;
        loop {
            let rest = window.get(at..).unwrap_or_default();
            let Some(lf) = memchr::memchr(b'\n', rest) else {
                // A version line is short: in a file of nothing but marks, looking far for its end at each of them would take forever.
                if first && (!may_begin_record(rest) || rest.len() > MAX_VERSION_LINE) {
                    return Err(Error::corrupt(inside(0), "\"WARC/\"", shown(rest)));
                }
                if buf.len() >= limit {
                    let (claimed, limit) = (buf.len() as u64, limit as u64);
                    return Err(Error::OverLimit { at: inside(0), what: "record header", claimed, limit });
                }
                return Ok(Step::NeedMore { at_least: buf.len() + 1 });
            };
            let mut line = rest.get(..lf).unwrap_or_default();
            match line.split_last() {
                Some((b'\r', before)) if lenient && before.ends_with(b"\r") => {
                    self.odd("a line ends in more than one carriage return");
                    line = before.trim_ascii_end();
                }
                Some((b'\r', before)) => line = before,
                _ if lenient => self.odd("a line ends in a bare line feed"),
                _ => return Err(Error::corrupt(inside(at + lf), "a line that ends in CR LF", shown(line))),
            }
            let next = at + lf + 1;
            if first {
                self.version(line, lenient)?;
                first = false;
            } else if line.is_empty() {
                self.raw.clear();
                self.raw.extend_from_slice(window.get(..next).unwrap_or_default());
                self.settle(lenient)?;
                return Ok(Step::Done { value: (), used: next });
            } else {
                self.field(line, at, lenient)?;
            }
            at = next;
        }
    }

    fn version(&mut self, line: &[u8], lenient: bool) -> Result<()> {
        let expected = "\"WARC/1.1\", \"WARC/1.0\", \"WARC/0.18\" or \"WARC/0.17\"";
        self.version = match line {
            b"WARC/1.1" => Version::V1_1,
            b"WARC/1.0" => Version::V1_0,
            b"WARC/0.18" => Version::V0_18,
            b"WARC/0.17" => Version::V0_17,
            _ => {
                let number = line.get(5..).filter(|_| may_begin_record(line)).unwrap_or_default().trim_ascii();
                let plausible = !number.is_empty() && number.iter().all(|b| b.is_ascii_digit() || *b == b'.');
                if !(lenient && plausible) {
                    return Err(Error::corrupt(inside(0), expected, shown(line)));
                }
                let known = [(&b"1.1"[..], Version::V1_1), (b"1.0", Version::V1_0), (b"0.18", Version::V0_18)];
                let known = known.into_iter().chain([(&b"0.17"[..], Version::V0_17)]).find(|(name, _)| *name == number);
                self.odd(if known.is_some() {
                    "the version is spelled unlike the standard"
                } else {
                    "unknown version"
                });
                known.map_or(Version::Other, |(_, version)| version)
            }
        };
        Ok(())
    }

    fn field(&mut self, line: &[u8], at: usize, lenient: bool) -> Result<()> {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            if let Some(last) = self.spans.last_mut() {
                last.value.1 = narrow(at + line.len());
                return Ok(());
            }
            if lenient {
                self.odd("a line that continues no field");
                return Ok(());
            }
            return Err(Error::corrupt(inside(at), "a field before its continuation", shown(line)));
        }
        let Some(colon) = memchr::memchr(b':', line) else {
            // The version line of another record: this one was cut inside its header.
            let is_version = line.len() >= 5 && may_begin_record(line);
            if lenient && !is_version {
                self.odd("a header line without a colon");
                return Ok(());
            }
            return Err(Error::corrupt(inside(at), "a field as name:value", shown(line)));
        };
        let name = line.get(..colon).unwrap_or_default();
        let trimmed = name.trim_ascii_end();
        if trimmed.len() != name.len() || trimmed.is_empty() || !trimmed.iter().all(|b| is_token(*b)) {
            if !lenient {
                return Err(Error::corrupt(inside(at), "a field name of token characters", shown(name)));
            }
            self.odd("a field name of other than token characters");
        }
        self.spans.push(Span {
            name: (narrow(at), narrow(at + trimmed.len())),
            value: (narrow(at + colon + 1), narrow(at + line.len())),
        });
        Ok(())
    }

    /// Finds type and length among the fields, and checks that the mandatory ones are there.
    fn settle(&mut self, lenient: bool) -> Result<()> {
        self.record_type = self.get("WARC-Type").map_or(RecordType::Unknown, RecordType::from_bytes);
        let mut lengths = self.all("Content-Length");
        let length = lengths.next().unwrap_or_default();
        let (mut repeated, mut same) = (false, true);
        for other in lengths {
            repeated = true;
            same &= other == length;
        }
        // One that states nothing has nothing, as others read it; if something follows, it is found to be damaged.
        let absent = length.is_empty() && lenient;
        let signed = length.strip_prefix(b"+").filter(|_| lenient);
        let is_signed = signed.is_some();
        let parsed = std::str::from_utf8(if absent { b"0" } else { signed.unwrap_or(length) })
            .ok()
            .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Error::corrupt(inside(0), "Content-Length as a decimal number", shown(length)))?;
        self.content_length = parsed;
        if absent {
            self.odd("no Content-Length");
        }
        if is_signed {
            self.odd("Content-Length with a sign");
        }
        if repeated && !(same && lenient) {
            return Err(Error::corrupt(inside(0), "one Content-Length", "several"));
        }
        if repeated {
            self.odd("Content-Length repeated");
        }
        let mandatory = [
            ("WARC-Type", "a WARC-Type field"),
            ("WARC-Record-ID", "a WARC-Record-ID field"),
            ("WARC-Date", "a WARC-Date field"),
        ];
        for (name, expected) in mandatory {
            if self.get(name).is_none_or(<[u8]>::is_empty) {
                if !lenient {
                    return Err(Error::corrupt(inside(0), expected, "none"));
                }
                self.odd("a mandatory field is missing");
            }
        }
        Ok(())
    }

    fn odd(&mut self, what: &'static str) {
        if !self.oddities.contains(&what) {
            self.oddities.push(what);
        }
    }

    /// What lenient parsing accepted although the standard does not.
    pub fn oddities(&self) -> &[&'static str] {
        &self.oddities
    }

    /// The header as it stands in the file, from the version line through the empty line.
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The version line's version.
    pub fn version_of_format(&self) -> Version {
        self.version
    }

    /// `WARC-Type`.
    pub fn record_type(&self) -> RecordType {
        self.record_type
    }

    /// `Content-Length`: bytes of the block.
    pub fn content_length(&self) -> u64 {
        self.content_length
    }

    /// Names and values in file order, trimmed, continuation lines still in them.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.spans.iter().map(|span| {
            let part = |(from, to): (u32, u32)| self.raw.get(from as usize..to as usize).unwrap_or_default();
            (part(span.name), part(span.value).trim_ascii())
        })
    }

    /// The value of the first field called `name`, in whatever case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.fields().find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, v)| v)
    }

    /// The values of all fields called `name`.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields().filter(move |(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, v)| v)
    }

    /// A value as text: continuation lines joined by a space, bytes that are not UTF-8 escaped as a URL escapes them, so that
    /// different values stay different.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(unfolded)
    }

    /// A URI value without the angle brackets some fields demand and some writers add.
    pub fn uri(&self, name: &str) -> Option<Cow<'_, str>> {
        self.text(name).map(without_brackets)
    }

    /// `WARC-Record-ID`, without brackets.
    pub fn record_id(&self) -> Option<Cow<'_, str>> {
        self.uri("WARC-Record-ID")
    }

    /// `WARC-Target-URI`, without brackets.
    pub fn target_uri(&self) -> Option<Cow<'_, str>> {
        self.uri("WARC-Target-URI")
    }

    /// `WARC-Concurrent-To`, which may repeat, without brackets.
    pub fn concurrent_to(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.all("WARC-Concurrent-To").map(|value| without_brackets(unfolded(value)))
    }

    /// `WARC-Date`, if it is one.
    pub fn date(&self) -> Option<UnixMillis> {
        self.time("WARC-Date")
    }

    /// A time field, if it is one. The standard knows UTC and capital letters alone; others write offsets, and `t` and `z`.
    pub(crate) fn time(&self, name: &str) -> Option<UnixMillis> {
        let text = self.text(name)?;
        UnixMillis::parse(&text).ok().or_else(|| w3c_date(&text))
    }

    /// A digest field, if it is one of a known algorithm.
    pub fn digest(&self, name: &str) -> Option<Digest> {
        Digest::parse(&self.text(name)?).ok()
    }

    /// Whether the block is called an HTTP message.
    pub fn is_http(&self) -> bool {
        self.get("Content-Type")
            .is_some_and(|v| v.get(..16).is_some_and(|start| start.eq_ignore_ascii_case(b"application/http")))
    }

    /// Whether the block may be an HTTP message: it is called one, or it is an exchange with a web server, whatever it is
    /// called. The standard only recommends `Content-Type`, and some writers put the page's type there.
    pub fn may_be_http(&self) -> bool {
        let exchange = matches!(self.record_type, RecordType::Response | RecordType::Request | RecordType::Revisit);
        let web = |uri: &[u8]| {
            let uri = uri.strip_prefix(b"<").unwrap_or(uri);
            [&b"http:"[..], b"https:"]
                .iter()
                .any(|scheme| uri.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
        };
        exchange && (self.is_http() || self.get("WARC-Target-URI").is_some_and(web))
    }

    /// A header made up for a record of a format without WARC headers (ARC), so that it reads like one.
    pub(crate) fn set(&mut self, raw: &[u8], limits: &Limits) -> Result<()> {
        self.parse(raw, limits, true).map(|_| ())
    }
}

/// Bytes of a version line, its end included; `WARC/1.1` has ten.
pub(crate) const MAX_VERSION_LINE: usize = 64;

/// Whether bytes begin like a WARC record, as far as there are any.
pub(crate) fn may_begin_record(bytes: &[u8]) -> bool {
    let front = bytes.get(..5).unwrap_or(bytes);
    b"WARC/".get(..front.len()).is_some_and(|mark| mark.eq_ignore_ascii_case(front))
}

/// Bytes that tell whether a record begins with them: a version line and the name of a field.
pub(crate) const BEGINNING_BYTES: usize = 3 * MAX_VERSION_LINE;

/// Whether bytes begin with the whole version line of a record, as a lenient reader takes it, and a field as far as there is more.
pub(crate) fn begins_record(bytes: &[u8]) -> bool {
    let Some(lf) = memchr::memchr(b'\n', bytes) else { return false };
    let (line, rest) = bytes.split_at(lf);
    let field = rest.iter().skip(1).find(|b| matches!(b, b':' | b'\n'));
    field.is_none_or(|b| *b == b':') && RecordHeader::default().version(line.trim_ascii_end(), true).is_ok()
}

fn is_token(b: u8) -> bool {
    b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(&b)
}

fn unfolded(value: &[u8]) -> Cow<'_, str> {
    if !value.contains(&b'\n') {
        return text_of(value);
    }
    let lines: Vec<_> = value.split(|b| *b == b'\n').map(|l| text_of(l.trim_ascii())).collect();
    Cow::Owned(lines.join(" "))
}

fn without_brackets(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.strip_prefix('<').and_then(|t| t.strip_suffix('>')) {
        Some(inner) => Cow::Owned(inner.to_owned()),
        None => text,
    }
}

#[cfg(test)]
mod tests;
