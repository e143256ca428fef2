//! `trawl nutch readseg`.

use super::NewDirectory;
use crate::exit::Status;
use crate::output::{Output, complain};
use crate::units::{bytes, show_count};
use anyhow::{Context, bail};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use trawl_hadoop::json::Detail;
use trawl_hadoop::seq::OpenOptions;
use trawl_io::{Fs as _, RealFs};
use trawl_nutch::RecordPrinter;
use trawl_nutch::legacy::LegacySegment;
use trawl_nutch::segment::{Segment, SegmentPart};
use trawl_nutch::tools::{
    DumpSettings, SegmentFacts, dump_legacy, dump_legacy_json, dump_segment, get_json, get_legacy_json, legacy_facts,
    legacy_missing, list_header, write_get,
};

/// Prints segments: what is in them, everything in one, or everything about one URL
///
/// Examples:
///   trawl nutch readseg -list -dir segments
///   trawl nutch readseg -dump segments/20261115074402 out -nocontent
///   trawl nutch readseg -get segments/20261115074402 https://example.com/
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, group = clap::ArgGroup::new("what").required(true))]
pub struct ReadsegArgs {
    /// Print statistics of segments, one line each
    #[arg(long, group = "what")]
    list: bool,

    /// With -list: read all segments in this directory
    #[arg(long, requires = "list", value_name = "DIR")]
    dir: Option<PathBuf>,

    /// With -list: segments
    #[arg(requires = "list", value_name = "SEGMENT")]
    segments: Vec<PathBuf>,

    /// Print everything in a segment, grouped by URL: as the file `dump` in the new directory DIR, or to stdout
    #[arg(long, group = "what", num_args = 1..=2, value_names = ["SEGMENT", "DIR"])]
    dump: Option<Vec<PathBuf>>,

    /// Print everything about one URL
    #[arg(long, group = "what", num_args = 2, value_names = ["SEGMENT", "URL"])]
    get: Option<Vec<String>>,

    /// Leave out contents
    #[arg(long)]
    nocontent: bool,

    /// Leave out results of fetches
    #[arg(long)]
    nofetch: bool,

    /// Leave out the fetch list
    #[arg(long)]
    nogenerate: bool,

    /// Leave out what parsing reports to the CrawlDb
    #[arg(long)]
    noparse: bool,

    /// Leave out titles, links and metadata
    #[arg(long)]
    noparsedata: bool,

    /// Leave out texts
    #[arg(long)]
    noparsetext: bool,

    /// With -dump: sort URLs within this many parts, as Nutch does with that many reduce tasks
    #[arg(long, default_value_t = 1, value_name = "N")]
    parts: u32,

    /// With -dump: memory for grouping; less spills to disk
    #[arg(long, default_value = "256MiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,
}

impl ReadsegArgs {
    fn without(&self) -> Vec<SegmentPart> {
        let flags = [
            (self.nocontent, SegmentPart::Content),
            (self.nofetch, SegmentPart::CrawlFetch),
            (self.nogenerate, SegmentPart::CrawlGenerate),
            (self.noparse, SegmentPart::CrawlParse),
            (self.noparsedata, SegmentPart::ParseData),
            (self.noparsetext, SegmentPart::ParseText),
        ];
        flags.into_iter().filter(|(set, _)| *set).map(|(_, part)| part).collect()
    }
}

/// Runs the command.
pub fn run(args: ReadsegArgs, out: &mut Output) -> anyhow::Result<Status> {
    let options = OpenOptions::default();
    match (&args.dump, &args.get) {
        (Some(paths), _) => dump(&args, paths, &options, out),
        (_, Some(words)) => {
            let [segment, url] = words.as_slice() else { bail!("-get needs a segment and a URL") };
            if is_legacy(Path::new(segment))? {
                let status = get_legacy(Path::new(segment), url, &args, &options, out)?;
                return Ok(super::ended(status, &legacy_missing(Path::new(segment), &args.without(), &options)?));
            }
            let mut segment = Segment::open(Path::new(segment), &options)?.without(&args.without());
            let is_empty = if out.json() {
                let found = get_json(&mut segment, url)?;
                out.json_line(&found)?;
                found["found"].as_object().is_none_or(|f| f.is_empty())
            } else {
                write_get(&mut segment, url, out)? == 0
            };
            if is_empty {
                out.remark(&format!("the segment holds nothing about {url}"));
            }
            Ok(super::ended(Status::from_findings(is_empty), &segment.missing(&[])?))
        }
        _ => list(&args, &options, out),
    }
}

/// Whether a segment is one of 0.4 to 0.7.
fn is_legacy(path: &Path) -> anyhow::Result<bool> {
    Ok(LegacySegment::is_segment(&RealFs, path)?)
}

fn get_legacy(
    segment: &Path,
    url: &str,
    args: &ReadsegArgs,
    options: &OpenOptions,
    out: &mut Output,
) -> anyhow::Result<Status> {
    if out.json() {
        let found = get_legacy_json(segment, url, options)?;
        out.json_line(&found)?;
        return Ok(Status::from_findings(found["found"].as_object().is_none_or(|f| f.is_empty())));
    }
    Ok(Status::from_findings(dump_legacy(segment, Some(url), &args.without(), options, out)? == 0))
}

