//! `trawl inspect`: what is in a file, whatever its format.

use crate::containers::Container;
use crate::exit::Status;
use crate::formats::{self, Format, Found};
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{show_bytes, show_count};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use trawl_captures::CapturesReader;
use trawl_warc::wacz::Wacz;
use trawl_warc::{Inspection, Limits, Tally, WarcReader};

/// Rows of a breakdown that people are shown; JSON has all of them.
const TOP: usize = 8;

/// Says what is in a file or directory, whatever the format
///
/// Counts, sizes, breakdowns by status, type and host, and a sample. Formats are found by their first bytes.
///
/// Examples:
///   trawl inspect crawl/
///   trawl inspect captures.parquet -n 20
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Files or directories
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Entries of the sample
    #[arg(long, short = 'n', default_value_t = 10, value_name = "N")]
    limit: usize,
}

/// What is said of one file.
#[derive(Debug, Serialize)]
struct Facts {
    file: String,
    #[serde(flatten)]
    contents: Contents,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Contents {
    Archive(Box<Inspection>),
    Captures(Captures),
    Container(Box<Container>),
}

#[derive(Debug, Default, Serialize)]
struct Captures {
    format: &'static str,
    version: Option<String>,
    rows: u64,
    failures: u64,
    body_bytes: u64,
    statuses: BTreeMap<i32, Tally>,
    content_types: BTreeMap<String, Tally>,
    hosts: BTreeMap<String, Tally>,
    sample: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    url: String,
    status: i32,
    body_length: i64,
    error: String,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let mut damaged = false;
    for path in &args.paths {
        for found in formats::files(path)? {
            for facts in inspect(&found, args.limit, out)? {
                damaged |= facts.is_damaged();
                out.fact(&facts, |w| facts.write(w))?;
            }
        }
    }
    Ok(Status::from_findings(damaged))
}

fn inspect(found: &Found, limit: usize, out: &Output) -> anyhow::Result<Vec<Facts>> {
    let file = found.path.display().to_string();
    let bar = Progress::start(&format!("inspect {file}"), None, out.quiet());
    let archive = |reader: &mut WarcReader, file: String| -> anyhow::Result<Facts> {
        let inspection = Inspection::of(reader, limit, &mut |p| {
            bar.report(p.records, || format!("{} records, {}", show_count(p.records), show_bytes(p.bytes)));
        })?;
        Ok(Facts { file, contents: Contents::Archive(Box::new(inspection)) })
    };
    match found.format {
        Format::Warc => Ok(vec![archive(&mut WarcReader::builder().lenient(true).over(found.open()?), file)?]),
        Format::Wacz => {
            let wacz = Wacz::open(found.open()?)?;
            let inside = |entry: &str| -> anyhow::Result<Facts> {
                let mut reader = WarcReader::builder().limits(Limits::default()).lenient(true).over(wacz.warc(entry)?);
                archive(&mut reader, format!("{file}!{entry}"))
            };
            wacz.warc_entries().map(|entry| inside(&entry.name)).collect()
        }
        Format::Captures => {
            let mut captures = Captures { format: "captures", ..Captures::default() };
            captures.read(CapturesReader::over(found.open()?)?, limit, &bar)?;
            Ok(vec![Facts { file, contents: Contents::Captures(captures) }])
        }
        Format::Seqdb => {
            let container = Container::of(&found.path, limit)?;
            Ok(vec![Facts { file, contents: Contents::Container(Box::new(container)) }])
        }
    }
}

impl Captures {
    fn read(&mut self, reader: CapturesReader, limit: usize, bar: &Progress) -> anyhow::Result<()> {
        self.version = reader.version().map(str::to_owned);
        for row in reader {
            let row = row?;
            self.rows += 1;
            self.failures += u64::from(row.is_failure());
            let bytes = u64::try_from(row.body_length).unwrap_or(0);
            self.body_bytes += bytes;
            add(&mut self.statuses, row.status, bytes);
            let kind = row.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            add(&mut self.content_types, kind, bytes);
            add(&mut self.hosts, row.host.clone(), bytes);
            if self.sample.len() < limit {
                let (url, status, body_length, error) = (row.url, row.status, row.body_length, row.error);
                self.sample.push(Row { url, status, body_length, error });
            }
            bar.report(self.rows, || format!("{} rows", show_count(self.rows)));
        }
        Ok(())
    }
}

fn add<K: Ord>(map: &mut BTreeMap<K, Tally>, key: K, bytes: u64) {
    let tally = map.entry(key).or_default();
    tally.count += 1;
    tally.bytes += bytes;
}

impl Facts {
    fn is_damaged(&self) -> bool {
        match &self.contents {
            Contents::Archive(inspection) => !inspection.damage.is_empty(),
            Contents::Captures(_) => false,
            Contents::Container(container) => container.is_damaged(),
        }
    }

