//! Captures of any archive as URL records, for the lake.

use crate::error::{Error, Result};
use std::path::Path;
use trawl_captures::CaptureRow;
use trawl_lists::{Fields, Value};
use trawl_model::{
    Advice, Archive, DoorError, Entry, Items, Pick, SourceIdentity, Split, UnixMillis, UrlRecord, UrlSource,
};

/// A container as a source of URLs: a record for each capture, as its captures.parquet would have it.
struct ArchiveUrls {
    archive: Box<dyn Archive>,
    identity: SourceIdentity,
}

/// The URLs of an archive that lies at `path` and is known as `identity`.
pub fn urls(archive: Box<dyn Archive>, path: &Path, identity: SourceIdentity) -> Result<Box<dyn UrlSource>> {
    if let Some(own) = archive.urls(&identity)? {
        return Ok(own);
    }
    if archive.captures(Pick::All)?.is_none() {
        return Err(Error::NoCaptures { path: path.to_owned() }.into());
    }
    Ok(Box::new(ArchiveUrls { archive, identity }))
}

impl UrlSource for ArchiveUrls {
    fn identity(&self) -> SourceIdentity {
        self.identity.clone()
    }

    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        let splits = self.archive.splits(target_bytes)?;
        Ok(if splits.is_empty() { vec![Split { start: 0, end: self.identity.size }] } else { splits })
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let whole = split == Split { start: 0, end: self.identity.size };
        let pick = if whole { Pick::All } else { Pick::Split(split) };
        let Some(mut source) = self.archive.captures(pick)? else { return Ok(()) };
        loop {
            let error = match source.next_entry() {
                Ok(None) => return Ok(()),
                Ok(Some((Entry::Other(_), _))) => continue,
                Ok(Some((Entry::Capture(mut capture), place))) => {
                    let row = CaptureRow::from_capture(&mut capture, Some(&place));
                    let at = place.offset;
                    each(at, row.map(record).map_err(|e| DoorError::new(Advice::Skip, e).at(place)))?;
                    continue;
                }
                Err(error) => error,
            };
            if error.advice != Advice::Skip {
                return Err(error);
            }
            // A damaged record is one item; reading goes on behind it.
            each(error.at.as_ref().map_or_else(|| source.position(), |place| place.offset), Err(error))?;
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
