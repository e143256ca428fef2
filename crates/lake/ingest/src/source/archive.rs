//! Archives as sources, beside lists: WARC and ARC files, and seqdb containers of captures.

use crate::Result;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use trawl_captures::CaptureRow;
use trawl_io::{Fs, Mode};
use trawl_lists::{Fields, ListFile, Options, Value};
use trawl_model::{Advice, DoorError, Entry, Items, SourceIdentity, Split, UnixMillis, UrlRecord, UrlSource};
use trawl_seqdb::{Access, Clock, FsPaths, Pages, Settings};
use trawl_warc::{Limits, WarcSource};

/// The formats of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A list of URLs.
    List(trawl_lists::Format),
    /// WARC or ARC, of any compression.
    Warc,
    /// A seqdb container of captures: its data file.
    Seqdb,
}

impl Format {
    /// Whether a plain file of it can be read from the beginning of any item on.
    pub(super) fn has_byte_splits(self) -> bool {
        matches!(self, Format::List(format) if format.is_lines())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "warc" => Ok(Format::Warc),
            "seqdb" => Ok(Format::Seqdb),
            _ => text.parse().map(Format::List).map_err(|e: String| e.replacen(", found", ", warc, seqdb, found", 1)),
        }
    }
}

/// The format of a file, if it can be told: by its first bytes where those are certain, then by its name, then by its first
/// line.
pub fn detect(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<Format>> {
    let mut magic = [0; trawl_seqdb::HEAD_BYTES];
    let n = fs.open(path, Mode::Read)?.read_at(0, &mut magic)?;
    // Before the name: the indexes of a container end in .urls and .idx, and hold none.
    if let Some(purpose) = trawl_seqdb::purpose_of(magic.get(..n).unwrap_or_default()) {
        let is_data = purpose.to_string() == trawl_seqdb::design::PURPOSE_DATA;
        return Ok(is_data.then_some(Format::Seqdb));
    }
    if matches!(trawl_lists::extension(path).as_deref(), Some("warc" | "arc")) {
        return Ok(Some(Format::Warc));
    }
    let looks = trawl_lists::look(fs, path)?;
    if looks.head.starts_with(b"WARC/") || looks.head.starts_with(b"filedesc://") {
        return Ok(Some(Format::Warc));
    }
    Ok(looks.format.map(Format::List))
}

/// The format of a file that is a source by name: a text that says nothing is an empty list.
pub(super) fn format_of(fs: &Arc<dyn Fs>, path: &Path, name: Option<&str>) -> Result<Format> {
    if let Some(format) = detect(fs, path)? {
        return Ok(format);
    }
    let name = name.map_or_else(|| path.to_string_lossy(), Into::into);
    Ok(Format::List(trawl_lists::look(fs, path)?.format_of(&name)?))
}

/// A file as a source of what its format says.
pub(super) fn open_file(file: ListFile, format: Format, options: &Options) -> Result<Box<dyn UrlSource>, DoorError> {
    match format {
        Format::List(format) => trawl_lists::over(file, format, options),
        Format::Warc | Format::Seqdb => Ok(Box::new(ArchiveSource { file })),
    }
}

/// A container of captures is a source by itself. Reading it writes nothing, so it does not ask for the time.
pub(super) fn container(fs: &Arc<dyn Fs>, path: &Path) -> Result<Box<dyn UrlSource>> {
    let settings = Settings::new(Clock::fixed(UnixMillis(0)), "ingest").on(fs.clone());
    let open = || Pages::open(&FsPaths::of(path)?, Access::Read, &settings);
    Ok(Box::new(open().map_err(DoorError::from)?))
}

/// A WARC or ARC file: a record for each capture, as its captures.parquet would have it. Records are found one after the
/// other, so it is one split.
struct ArchiveSource {
    file: ListFile,
}

impl UrlSource for ArchiveSource {
    fn identity(&self) -> SourceIdentity {
        self.file.identity.clone()
    }

    fn splits(&self, _target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        Ok(vec![Split { start: 0, end: self.file.identity.size }])
    }

    fn read(&self, _split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let mut source = WarcSource::over(Arc::new(self.file.bytes()?), Limits::default(), true);
        loop {
            match source.next_owned().map_err(DoorError::from) {
                Ok(None) => return Ok(()),
                Ok(Some((Entry::Other(_), _))) => {}
                Ok(Some((Entry::Capture(mut capture), place))) => {
                    let row = CaptureRow::from_capture(&mut capture, Some(&place));
                    let at = place.offset;
                    each(at, row.map(record).map_err(|e| DoorError::new(Advice::Skip, e).at(place)))?;
                }
                // A damaged record is one item; reading goes on behind it.
                Err(error) if error.advice == Advice::Skip => {
                    let at = error.at.as_ref().map_or_else(|| source.stored_offset(), |place| place.offset);
                    each(at, Err(error))?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// What the lake keeps of a capture: the same as of a row of captures.parquet.
fn record(row: CaptureRow) -> UrlRecord {
    let mut fields = Fields::default();
    let started_at = row.started_at.unwrap_or(row.fetched_at);
    fields.set_ts(UnixMillis(started_at));
    let mut text = |name: &str, text: &str| {
        if !text.is_empty() {
            fields.take(name, Value::Text(text));
        }
    };
    text("url", &row.url);
    text("content_type", &row.content_type);
    text("digest", &row.digest);
    text("error", &row.error);
    for (name, value) in [
        ("error_class", &row.error_class),
        ("truncated", &row.truncated),
        ("redirect_to", &row.redirect_to),
        ("redirect_of", &row.redirect_of),
    ] {
        text(name, value.as_deref().unwrap_or_default());
    }
    text("record_type", row.record_type.as_deref().filter(|kind| *kind != "response").unwrap_or_default());
    if row.unchanged {
        fields.take("unchanged", Value::Json("true"));
    }
    if trawl_lists::is_object(&row.meta_json) {
        fields.take("meta", Value::Json(&row.meta_json));
    }
    let url = row.url.clone();
    let place = row.place();
    // A capture always has a URL, if an empty one: then it is rejected by name.
    let mut record = fields.finish().unwrap_or_else(|| UrlRecord::bare(url));
    record.status = u16::try_from(row.status).ok().filter(|status| *status > 0);
    record.body_length = u64::try_from(row.body_length).ok();
    record.place = place;
    record
}
