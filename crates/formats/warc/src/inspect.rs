//! What is in a file: counts, sizes, statuses, types, hosts, and a sample.

use crate::container::Compression;
use crate::error::Result;
use crate::header::RecordType;
use crate::reader::WarcReader;
use crate::verify::{Progress, REPORT_EVERY};
use std::collections::BTreeMap;
use trawl_http::Head;

/// How many different hosts and types are told apart; what comes after counts as `other`.
const MAX_NAMES: usize = 100_000;

/// Records and bytes under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Bytes of their blocks.
    pub bytes: u64,
}

/// One record of the sample.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Sample {
    /// Its type.
    pub record_type: String,
    /// Its target.
    pub url: String,
    /// Its date as written.
    pub date: String,
    /// HTTP status, where there is one.
    pub status: Option<u16>,
    /// Media type, where there is one.
    pub content_type: Option<String>,
    /// Bytes of its block.
    pub block_bytes: u64,
    /// Where it lies.
    pub offset: u64,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Inspection {
    /// `warc` or `arc`.
    pub format: String,
    /// `none`, `gzip` or `zstd`.
    pub compression: String,
    /// Stored bytes.
    pub stored_bytes: u64,
    /// Records.
    pub records: u64,
    /// Bytes of all blocks.
    pub block_bytes: u64,
    /// Records by type.
    pub types: BTreeMap<String, Tally>,
    /// Responses and revisits by HTTP status.
    pub statuses: BTreeMap<u16, Tally>,
    /// Responses by media type.
    pub content_types: BTreeMap<String, Tally>,
    /// Responses and revisits by host.
    pub hosts: BTreeMap<String, Tally>,
    /// Earliest `WARC-Date`, as written.
    pub first_date: Option<String>,
    /// Latest `WARC-Date`, as written.
    pub last_date: Option<String>,
    /// What the `warcinfo` records say of the software.
    pub software: Vec<String>,
    /// The first records that are responses, revisits or resources.
    pub sample: Vec<Sample>,
    /// Places where nothing could be read: message of each, the first hundred.
    pub damage: Vec<String>,
}

impl Inspection {
    /// Reads a file to its end, keeping `sample` records; damage is skipped and listed.
    pub fn of(reader: &mut WarcReader, sample: usize, progress: &mut dyn FnMut(Progress)) -> Result<Self> {
        let mut all = Inspection::default();
        loop {
            match all.record(reader, sample) {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) if e.is_damage() => {
                    if all.damage.len() < 100 {
                        all.damage.push(e.to_string());
                    }
                    reader.recover_from_here()?;
                }
                Err(e) => return Err(e),
            }
            if all.records.is_multiple_of(REPORT_EVERY) {
                progress(Progress { records: all.records, bytes: reader.stored_offset(), total_bytes: 0 });
            }
        }
        all.stored_bytes = reader.stored_offset();
        all.format = if reader.is_arc() { "arc" } else { "warc" }.into();
        all.compression = match reader.compression() {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
        .into();
        Ok(all)
    }

