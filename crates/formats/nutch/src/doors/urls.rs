//! URLs of databases, for the lake and for seeds.

use super::carried::number;
use super::layout::{DataFile, Kind, Layout};
use crate::class::{CRAWL_DATUM, FETCH_LIST_ENTRY, FETCHER_OUTPUT, HOST_DATUM, INLINKS, PAGE, canonical};
use crate::legacy::{FetchListEntry, FetcherOutput, Page};
use crate::types::{CrawlDatum, Status, whole};
use crate::{Dialect, Result};
use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use trawl_hadoop::seq::{At, Header, OpenOptions, Span};
use trawl_hadoop::{Decoded, Decoder, class as hadoop};
use trawl_model::{
    Algorithm, Aside, Asides, Digest, DoorError, Items, SourceIdentity, Split, UnixMillis, UrlRecord, UrlSource,
};

/// The URLs of a CrawlDb, a LinkDb, or any other files whose keys are URLs.
pub(super) struct NutchUrls {
    pub layout: Arc<Layout>,
    pub options: OpenOptions,
    pub identity: SourceIdentity,
}

impl NutchUrls {
    /// Whether any of its files contains URLs.
    pub fn is_source(&self) -> Result<bool> {
        Ok(!self.files()?.is_empty())
    }

    /// Files whose records are not about URLs, such as the links of a web database.
    fn others(&self) -> Result<Vec<PathBuf>> {
        let told = self.files()?;
        let current = self.layout.current_files().iter().map(|file| file.path.clone());
        Ok(current.filter(|path| told.iter().all(|(file, _)| file.path != *path)).collect())
    }

    /// Each file that contains URLs, which part of how many it is, and where it begins and ends in the whole.
    fn files(&self) -> Result<Vec<(DataFile, Span)>> {
        let mut start = 0;
        let mut files = Vec::new();
        let mut other = None;
        for file in self.layout.current_files() {
            let reader = self.options.open(&file.path)?;
            if tells_of_urls(reader.header()) {
                let end = start + reader.file_len();
                files.push((file.clone(), Span { start, end }));
                start = end;
            } else {
                other = other.or_else(|| Some((file.path.clone(), reader.header().stored_value_class.clone())));
            }
        }
        // All parts of one output hold the same: one that does not is damaged, and its URLs must not vanish.
        match other.filter(|_| !files.is_empty() && matches!(self.layout.kind, Kind::Database | Kind::Parts)) {
            Some((path, class)) => {
                let why = format!("a part with values of class {class:?} beside parts that tell of URLs");
                Err(crate::Error::refused(&path, why))
            }
            None => Ok(files),
        }
    }
}

/// Whether keys are URLs, or values name them.
fn tells_of_urls(header: &Header) -> bool {
    let value = canonical(&header.stored_value_class);
    match header.key_class().as_str() {
        hadoop::TEXT | hadoop::UTF8 => value.starts_with("org.apache.nutch.") && value != HOST_DATUM,
        _ => matches!(&*value, FETCH_LIST_ENTRY | FETCHER_OUTPUT),
    }
}

