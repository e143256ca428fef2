//! `readseg` over segments of 0.4 to 0.7. Their pages have numbers; the tools of those releases print other texts, so that the
//! form of later ones is kept.

use super::readseg::{SegmentFacts, write_io};
use super::text;
use crate::legacy::{FetcherOutput, FetcherStatus, LegacyPage, LegacySegment};
use crate::segment::SegmentPart;
use crate::types::whole;
use crate::{Error, RecordPrinter, Result};
use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;
use trawl_hadoop::java_text::{date_utc, float};
use trawl_hadoop::json::Detail;
use trawl_hadoop::map::data_path;
use trawl_hadoop::seq::{OpenOptions, Reader};

/// Directories, and what later releases call them.
const DIRECTORIES: [(&str, SegmentPart); 8] = [
    ("fetchlist", SegmentPart::CrawlGenerate),
    ("fetcher", SegmentPart::CrawlFetch),
    ("fetcher_output", SegmentPart::CrawlFetch),
    ("content", SegmentPart::Content),
    ("fetcher_content", SegmentPart::Content),
    ("parse_data", SegmentPart::ParseData),
    ("parse_text", SegmentPart::ParseText),
    ("fetcher_text", SegmentPart::ParseText),
];

/// The files of a segment, with their directories.
fn readers(dir: &Path, without: &[SegmentPart], options: &OpenOptions) -> Result<Vec<(&'static str, Reader)>> {
    let mut all = Vec::new();
    for (name, part) in DIRECTORIES {
        let path = data_path(&dir.join(name));
        if !without.contains(&part) && options.fs.exists(&path)? {
            all.push((name, options.open(&path)?));
        }
    }
    Ok(all)
}

/// Faults that tell of directories whose file is not there: without a word, they would pass for ones that were never stored.
pub fn legacy_missing(dir: &Path, without: &[SegmentPart], options: &OpenOptions) -> Result<Vec<Error>> {
    let mut faults = Vec::new();
    for (name, _) in DIRECTORIES.iter().filter(|(_, part)| !without.contains(part)) {
        let path = dir.join(name);
        if options.fs.exists(&path)? && !options.fs.exists(&data_path(&path))? {
            faults.push(Error::corrupt(&path, 0, "data", "none: parts are missing"));
        }
    }
    Ok(faults)
}

/// `-list` of a segment of 0.4 to 0.7.
pub fn legacy_facts(dir: &Path, without: &[SegmentPart], options: &OpenOptions) -> Result<SegmentFacts> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut facts = SegmentFacts { name, generated: None, fetched: None, start: None, end: None, parsed: None };
    for (name, mut reader) in readers(dir, without, options)? {
        let mut records = 0u64;
        while reader.advance()? {
            records += 1;
            if name.starts_with("fetcher") && name != "fetcher_text" && name != "fetcher_content" {
                let time = output_of(&mut reader)?.fetch_date;
                facts.start = Some(facts.start.map_or(time, |start| start.min(time)));
                facts.end = Some(facts.end.map_or(time, |end| end.max(time)));
            }
        }
        match name {
            "fetchlist" => facts.generated = Some(records),
            "fetcher" | "fetcher_output" => facts.fetched = Some(records),
            // 0.4 keeps titles and links with the fetch: a page with a text was parsed.
            "parse_data" | "fetcher_text" => facts.parsed = Some(records),
            _ => {}
        }
    }
    Ok(facts)
}

fn output_of(reader: &mut Reader) -> Result<FetcherOutput<'static>> {
    let (file, class) = (reader.path().to_owned(), reader.header().stored_value_class.clone());
    let record = reader.record()?;
    let (offset, index) = (record.at.offset, record.at.index);
    whole(record.value, FetcherOutput::decode).map(FetcherOutput::into_owned).map_err(|source| Error::Value {
        file,
        offset,
        index,
        class,
        source,
    })
}

/// `-dump`, or `-get` of one URL: every page that is wanted, with everything the segment has of it. Returns their number.
pub fn dump_legacy(
    dir: &Path,
    url: Option<&str>,
    without: &[SegmentPart],
    options: &OpenOptions,
    out: &mut dyn Write,
) -> Result<u64> {
    let mut segment = LegacySegment::open(dir, options)?;
    let mut pages = 0u64;
    while let Some(page) = segment.next_page()? {
        if url.is_some_and(|url| page.output.entry.page.url != *url) {
            continue;
        }
        write_io(
            dir,
            write!(out, "\nRecno:: {pages}\nURL:: {}\n{}\n", page.output.entry.page.url, of_page(&page, without)),
        )?;
        pages += 1;
    }
    Ok(pages)
}

