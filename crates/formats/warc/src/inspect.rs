//! What is in a file: counts, sizes, statuses, types, hosts, and a sample.

use crate::container::Compression;
use crate::error::Result;
use crate::header::RecordType;
use crate::reader::WarcReader;
use crate::verify::REPORT_EVERY;
use serde_json::json;
use trawl_http::Head;
use trawl_model::{Inspection, OnProgress, Progress};

/// Programs that are named.
const MAX_SOFTWARE: usize = 10;

/// What the records sum up to.
#[derive(Default)]
struct Sums {
    seen: Inspection,
    records: u64,
    block_bytes: u64,
    /// Earliest and latest `WARC-Date`, as written.
    dates: Option<(String, String)>,
    software: Vec<String>,
}

/// Reads a file to its end, keeping `sample` responses, revisits or resources; damage is skipped and listed.
pub(crate) fn inspect(reader: &mut WarcReader, sample: usize, progress: OnProgress<'_>) -> Result<Inspection> {
    let mut sums = Sums::default();
    loop {
        match sums.record(reader, sample) {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) if e.is_damage() => {
                sums.seen.damaged(e.to_string());
                reader.recover_from_here()?;
            }
            Err(e) => return Err(e),
        }
        if sums.records.is_multiple_of(REPORT_EVERY) {
            progress(Progress { records: sums.records, bytes: reader.stored_offset(), total_bytes: 0 });
        }
    }
    let Sums { mut seen, records, block_bytes, dates, software } = sums;
    seen.format = if reader.is_arc() { "arc" } else { "warc" }.into();
    let compression = match reader.compression() {
        Compression::None => "none",
        Compression::Gzip => "gzip",
        Compression::Zstd => "zstd",
    };
    seen.details.insert("compression".into(), compression.into());
    seen.format_note = Some(compression.into());
    seen.fact("records", records);
    seen.fact("stored_bytes", reader.stored_offset());
    seen.fact("block_bytes", block_bytes);
    let (first, last) = dates.unzip();
    seen.fact("first_date", first);
    seen.fact("last_date", last);
    seen.fact("software", software);
    if records == 0 && reader.stored_offset() == 0 && seen.damage.is_empty() {
        seen.remarks.push("the file is empty".into());
    }
    Ok(seen)
}

impl Sums {
    fn record(&mut self, reader: &mut WarcReader, sample: usize) -> Result<bool> {
        let Some(mut record) = reader.next_record()? else { return Ok(false) };
        let header = record.header();
        let record_type = header.record_type();
        let bytes = header.content_length();
        let type_name = header.text("WARC-Type").unwrap_or_default().into_owned();
        let url = header.target_uri().map(|u| u.into_owned()).unwrap_or_default();
        let date = header.text("WARC-Date").unwrap_or_default().into_owned();
        let own_type = header.text("Content-Type").map(|t| t.into_owned());
        let is_http = header.is_http() || header.may_be_http();
        let offset = record.at().offset;
        self.records += 1;
        self.block_bytes += bytes;
        self.seen.tally("types", type_name.clone(), bytes);
        if !date.is_empty() {
            let (first, last) = self.dates.get_or_insert_with(|| (date.clone(), date.clone()));
            if date < *first {
                first.clone_from(&date);
            }
            if date > *last {
                last.clone_from(&date);
            }
        }
        if record_type == RecordType::Warcinfo && self.software.len() < MAX_SOFTWARE && bytes <= 64 << 10 {
            let fields = crate::writer::parse_fields(&record.read_block(64 << 10)?);
            let software = fields.into_iter().find(|(n, _)| n == "software").map(|(_, v)| v);
            self.software.extend(software.filter(|s| !self.software.contains(s)).into_iter().collect::<Vec<_>>());
        }
        if matches!(record_type, RecordType::Response | RecordType::Revisit | RecordType::Resource) {
            let head = if is_http { record.take_http_head()? } else { None };
            let status = head.as_deref().and_then(|h| Head::new(h).status());
            let content_type = match &head {
                Some(head) => Head::new(head).text("Content-Type"),
                None => own_type,
            };
            let counted = (record_type != RecordType::Revisit).then(|| content_type.as_deref().unwrap_or_default());
            self.seen.tally_response(status, counted, &url, bytes);
            if self.seen.sample.len() < sample {
                let row = json!({ "offset": offset, "record_type": type_name, "date": date, "status": status,
                    "content_type": content_type, "block_bytes": bytes, "url": url });
                self.seen.sample.extend(row.as_object().cloned());
            }
        }
        record.finish()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests_common::{captures, sink};
    use trawl_model::CaptureSink;

    #[test]
    fn a_file_is_summed_up() {
        let dir = tempfile::tempdir().unwrap();
        let mut sink = sink(dir.path());
        for capture in captures() {
            sink.write(capture).unwrap();
        }
        let summary = sink.finish().unwrap();
        let mut reader = WarcReader::builder().open(&dir.path().join(&summary.files[0].0)).unwrap();
        let all = inspect(&mut reader, 2, &mut |_| {}).unwrap();
        assert_eq!((all.format.as_str(), &all.details["compression"]), ("warc", &json!("gzip")));
        let stored = json!(summary.files[0].1);
        assert_eq!((&all.facts["records"], &all.facts["stored_bytes"]), (&json!(25), &stored));
        let count = |breakdown: &str, name: &str| all.breakdowns[breakdown][name].count;
        assert_eq!((count("types", "response"), count("content_types", "text/html")), (5, 5));
        assert_eq!((count("statuses", "200"), count("statuses", "304")), (6, 1));
        assert_eq!(count("hosts", "host0.example"), 3);
        assert_eq!(all.facts["software"], json!(["trawl/test"]));
        assert_eq!(all.sample.len(), 2);
        assert!(all.damage.is_empty());
    }
}