impl UrlSource for NutchUrls {
    fn identity(&self) -> SourceIdentity {
        self.identity.clone()
    }

    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        let mut splits = Vec::new();
        for (_, span) in self.files()? {
            super::cut(span, target_bytes, &mut splits);
        }
        Ok(splits)
    }

    fn read_all(&self, split: Split, each: &mut Items<'_>, aside: &mut Asides<'_>) -> Result<(), DoorError> {
        if split.start == 0 {
            for (name, count) in super::left_out::count_files(&self.layout, &self.others()?, &self.options)? {
                (0..count).for_each(|_| aside(0, Aside::Record(&name)));
            }
        }
        self.read(split, each)
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let files = self.files()?;
        if split.start == 0 {
            for fault in self.layout.emptied() {
                each(0, Err(fault.into()))?;
            }
            for fault in super::source::lost_parts(files.iter().map(|(file, _)| file), &self.options) {
                each(0, Err(fault.into()))?;
            }
        }
        for (DataFile { path, .. }, Span { start, end }) in files {
            let (from, to) = (split.start.max(start), split.end.min(end));
            if from >= to {
                continue;
            }
            let mut reader = self.options.open(&path)?;
            reader.split(Span { start: from - start, end: to - start })?;
            let class = canonical(&reader.header().stored_value_class).into_owned();
            let is_utf8 = reader.header().key_class() == hadoop::UTF8;
            let mut dialect = Dialect::default();
            loop {
                let read = match reader.next_record() {
                    Ok(Some(read)) => read,
                    Ok(None) => break,
                    Err(error) if error.is_damage() => {
                        let at = start + error.offset().unwrap_or(from - start);
                        reader.resync()?;
                        each(at, Err(error.into()))?;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                let At { offset, index } = read.at;
                let made = record(&class, is_utf8, read.key, read.value, &mut dialect).map_err(|source| {
                    let (file, class) = (path.clone(), class.clone());
                    crate::Error::Value { file, offset, index, class, source }.into()
                });
                each(start + offset, made)?;
            }
        }
        Ok(())
    }
}

/// What the lake gets of a record.
fn record(class: &str, is_utf8: bool, key: &[u8], value: &[u8], dialect: &mut Dialect) -> Decoded<UrlRecord> {
    // Bytes that are not UTF-8 would become a character that stands for them, and two URLs one.
    let url = || {
        let url = whole(key, |d| if is_utf8 { d.utf8("a URL") } else { d.text("a URL") })?;
        let text = std::str::from_utf8(url.as_bytes()).map(str::to_owned);
        text.map_err(|e| Decoder::new(key).error("a URL in UTF-8", format!("{:?}: {e}", url.to_str())))
    };
    let mut record = UrlRecord::default();
    let mut extras = Map::new();
    match class {
        FETCH_LIST_ENTRY => page(&whole(value, FetchListEntry::decode)?.page, &mut record, &mut extras),
        FETCHER_OUTPUT => {
            let output = whole(value, FetcherOutput::decode)?;
            page(&output.entry.page, &mut record, &mut extras);
            record.ts = Some(UnixMillis(output.fetch_date)).filter(|t| t.0 > 0);
        }
        PAGE => page(&whole(value, Page::decode)?, &mut record, &mut extras),
        CRAWL_DATUM => {
            record.url = url()?;
            datum(&whole(value, CrawlDatum::decode)?, &mut record, &mut extras);
        }
        INLINKS => {
            record.url = url()?;
            extras.insert("inlinks".into(), dialect.inlinks(value)?.0.len().into());
        }
        _ => record.url = url()?,
    }
    if !extras.is_empty() {
        record.extras = Some(Value::from(extras).to_string());
    }
    Ok(record)
}

fn datum(c: &CrawlDatum<'_>, record: &mut UrlRecord, extras: &mut Map<String, Value>) {
    let status = c.status();
    // A CrawlDb says when to fetch next; everything else when it was fetched.
    let fetched = match status {
        Status::DB_UNFETCHED => None,
        _ if status.is_db() => Some(c.fetch_time.saturating_sub(i64::from(c.interval.seconds()).saturating_mul(1000))),
        _ => Some(c.fetch_time),
    };
    record.ts = fetched.filter(|t| *t > 0).map(UnixMillis);
    record.digest = Digest::new(Algorithm::Md5, &c.signature);
    record.status = c.metadata.get("nutch.protocol.code").and_then(|code| code.as_text()?.to_str().parse().ok());
    record.content_type = c.metadata.get("Content-Type").and_then(|value| value.as_text().map(|text| text.to_string()));
    extras.insert("nutch_status".into(), status.name().into());
    extras.insert("fetch_time".into(), UnixMillis(c.fetch_time).to_string().into());
    extras.insert("interval_seconds".into(), c.interval.seconds().into());
    extras.insert("score".into(), number(c.score));
    if c.retries != 0 {
        extras.insert("retries".into(), c.retries.into());
    }
    if c.modified_time != 0 {
        extras.insert("modified_time".into(), UnixMillis(c.modified_time).to_string().into());
    }
    if !c.signature.is_empty() && record.digest.is_none() {
        extras.insert("signature".into(), HEXLOWER.encode(&c.signature).into());
    }
    // What could not be understood stays as it is.
    let is_told = |name: &str| match name {
        "nutch.protocol.code" => record.status.is_some(),
        "Content-Type" => record.content_type.is_some(),
        _ => false,
    };
    let mut metadata = Map::new();
    for (key, value) in c.metadata.entries() {
        let name = crate::tools::text::any(key);
        if !is_told(&name) {
            metadata.insert(name, crate::tools::text::any(value).into());
        }
    }
    if !metadata.is_empty() {
        extras.insert("metadata".into(), metadata.into());
    }
}

fn page(p: &Page<'_>, record: &mut UrlRecord, extras: &mut Map<String, Value>) {
    record.url = p.url.to_string();
    record.digest = Digest::new(Algorithm::Md5, &p.md5);
    extras.insert("fetch_time".into(), UnixMillis(p.next_fetch).to_string().into());
    extras.insert("score".into(), number(p.score));
}
