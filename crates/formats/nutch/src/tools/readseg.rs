//! `readseg -list`, `-dump` and `-get`.

use super::text;
use crate::class::NutchClasses;
use crate::segment::{Segment, SegmentPart};
use crate::types::{Content, CrawlDatum, ParseText, whole};
use crate::{Dialect, Error, Result};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use trawl_hadoop::json::{Detail, JsonClasses as _};
use trawl_hadoop::parts::part_of_text;
use trawl_hadoop::seq::OpenOptions;
use trawl_hadoop::{Decoded, Encode, Text};
use trawl_model::UnixMillis;
use trawl_sort::Sorter;

/// The first line of `-list`.
pub fn list_header() -> &'static str {
    "NAME\t\tGENERATED\tFETCHER START\t\tFETCHER END\t\tFETCHED\tPARSED"
}

/// What `-list` says of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFacts {
    /// The segment's name.
    pub name: String,
    /// URLs that were to be fetched; `None` where the directory is missing.
    pub generated: Option<u64>,
    /// Records of crawl_fetch, links found by redirects included; `None` where the directory is missing.
    pub fetched: Option<u64>,
    /// First fetch, milliseconds since 1970.
    pub start: Option<i64>,
    /// Last fetch, milliseconds since 1970.
    pub end: Option<i64>,
    /// Pages that were parsed; `None` where the directory is missing.
    pub parsed: Option<u64>,
}

impl SegmentFacts {
    /// Reads a segment through, except the directories `without`.
    pub fn of(segment: &Segment, without: &[SegmentPart]) -> Result<Self> {
        let wanted = |part| !without.contains(&part);
        let count = |part| if wanted(part) { count(segment, part) } else { Ok(None) };
        let mut facts = SegmentFacts {
            name: segment.name(),
            generated: count(SegmentPart::CrawlGenerate)?,
            fetched: None,
            start: None,
            end: None,
            parsed: count(SegmentPart::ParseData)?,
        };
        if segment.has(SegmentPart::CrawlFetch) && wanted(SegmentPart::CrawlFetch) {
            let mut fetched = 0;
            let mut scan = segment.scan(SegmentPart::CrawlFetch)?;
            while let Some(entry) = scan.next_entry()? {
                let datum = whole(entry.value, CrawlDatum::decode).map_err(|e| entry.error(e))?;
                fetched += 1;
                facts.start = Some(facts.start.map_or(datum.fetch_time, |t| t.min(datum.fetch_time)));
                facts.end = Some(facts.end.map_or(datum.fetch_time, |t| t.max(datum.fetch_time)));
            }
            facts.fetched = Some(fetched);
        }
        Ok(facts)
    }

    /// A line of `-list`.
    pub fn line(&self) -> String {
        let number = |n: Option<u64>| n.map_or_else(|| "?".into(), |n| n.to_string());
        let time = |t: Option<i64>| t.map(|t| UnixMillis(t).rfc3339_seconds().trim_end_matches('Z').to_owned());
        format!(
            "{}\t{}\t\t{}\t{}\t{}\t{}",
            self.name,
            number(self.generated),
            time(self.start).unwrap_or_else(|| "?\t".into()),
            time(self.end).unwrap_or_else(|| "?".into()),
            number(self.fetched),
            number(self.parsed),
        )
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "generated": self.generated,
            "fetched": self.fetched,
            "fetcherStart": self.start.map(|t| UnixMillis(t).to_string()),
            "fetcherEnd": self.end.map(|t| UnixMillis(t).to_string()),
            "parsed": self.parsed,
        })
    }
}

fn count(segment: &Segment, part: SegmentPart) -> Result<Option<u64>> {
    if !segment.has(part) {
        return Ok(None);
    }
    let mut scan = segment.scan(part)?;
    let mut records = 0;
    while scan.advance()? {
        records += 1;
    }
    Ok(Some(records))
}

/// Heading and text of a value, as `-dump` prints it.
fn section(part: SegmentPart, value: &[u8], dialect: &mut Dialect) -> Decoded<(&'static str, String)> {
    Ok(match part {
        SegmentPart::CrawlGenerate | SegmentPart::CrawlFetch | SegmentPart::CrawlParse => {
            ("CrawlDatum", text::datum_of(value)?)
        }
        SegmentPart::Content => ("Content", text::content(&whole(value, Content::decode)?)),
        SegmentPart::ParseData => ("ParseData", text::parse_data(&dialect.parse_data(value)?)),
        SegmentPart::ParseText => ("ParseText", whole(value, ParseText::decode)?.0.to_string()),
    })
}

/// `-get`: everything about one URL. Returns how many values were found.
pub fn write_get(segment: &mut Segment, url: &str, out: &mut dyn Write) -> Result<u64> {
    let headings = [
        (SegmentPart::Content, "Content"),
        (SegmentPart::CrawlGenerate, "Crawl Generate"),
        (SegmentPart::CrawlFetch, "Crawl Fetch"),
        (SegmentPart::CrawlParse, "Crawl Parse"),
        (SegmentPart::ParseData, "ParseData"),
        (SegmentPart::ParseText, "ParseText"),
    ];
    let path = segment.path().to_owned();
    let mut found = 0;
    let mut dialect = Dialect::default();
    for (part, heading) in headings {
        for value in segment.get(part, url.as_bytes())? {
            let (_, text) = section(part, &value, &mut dialect)
                .map_err(|e| Error::refused(&path, format!("{} of {url}: {e}", part.name())))?;
            found += 1;
            write_io(&path, writeln!(out, "{heading}::\n{text}"))?;
        }
    }
    Ok(found)
}

