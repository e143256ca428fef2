//! `readdb -dump`: every URL with its state, as text, CSV or JSON, or as a CrawlDb again.

use super::{Filter, text};
use crate::Result;
use crate::db::{Compress, Place, entry};
use crate::types::{CrawlDatum, whole};
use data_encoding::HEXLOWER;
use std::io::{self, Write};
use std::path::Path;
use trawl_hadoop::Text;
use trawl_hadoop::java_text::{date_utc, float};
use trawl_hadoop::map::{MapWriter, MapWriterOptions, data_path};
use trawl_hadoop::seq::{Marker, OpenOptions, WriterOptions};

/// How a dump is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DumpFormat {
    /// URL, tab, the datum's text.
    #[default]
    Normal,
    /// One line a URL, with a header line in every part.
    Csv,
    /// One object a line.
    Json,
}

/// What a part begins with.
pub fn write_dump_header(format: DumpFormat, out: &mut dyn Write) -> io::Result<()> {
    if format == DumpFormat::Csv {
        writeln!(
            out,
            "Url,Status code,Status name,Fetch Time,Modified Time,Retries since fetch,Retry interval seconds,Retry \
             interval days,Score,Signature,Metadata"
        )?;
    }
    Ok(())
}

/// `-format crawldb`: writes the wanted records of the MapFile `part` as the MapFile `out`, keys and values as they are.
/// `markers` are those of its two files. `on_record` gets the number of records read. Returns how many were written.
pub fn copy_part(
    part: &Path,
    options: &OpenOptions,
    filter: &mut Filter,
    out: &Path,
    markers: [Marker; 2],
    on_record: &mut dyn FnMut(u64),
) -> Result<u64> {
    let mut reader = options.open(&data_path(part))?;
    let [data, index] = markers;
    let (key, value) = (&reader.header().stored_key_class, &reader.header().stored_value_class);
    let data = WriterOptions { fs: options.fs.clone(), ..WriterOptions::new(key, value, data) };
    let data = data.pack(Compress::Nutch.pack(Place::CrawlDb));
    let mut writer = MapWriter::create(out, MapWriterOptions::new(data, index))?;
    let mut read = 0;
    while reader.advance()? {
        let entry = entry(&mut reader)?;
        let datum = whole(entry.value, CrawlDatum::decode).map_err(|e| entry.error(e))?;
        if filter.wants(&entry.key, &datum) {
            let record = reader.loaded_record();
            writer.append(record.key, record.value)?;
        }
        read += 1;
        on_record(read);
    }
    Ok(writer.finish()?.records)
}

/// One URL. In CSV the reference prints leftovers of longer URLs behind a URL; here is the URL only.
pub fn write_dumped(format: DumpFormat, url: &Text<'_>, c: &CrawlDatum<'_>, out: &mut dyn Write) -> io::Result<()> {
    let seconds = c.interval.seconds();
    let signature = if c.signature.is_empty() { "null".into() } else { HEXLOWER.encode(&c.signature) };
    let (fetch, modified) = (date_utc(c.fetch_time), date_utc(c.modified_time));
    let (status, name, score) = (c.status().0, c.status().name(), float(c.score));
    match format {
        DumpFormat::Normal => writeln!(out, "{url}\t{}", text::datum(c)),
        DumpFormat::Csv => {
            let pair = |(k, v): &(trawl_hadoop::Any<'_>, trawl_hadoop::Any<'_>)| {
                format!("{}:{}|||", text::any(k), text::any(v))
            };
            let metadata: String = c.metadata.entries().iter().map(pair).collect();
            let (interval, days) = (float(seconds as f32), float((seconds / 86_400) as f32));
            writeln!(
                out,
                "\"{url}\",{status},\"{name}\",{fetch},{modified},{},{interval},{days},{score},\"{signature}\",\"{metadata}\"",
                c.retries,
            )
        }
        DumpFormat::Json => {
            let pair = |(k, v): &(trawl_hadoop::Any<'_>, trawl_hadoop::Any<'_>)| {
                format!("{}: {}", text::json_string(&text::any(k)), text::json_any(v))
            };
            let metadata: Vec<_> = c.metadata.entries().iter().map(pair).collect();
            let score = if c.score.is_finite() { score } else { format!("\"{score}\"") };
            writeln!(
                out,
                "{{\"url\": {}, \"statusCode\": {status}, \"statusName\": \"{name}\", \"fetchTime\": \"{fetch}\", \
                 \"modifiedTime\": \"{modified}\", \"retriesSinceFetch\": {}, \"retryIntervalSeconds\": {seconds}, \
                 \"retryIntervalDays\": {}, \"score\": {score}, \"signature\": \"{signature}\", \"metadata\": {{{}}}}}",
                text::json_string(&url.to_str()),
                c.retries,
                seconds / 86_400,
                metadata.join(", "),
            )
        }
    }
}
