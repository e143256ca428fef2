//! WARC and ARC files: a record for each capture, as their captures.parquet would say it.

use super::fields::{Fields, Names, Value};
use super::text::SourceFile;
use std::sync::Arc;
use trawl_captures::CaptureRow;
use trawl_io::read_at::FileReader;
use trawl_model::{
    Advice, DoorError, Entry, Grown, Items, SourceIdentity, Split, Stamp, UnixMillis, UrlRecord, UrlSource,
};
use trawl_warc::{Limits, WarcSource};

/// An archive file. Records are found one after the other, so it is one split.
#[derive(Debug)]
pub(crate) struct ArchiveSource {
    pub file: SourceFile,
}

impl UrlSource for ArchiveSource {
    fn identity(&self) -> SourceIdentity {
        self.file.identity.clone()
    }

    fn stamp(&self) -> Option<Stamp> {
        self.file.stamp
    }

    fn grown(&self) -> Option<&Grown> {
        self.file.grown.as_ref()
    }

    fn known_by_name(&self) -> Option<&[SourceIdentity]> {
        self.file.known_by_name.as_deref()
    }

    fn splits(&self, _target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        Ok(vec![Split { start: 0, end: self.file.identity.size }])
    }

    fn read(&self, _split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let mut each = self.file.fresh(each);
        let file = FileReader::up_to(self.file.file()?, self.file.identity.size)
            .map_err(|e| DoorError::new(Advice::Stop, e))?;
        let mut source = WarcSource::over(Arc::new(file), Limits::default(), true);
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
            fields.take(Names::General, name, Value::Text(text));
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
        fields.take(Names::General, "unchanged", Value::Json("true"));
    }
    if super::parquet::is_object(&row.meta_json) {
        fields.take(Names::General, "meta", Value::Json(&row.meta_json));
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