/// `-get` as JSON: values by directory.
pub fn get_json(segment: &mut Segment, url: &str) -> Result<Value> {
    let path = segment.path().to_owned();
    let mut all = serde_json::Map::new();
    for part in SegmentPart::ALL {
        let mut values = Vec::new();
        for value in segment.get(part, url.as_bytes())? {
            values.push(part_json(part, &value).map_err(|e| Error::refused(&path, e.to_string()))?);
        }
        if !values.is_empty() {
            all.insert(part.name().into(), values.into());
        }
    }
    Ok(json!({ "url": url, "found": all }))
}

fn part_json(part: SegmentPart, value: &[u8]) -> Decoded<Value> {
    match part {
        SegmentPart::ParseData => Dialect::default().json(part.class(), value, Detail::Full),
        _ => whole(value, |d| NutchClasses.json(part.class(), d, Detail::Full)),
    }
}

/// What a dump may use, and what it leaves out.
#[derive(Debug, Clone)]
pub struct DumpSettings {
    /// Directories to leave out.
    pub without: Vec<SegmentPart>,
    /// Memory for bringing the values of a URL together.
    pub memory_bytes: usize,
    /// Directory for what does not fit.
    pub temp_dir: PathBuf,
    /// URLs are sorted inside so many parts, as the reduce tasks of the reference leave them.
    pub parts: u32,
}

/// Values of this size and more are read again when their turn comes, instead of being sorted.
const LARGE: usize = 256 << 10;

/// `-dump`: every URL with everything the segment has of it. Returns the number of URLs.
pub fn dump_segment(
    segment: &Segment,
    options: &OpenOptions,
    settings: &DumpSettings,
    out: &mut dyn Write,
) -> Result<u64> {
    let mut sorter =
        Sorter::builder(&settings.temp_dir).fs(options.fs.clone()).memory_bytes(settings.memory_bytes).build()?;
    let mut files: Vec<PathBuf> = Vec::new();
    let (mut key, mut payload) = (Vec::new(), Vec::new());
    // Datums of parsing come first, then those of the fetch and the list, as the reference usually has them.
    let order = [
        SegmentPart::CrawlParse,
        SegmentPart::CrawlFetch,
        SegmentPart::CrawlGenerate,
        SegmentPart::Content,
        SegmentPart::ParseData,
        SegmentPart::ParseText,
    ];
    for (number, part) in order.into_iter().enumerate().filter(|(_, part)| !settings.without.contains(part)) {
        let mut scan = segment.scan(part)?;
        while let Some(entry) = scan.next_entry()? {
            if files.last().is_none_or(|last| last != entry.file) {
                files.push(entry.file.to_owned());
            }
            key.clear();
            key.put(&part_of_text(entry.key.as_bytes(), settings.parts).to_be_bytes());
            key.put(entry.key.as_bytes());
            payload.clear();
            payload.put_u8(number as u8);
            payload.put_bool(entry.value.len() >= LARGE);
            if entry.value.len() < LARGE {
                payload.put(entry.value);
            } else {
                payload.put_i64(files.len() as i64 - 1);
                payload.put_i64(entry.at.offset.cast_signed());
                payload.put_i64(i64::from(entry.at.index));
            }
            sorter.push(&key, &payload)?;
        }
    }
    let path = segment.path();
    let (mut last, mut urls) = (None::<Vec<u8>>, 0u64);
    let mut dialect = Dialect::default();
    let mut sorted = sorter.finish()?;
    while let Some(record) = sorted.next_record()? {
        let url = Text::new(record.key.get(4..).unwrap_or_default());
        if last.as_deref() != Some(record.key) {
            if urls > 0 {
                write_io(path, writeln!(out))?;
            }
            write_io(path, writeln!(out, "\nRecno:: {urls}\nURL:: {url}"))?;
            urls += 1;
            last = Some(record.key.to_vec());
        }
        let damaged = || Error::refused(path, "a sorted record came back damaged");
        let (number, rest) = record.value.split_first().ok_or_else(damaged)?;
        let part = order.get(usize::from(*number)).copied().ok_or_else(damaged)?;
        let mut large = Vec::new();
        let value = match rest.split_first().ok_or_else(damaged)? {
            (0, value) => value,
            (_, place) => {
                read_again(place, &files, options, &mut large)?.ok_or_else(damaged)?;
                &large
            }
        };
        let (heading, text) = section(part, value, &mut dialect)
            .map_err(|e| Error::refused(path, format!("{} of {url}: {e}", part.name())))?;
        write_io(path, write!(out, "\n{heading}::\n{text}"))?;
    }
    if urls > 0 {
        write_io(path, writeln!(out))?;
    }
    Ok(urls)
}

/// Reads a value by the place that was sorted in its stead.
fn read_again(place: &[u8], files: &[PathBuf], options: &OpenOptions, out: &mut Vec<u8>) -> Result<Option<()>> {
    let mut d = trawl_hadoop::Decoder::new(place);
    let mut number = || d.i64("place").ok().and_then(|n| u64::try_from(n).ok());
    let (Some(file), Some(offset), Some(index)) = (number(), number(), number()) else { return Ok(None) };
    let Some(file) = usize::try_from(file).ok().and_then(|n| files.get(n)) else { return Ok(None) };
    let mut reader = options.open(file)?;
    reader.seek(offset);
    for _ in 0..=index {
        if !reader.advance()? {
            return Ok(None);
        }
    }
    out.clear();
    out.extend_from_slice(reader.value()?);
    Ok(Some(()))
}

pub(super) fn write_io(path: &Path, result: io::Result<()>) -> Result<()> {
    result.map_err(|e| trawl_io::Error::io(trawl_io::Op::Write, path, e).into())
}