fn of_page(page: &LegacyPage, without: &[SegmentPart]) -> String {
    let has = |part| !without.contains(&part);
    let mut text = String::new();
    let mut section = |heading: &str, body: String| text += &format!("\n{heading}::\n{body}");
    if has(SegmentPart::CrawlGenerate) {
        section("FetchListEntry", listed(&page.output));
    }
    if has(SegmentPart::CrawlFetch) {
        section("FetcherOutput", fetched(&page.output));
    }
    if let Some(content) = page.content.as_ref().filter(|_| has(SegmentPart::Content)) {
        section("Content", text::content(content));
    }
    if let Some(data) = page.data.as_ref().filter(|_| has(SegmentPart::ParseData)) {
        section("ParseData", text::parse_data(data));
    }
    if let Some(parsed) = page.text.as_ref().filter(|_| has(SegmentPart::ParseText)) {
        section("ParseText", parsed.0.to_string());
    }
    text
}

fn listed(output: &FetcherOutput<'_>) -> String {
    let page = &output.entry.page;
    let mut text = format!(
        "Fetch: {}\nNext fetch: {}\nRetries since fetch: {}\nRetry interval: {} days\nScore: {}\nNext score: {}\n\
         Outlinks: {}\nMD5: {}\n",
        output.entry.fetch,
        date_utc(page.next_fetch),
        page.retries,
        page.fetch_interval,
        float(page.score),
        float(page.next_score),
        page.num_outlinks,
        HEXLOWER.encode(&page.md5),
    );
    output.entry.anchors.iter().for_each(|anchor| text += &format!("Anchor: {anchor}\n"));
    text
}

fn fetched(output: &FetcherOutput<'_>) -> String {
    let status = match &output.status {
        FetcherStatus::Code(code) => code.to_string(),
        FetcherStatus::Protocol(status) => status.to_string(),
    };
    let (date, md5) = (date_utc(output.fetch_date), HEXLOWER.encode(&output.md5));
    format!("Version: {}\nStatus: {status}\nFetch date: {date}\nMD5: {md5}\n", output.version)
}

/// `-dump` as JSON: hands over every record with the directory and the number of its page.
pub fn dump_legacy_json(
    dir: &Path,
    without: &[SegmentPart],
    options: &OpenOptions,
    each: &mut dyn FnMut(Value) -> Result<()>,
) -> Result<u64> {
    let mut records = 0;
    for (name, mut reader) in readers(dir, without, options)? {
        let mut printer = RecordPrinter::new(reader.header(), Detail::Full);
        while reader.advance()? {
            let mut line = printer.print(&reader.record()?);
            if let Some(why) = printer.damage() {
                return Err(Error::corrupt(reader.path(), reader.at().offset, "a whole record", why));
            }
            let mut take = |name: &str| line.get_mut(name).map(Value::take).unwrap_or_default();
            each(json!({ "part": name, "page": take("key"), "value": take("value") }))?;
            records += 1;
        }
    }
    Ok(records)
}

/// `-get` as JSON: values by directory, of the pages of this URL.
pub fn get_legacy_json(dir: &Path, url: &str, options: &OpenOptions) -> Result<Value> {
    let mut wanted = Vec::new();
    for (_, mut reader) in
        readers(dir, &[], options)?.into_iter().filter(|(name, _)| matches!(*name, "fetcher" | "fetcher_output"))
    {
        while reader.advance()? {
            if output_of(&mut reader)?.entry.page.url == *url {
                wanted.push(reader.key().to_vec());
            }
        }
    }
    let mut found = Map::new();
    for (name, mut reader) in readers(dir, &[], options)? {
        let mut printer = RecordPrinter::new(reader.header(), Detail::Full);
        let mut values = Vec::new();
        while reader.advance()? {
            let mut line = printer.print(&reader.record()?);
            if wanted.iter().any(|key| key == reader.key()) {
                values.extend(line.get_mut("value").map(Value::take));
            }
        }
        if !values.is_empty() {
            found.insert(name.into(), values.into());
        }
    }
    Ok(json!({ "url": url, "found": found }))
}