fn dump_all_legacy(
    segment: &Path,
    dir: Option<&PathBuf>,
    without: &[SegmentPart],
    options: &OpenOptions,
    out: &mut Output,
) -> anyhow::Result<Status> {
    if out.json() {
        let mut failed = None;
        let records = dump_legacy_json(segment, without, options, &mut |line| {
            failed = failed.take().or(out.json_line(&line).err());
            Ok(())
        })?;
        return match failed {
            Some(error) => Err(error.into()),
            None => Ok(Status::from_findings(records == 0)),
        };
    }
    let Some(dir) = dir else {
        return Ok(Status::from_findings(dump_legacy(segment, None, without, options, out)? == 0));
    };
    let new = NewDirectory::create(dir)?;
    let mut pages = 0;
    new.write_file("dump", |file| {
        pages = dump_legacy(segment, None, without, options, file)?;
        Ok(())
    })?;
    new.finish()?;
    out.remark(&format!("{} pages in {}", show_count(pages), dir.join("dump").display()));
    Ok(Status::from_findings(pages == 0))
}

fn list(args: &ReadsegArgs, options: &OpenOptions, out: &mut Output) -> anyhow::Result<Status> {
    let mut paths = args.segments.clone();
    if let Some(dir) = &args.dir {
        for entry in RealFs.list(dir)? {
            let path = dir.join(entry.name);
            // A link is the segment that it leads to; one that leads nowhere is reported like one that cannot be read.
            if entry.is_dir || RealFs.metadata(&path).map_or(true, |found| found.is_dir) {
                paths.push(path);
            }
        }
    }
    if paths.is_empty() {
        bail!("-list needs segments, or -dir and a directory of segments");
    }
    if !out.json() {
        writeln!(out, "{}", list_header())?;
    }
    let without = args.without();
    // A segment that cannot be read must not hide the others.
    let (mut listed, mut wrong, mut incomplete) = (0, Vec::new(), Vec::new());
    for path in paths {
        let (facts, missing) = match facts_of(&path, &without, options) {
            Ok(read) => read,
            Err(error) => {
                wrong.push(error);
                continue;
            }
        };
        listed += 1;
        out.fact(&facts.json(), |w| writeln!(w, "{}", facts.line()))?;
        incomplete.extend(missing);
    }
    if listed == 0
        && let Some(error) = wrong.pop()
    {
        wrong.iter().for_each(|error| complain(&format!("{error:#}")));
        return Err(error);
    }
    wrong.iter().for_each(|error| complain(&format!("left out: {error:#}")));
    Ok(super::ended(Status::from_findings(!wrong.is_empty()), &incomplete))
}

/// The numbers of a segment, and what tells that parts of it are missing.
fn facts_of(
    path: &Path,
    without: &[SegmentPart],
    options: &OpenOptions,
) -> anyhow::Result<(SegmentFacts, Vec<trawl_nutch::Error>)> {
    if is_legacy(path)? {
        return Ok((legacy_facts(path, without, options)?, legacy_missing(path, without, options)?));
    }
    let segment = Segment::open(path, options)?;
    Ok((SegmentFacts::of(&segment, without)?, segment.missing(without)?))
}

fn dump(args: &ReadsegArgs, paths: &[PathBuf], options: &OpenOptions, out: &mut Output) -> anyhow::Result<Status> {
    let path = paths.first().context("-dump needs a segment")?;
    if let Some(dir) = paths.get(1).filter(|_| out.json()) {
        bail!("--json prints to stdout: leave out {}", dir.display());
    }
    let without = args.without();
    if is_legacy(path)? {
        let status = dump_all_legacy(path, paths.get(1), &without, options, out)?;
        return Ok(super::ended(status, &legacy_missing(path, &without, options)?));
    }
    let segment = Segment::open(path, options)?;
    let missing = segment.missing(&without)?;
    if out.json() {
        let mut records = 0u64;
        for part in segment.parts().iter().filter(|part| !without.contains(part)) {
            let mut scan = segment.scan(*part)?;
            let mut printer = None;
            while scan.advance()? {
                let Some(reader) = scan.reader() else { break };
                let printer = printer.get_or_insert_with(|| RecordPrinter::new(reader.header(), Detail::Full));
                let mut record = printer.print(&reader.record()?);
                if let Some(why) = printer.damage() {
                    bail!("{}@{}: {why}", reader.path().display(), reader.at().offset);
                }
                let (url, value) = (record["key"].take(), record["value"].take());
                out.json_line(&json!({ "part": part.name(), "url": url, "value": value }))?;
                records += 1;
            }
        }
        return Ok(super::ended(Status::from_findings(records == 0), &missing));
    }
    let settings = DumpSettings {
        without,
        memory_bytes: usize::try_from(args.memory).context("--memory")?,
        temp_dir: std::env::temp_dir(),
        parts: args.parts.max(1),
    };
    let Some(dir) = paths.get(1) else {
        let urls = dump_segment(&segment, options, &settings, out)?;
        return Ok(super::ended(Status::from_findings(urls == 0), &missing));
    };
    let new = NewDirectory::create(dir)?;
    let mut urls = 0;
    new.write_file("dump", |file| {
        urls = dump_segment(&segment, options, &settings, file)?;
        Ok(())
    })?;
    new.finish()?;
    out.remark(&format!("{} URLs in {}", show_count(urls), dir.join("dump").display()));
    Ok(super::ended(Status::from_findings(urls == 0), &missing))
}
