//! Makes index lines out of records.

use super::line::CdxjLine;
use crate::error::{Error, Result, shown};
use crate::header::RecordType;
use crate::reader::{Record, WarcReader};
use std::io::BufRead;
use trawl_http::Head;
use trawl_io::Hasher;
use trawl_model::UnixMillis;

/// What is indexed.
#[derive(Debug, Clone, Default)]
pub struct CdxjOptions {
    /// The `filename` of the lines; the file's own base name otherwise.
    pub filename: Option<String>,
    /// Also requests, and metadata and resources that only say something about other records.
    pub all_records: bool,
}

/// What an index cannot list.
#[derive(Debug)]
pub enum Unlisted {
    /// A place that cannot be read.
    Damage(Error),
    /// A record that would be listed, but does not say of which URL it is.
    Incomplete(Error),
    /// A record that is listed as of the first moment, 1970, because when it is of cannot be read.
    Undated(Error),
}

impl Unlisted {
    /// Why.
    pub fn into_error(self) -> Error {
        match self {
            Unlisted::Damage(error) | Unlisted::Incomplete(error) | Unlisted::Undated(error) => error,
        }
    }
}

/// Gives `each` a line for every record of a file that an index lists: responses, revisits, and those resources and
/// metadata records that are content rather than `application/warc-fields`. What cannot be listed goes to `unlisted`, which may
/// end the work by giving the error back; reading goes on behind it. Tells how many records the file has, listed or not.
pub fn index_records(
    reader: &mut WarcReader,
    options: &CdxjOptions,
    each: &mut dyn FnMut(CdxjLine) -> Result<()>,
    unlisted: &mut dyn FnMut(Unlisted) -> Result<()>,
) -> Result<u64> {
    let mut records = 0;
    loop {
        let found = match reader.next_record() {
            Ok(None) => return Ok(records),
            Ok(Some(record)) => {
                records += 1;
                index_record(record, options)
            }
            Err(e) => Err(e),
        };
        match found {
            Ok(Indexed::Line(line)) => each(line)?,
            Ok(Indexed::Undated(line, error)) => {
                each(line)?;
                unlisted(Unlisted::Undated(error))?;
            }
            Ok(Indexed::NotListed) => {}
            Ok(Indexed::Incomplete(error)) => unlisted(Unlisted::Incomplete(error))?,
            Err(e) if e.is_damage() => {
                unlisted(Unlisted::Damage(e))?;
                reader.recover_from_here()?;
            }
            Err(e) => return Err(e),
        }
    }
}

fn listed(record: &Record<'_>, all: bool) -> bool {
    match record.header().record_type() {
        RecordType::Response | RecordType::Revisit => true,
        RecordType::Resource | RecordType::Metadata => {
            all || record.header().get("Content-Type") != Some(b"application/warc-fields")
        }
        RecordType::Request => all,
        _ => false,
    }
}

/// What an index has of a record.
enum Indexed {
    Line(CdxjLine),
    /// It does not say when: a line is a line all the same, or the capture could not be found.
    Undated(CdxjLine, Error),
    NotListed,
    /// It would be listed, but does not say where.
    Incomplete(Error),
}

fn index_record(mut record: Record<'_>, options: &CdxjOptions) -> Result<Indexed> {
    if !listed(&record, options.all_records) {
        return Ok(Indexed::NotListed);
    }
    let header = record.header();
    let lacks = |expected, name| {
        let found = header.text(name).map_or("none".to_owned(), |text| shown(text.as_bytes()));
        Error::corrupt(record.at().clone(), expected, found)
    };
    if header.record_type() == RecordType::Metadata && header.target_uri().is_none() {
        return Ok(Indexed::NotListed);
    }
    // A blank cannot be in a URI; warcio, and so cdxj-indexer, escapes those it finds.
    let Some(url) = header.target_uri().map(|u| u.replace(' ', "%20")) else {
        return Ok(Indexed::Incomplete(lacks("a URL in WARC-Target-URI", "WARC-Target-URI")));
    };
    let undated = header.date().is_none().then(|| lacks("a time in WARC-Date", "WARC-Date"));
    let mut line = CdxjLine::new(&url, header.date().unwrap_or(UnixMillis(0)));
    let record_type = header.record_type();
    let own_type = header.text("Content-Type").map(|t| t.into_owned());
    let stated = header.text("WARC-Payload-Digest").filter(|d| !d.is_empty()).map(|d| d.into_owned());
    let is_message = header.may_be_http();
    let is_segment = header.get("WARC-Segment-Number").is_some();
    let place = record.place();
    let head = if is_message { record.take_http_head()? } else { None };
    line.put("url", url);
    let mime = match record_type {
        RecordType::Revisit => Some("warc/revisit".to_owned()),
        RecordType::Response | RecordType::Request => head.as_deref().and_then(|h| Head::new(h).text("Content-Type")),
        _ => own_type,
    };
    if let Some(mime) = mime {
        let bare = mime.split(|c: char| c == ';' || c.is_whitespace()).next().unwrap_or_default();
        line.put("mime", bare);
    }
    if matches!(record_type, RecordType::Response | RecordType::Revisit)
        && let Some(status) = head.as_deref().and_then(|h| Head::new(h).status())
    {
        line.put("status", status.to_string());
    }
    // A revisit does not hold the payload that it is about, nor does the first of several segments.
    let digest = match stated {
        None if record_type == RecordType::Revisit || is_segment => None,
        None => Some(payload_digest(&mut record)?),
        stated => stated,
    };
    if let Some(digest) = digest {
        line.put("digest", digest);
    }
    let length = record.finish()?.block_end;
    line.put("length", length.to_string());
    line.put("offset", place.offset.to_string());
    line.put("filename", options.filename.clone().unwrap_or_else(|| place.file.to_string()));
    Ok(match undated {
        Some(error) => Indexed::Undated(line, error),
        None => Indexed::Line(line),
    })
}

fn payload_digest(record: &mut Record<'_>) -> Result<String> {
    let mut hasher = Hasher::sha1();
    loop {
        let chunk = record.chunk()?;
        if chunk.is_empty() {
            return Ok(hasher.finish().to_string());
        }
        hasher.update(chunk);
        let n = chunk.len();
        record.consume(n);
    }
}
