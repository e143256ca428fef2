//! Captures of any archive as URL records, for the lake.

pub(crate) mod others;

use crate::error::{Error, Result};
use std::path::Path;
use trawl_captures::CaptureRow;
use trawl_lists::{BadItem, Fields, Value};
use trawl_model::{
    Advice, Archive, Aside, Asides, DoorError, Entry, Items, Pick, Place, SourceIdentity, Split, UnixMillis, UrlRecord,
    UrlSource,
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
        self.read_all(split, each, &mut |_, _| {})
    }

    fn read_all(&self, split: Split, each: &mut Items<'_>, aside: &mut Asides<'_>) -> Result<(), DoorError> {
        let whole = split == Split { start: 0, end: self.identity.size };
        let pick = if whole { Pick::All } else { Pick::Split(split) };
        let Some(mut source) = self.archive.captures(pick)? else { return Ok(()) };
        if split.start == 0 {
            for (name, count) in self.archive.left_out()? {
                (0..count).for_each(|_| aside(0, Aside::Record(&name)));
            }
        }
        loop {
            // The entry borrows the source: what is kept of it is no longer part of it.
            let next = match source.next_entry() {
                Ok(None) => return Ok(()),
                Ok(Some((Entry::Other(mut other), place))) => match others::row(&mut other, &place) {
                    Ok(row) => Next::Capture(place.offset, Ok(record(row))),
                    Err(kind) => Next::Other(place.offset, kind),
                },
                Ok(Some((Entry::Capture(mut capture), place))) => {
                    let row = CaptureRow::from_capture(&mut capture, Some(&place)).map(record);
                    Next::Capture(
                        place.offset,
                        row.map_err(|e| BadItem::new("capture", e.to_string(), capture.url.as_bytes())),
                    )
                }
                Err(error) => Next::Damage(error),
            };
            match next {
                Next::Other(at, kind) => aside(at, Aside::Record(kind)),
                Next::Capture(at, row) => {
                    each(at, row.map_err(|bad| bad.at(self.place(at))))?;
                    source.beside().iter().for_each(|kind| aside(at, Aside::Record(kind)));
                }
                Next::Damage(error) if error.advice != Advice::Skip => return Err(error),
                Next::Damage(error) => {
                    // A damaged record is one item; reading goes on behind it.
                    let own = error.source.downcast_ref::<trawl_warc::Error>().and_then(|e| e.at()).map(|at| at.offset);
                    let told = error.at.as_ref().map(|place| place.offset).or(own);
                    let offset = told.unwrap_or_else(|| source.position());
                    let url = source.damaged_url().unwrap_or_default();
                    let bad = BadItem::new("damage", error.to_string(), url.as_bytes());
                    each(offset, Err(bad.at(self.place(offset))))?;
                }
            }
        }
    }
}

/// An entry, or why there is none.
enum Next {
    /// Where, and its type: it has no row.
    Other(u64, &'static str),
    Capture(u64, Result<UrlRecord, BadItem>),
    Damage(DoorError),
}

impl ArchiveUrls {
    fn place(&self, offset: u64) -> Place {
        Place::new(self.identity.uri.as_str(), offset, 0)
    }
}

/// What the lake keeps of a capture: the same as of a row of captures.parquet.
fn record(row: CaptureRow) -> UrlRecord {
    let mut fields = Fields::default();
    // A capture whose date could not be read has the first moment there is.
    let started_at = row.started_at.unwrap_or(row.fetched_at);
    if started_at != 0 {
        fields.set_ts(UnixMillis(started_at));
    }
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