    fn record(&mut self, reader: &mut WarcReader, sample: usize) -> Result<bool> {
        let Some(mut record) = reader.next_record()? else { return Ok(false) };
        let header = record.header();
        let record_type = header.record_type();
        let bytes = header.content_length();
        let type_name = header.text("WARC-Type").unwrap_or_default().into_owned();
        let url = header.target_uri().map(|u| u.into_owned()).unwrap_or_default();
        let date = header.text("WARC-Date").unwrap_or_default().into_owned();
        let own_type = header.text("Content-Type").map(|t| t.into_owned());
        let is_http = header.is_http();
        let offset = record.at().offset;
        self.records += 1;
        self.block_bytes += bytes;
        add(&mut self.types, type_name.clone(), bytes);
        if !date.is_empty() {
            let earlier = self.first_date.as_ref().is_none_or(|d| date < *d);
            let later = self.last_date.as_ref().is_none_or(|d| date > *d);
            self.first_date = if earlier { Some(date.clone()) } else { self.first_date.take() };
            self.last_date = if later { Some(date.clone()) } else { self.last_date.take() };
        }
        if record_type == RecordType::Warcinfo && self.software.len() < 10 && bytes <= 64 << 10 {
            let block = record.read_block(64 << 10)?;
            let fields = crate::writer::parse_fields(&block);
            let software = fields.into_iter().find(|(n, _)| n == "software").map(|(_, v)| v);
            self.software.extend(software.filter(|s| !self.software.contains(s)).into_iter().collect::<Vec<_>>());
        }
        if !matches!(record_type, RecordType::Response | RecordType::Revisit | RecordType::Resource) {
            record.finish()?;
            return Ok(true);
        }
        let head = if is_http { record.take_http_head()? } else { None };
        let status = head.as_deref().and_then(|h| Head::new(h).status());
        let content_type = match &head {
            Some(head) => Head::new(head).text("Content-Type"),
            None => own_type.filter(|_| !is_http),
        };
        if let Some(status) = status {
            let tally = self.statuses.entry(status).or_default();
            tally.count += 1;
            tally.bytes += bytes;
        }
        if record_type != RecordType::Revisit {
            add(&mut self.content_types, bare_type(content_type.as_deref().unwrap_or("")), bytes);
        }
        add(&mut self.hosts, host_of(&url), bytes);
        if self.sample.len() < sample {
            self.sample.push(Sample {
                record_type: type_name,
                url,
                date,
                status,
                content_type,
                block_bytes: bytes,
                offset,
            });
        }
        record.finish()?;
        Ok(true)
    }
}

fn add(map: &mut BTreeMap<String, Tally>, name: String, bytes: u64) {
    let known = map.len() < MAX_NAMES || map.contains_key(&name);
    let tally = map.entry(if known { name } else { "other".into() }).or_default();
    tally.count += 1;
    tally.bytes += bytes;
}

/// A media type without its parameters, in lower case.
fn bare_type(text: &str) -> String {
    let bare = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if bare.is_empty() { "unknown".into() } else { bare }
}

/// The host of a URL, as far as it has one: for counting, not for fetching.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let end = if host.starts_with('[') {
        host.find(']').map_or(host.len(), |i| i + 1)
    } else {
        host.find(':').unwrap_or(host.len())
    };
    host.get(..end).unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{captures, options, sink_with};
    use trawl_model::CaptureSink;

    #[test]
    fn a_file_is_summed_up() {
        let dir = tempfile::tempdir().unwrap();
        let mut sink = sink_with(dir.path(), options());
        for capture in captures() {
            let prepared = sink.prepare(capture).unwrap();
            sink.commit(prepared).unwrap();
        }
        let summary = sink.finish().unwrap();
        let mut reader = WarcReader::builder().open(&dir.path().join(&summary.files[0].0)).unwrap();
        let all = Inspection::of(&mut reader, 2, &mut |_| {}).unwrap();
        assert_eq!((all.format.as_str(), all.compression.as_str()), ("warc", "gzip"));
        assert_eq!((all.records, all.stored_bytes), (25, summary.files[0].1));
        assert_eq!(all.types["response"].count, 5);
        assert_eq!(all.statuses[&200].count, 6);
        assert_eq!(all.statuses[&304].count, 1);
        assert_eq!(all.content_types["text/html"].count, 5);
        assert_eq!(all.hosts["host0.example"].count, 3);
        assert_eq!(all.software, ["trawl/test"]);
        assert_eq!(all.sample.len(), 2);
        assert!(all.damage.is_empty());
    }

    #[test]
    fn hosts_are_cut_out() {
        for (url, host) in
            [("http://U@A.example:80/x", "a.example"), ("http://[::1]:8/", "[::1]"), ("dns:x", ""), ("http://a?b", "a")]
        {
            assert_eq!(host_of(url), host, "{url}");
        }
    }
}
