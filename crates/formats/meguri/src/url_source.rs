//! A file as a source of URLs, for lakes and seeds.

use crate::error::Result;
use crate::json;
use crate::manifest::Entry;
use crate::reader::{MeguriFile, Row};
use crate::schema::extension;
use crate::seed::start_of_hour;
use std::sync::Arc;
use trawl_model::{Advice, DoorError, Items, Place, SourceIdentity, Split, UrlRecord, UrlSource};

/// Yields the rows of a file. Splits are ranges of row numbers.
#[derive(Debug, Clone)]
pub struct MeguriSource {
    file: MeguriFile,
    identity: SourceIdentity,
}

impl MeguriSource {
    /// Of an open file, which is called `uri`.
    pub fn new(file: MeguriFile, uri: &str) -> Result<Self> {
        // The footer's checksum covers those of all regions: it changes when any byte does.
        let crc = Entry::of(&file, uri, 0)?.file_crc;
        let identity = SourceIdentity { uri: uri.to_owned(), size: file.len(), tag: format!("crc32c:{crc:08x}") };
        Ok(MeguriSource { file, identity })
    }

    /// Of an open file that a caller knows by another identity.
    pub fn known_as(file: MeguriFile, identity: SourceIdentity) -> Self {
        MeguriSource { file, identity }
    }
}

/// What a lake knows of a row: its last fetch, or when it was found; everything else in the extras.
pub fn record_of(row: &Row) -> std::result::Result<UrlRecord, String> {
    let url =
        String::from_utf8(row.url.to_vec()).map_err(|e| format!("row {}: the URL is not UTF-8: {e}", row.number))?;
    if url.is_empty() {
        return Err(format!("row {}: no URL", row.number));
    }
    let r = &row.record;
    let hour = if r.last_crawled != 0 { r.last_crawled } else { r.first_seen };
    let text = |id| row.texts.iter().find(|(known, _)| *known == id).map(|(_, text)| String::from_utf8_lossy(text));
    let file = text(extension::ARCHIVE_FILE).filter(|file| !file.is_empty());
    let offset = row.numbers.iter().find(|(id, _)| *id == extension::ARCHIVE_OFFSET).map_or(0, |(_, offset)| *offset);
    let mut extras = json::row(row);
    if let Some(extras) = extras.as_object_mut() {
        ["row", "url", "http_status", "archive_file", "archive_offset"]
            .iter()
            .for_each(|name| drop(extras.remove(*name)));
    }
    Ok(UrlRecord {
        url,
        ts: (hour != 0).then_some(start_of_hour(hour)),
        status: (r.http_status != 0).then_some(r.http_status),
        place: file.map(|file| Place::new(file.into_owned(), offset, 0)),
        extras: Some(extras.to_string()),
        ..UrlRecord::default()
    })
}

impl UrlSource for MeguriSource {
    fn identity(&self) -> SourceIdentity {
        self.identity.clone()
    }

    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        let rows = self.file.header().url_count;
        let parts = self.file.len().div_ceil(target_bytes.max(1)).clamp(1, rows.max(1));
        let at = |part: u64| (u128::from(rows) * u128::from(part) / u128::from(parts)) as u64;
        Ok((0..parts).map(|part| Split { start: at(part), end: at(part + 1) }).collect())
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let mut cursor = self.file.cursor_over(split.start..split.end)?;
        while let Some(row) = cursor.next_row()? {
            let place = || Place::new(Arc::from(self.identity.uri.as_str()), row.number, 0);
            let item = match self.file.key_fault(row.number, row.key(), &row.url) {
                Some(fault) => Err(DoorError::new(Advice::Skip, fault)),
                None => record_of(&row).map_err(|why| DoorError::new(Advice::Skip, why)),
            };
            let item = item.map_err(|error| error.at(place()));
            each(row.number, item)?;
        }
        Ok(())
    }
}