    fn write(&self, w: &mut dyn Write) -> io::Result<()> {
        match &self.contents {
            Contents::Archive(i) => {
                let (records, stored) = (show_count(i.records), show_bytes(i.stored_bytes));
                writeln!(
                    w,
                    "{}: {} ({}), {records} records, {stored} stored, {} in blocks",
                    self.file,
                    i.format,
                    i.compression,
                    show_bytes(i.block_bytes)
                )?;
                if let (Some(first), Some(last)) = (&i.first_date, &i.last_date) {
                    writeln!(w, "  from {first} to {last}")?;
                }
                breakdown(w, "types", &i.types)?;
                breakdown(w, "statuses", &i.statuses)?;
                breakdown(w, "media types", &i.content_types)?;
                breakdown(w, "hosts", &i.hosts)?;
                for s in &i.sample {
                    let status = s.status.map_or_else(|| "-".to_owned(), |n| n.to_string());
                    writeln!(w, "  {:>12}  {status:>3}  {:>10}  {}", s.offset, show_bytes(s.block_bytes), s.url)?;
                }
                for damage in &i.damage {
                    writeln!(w, "  damaged: {damage}")?;
                }
            }
            Contents::Container(container) => container.write(&self.file, w)?,
            Contents::Captures(c) => {
                let version = c.version.as_deref().map_or_else(String::new, |v| format!(", contract {v}"));
                let (rows, bytes) = (show_count(c.rows), show_bytes(c.body_bytes));
                writeln!(
                    w,
                    "{}: captures{version}, {rows} rows, {bytes} of bodies, {} failed",
                    self.file,
                    show_count(c.failures)
                )?;
                breakdown(w, "statuses", &c.statuses)?;
                breakdown(w, "media types", &c.content_types)?;
                breakdown(w, "hosts", &c.hosts)?;
                for row in &c.sample {
                    let status = if row.error.is_empty() { row.status.to_string() } else { "ERR".into() };
                    let bytes = u64::try_from(row.body_length).unwrap_or(0);
                    writeln!(w, "  {status:>3}  {:>10}  {}  {}", show_bytes(bytes), row.url, row.error)?;
                }
            }
        }
        Ok(())
    }
}

fn breakdown<K: ToString>(w: &mut dyn Write, name: &str, map: &BTreeMap<K, Tally>) -> io::Result<()> {
    let mut rows: Vec<_> = map.iter().map(|(key, tally)| (tally.count, key.to_string(), tally.bytes)).collect();
    rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let show = |(count, key, bytes): &(u64, String, u64)| {
        let key = if key.is_empty() { "(none)" } else { key };
        format!("{key} {} ({})", show_count(*count), show_bytes(*bytes))
    };
    let shown: Vec<_> = rows.iter().take(TOP).map(show).collect();
    let more = if rows.len() > TOP { format!(", and {} more", rows.len() - TOP) } else { String::new() };
    if shown.is_empty() { Ok(()) } else { writeln!(w, "  {name}: {}{more}", shown.join(", ")) }
}
