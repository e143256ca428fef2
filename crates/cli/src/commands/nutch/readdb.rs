//! `trawl nutch readdb`.

use super::NewDirectory;
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::system;
use crate::units::show_count;
use anyhow::{Context, bail};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use trawl_hadoop::json::{Detail, JsonClasses as _};
use trawl_hadoop::parts::part_name;
use trawl_hadoop::seq::OpenOptions;
use trawl_hadoop::{Decoder, Text, java_text};
use trawl_nutch::class::{CRAWL_DATUM, NutchClasses};
use trawl_nutch::db::{CrawlDb, Scan};
use trawl_nutch::tools::{
    DumpFormat, Filter, Sample, Stats, TopN, UrlPattern, copy_part, write_dump_header, write_dumped, write_url,
};
use trawl_nutch::types::{CrawlDatum, Status as NutchStatus, whole};

/// Prints a CrawlDb: statistics, all URLs, the best ones, or one
///
/// Examples:
///   trawl nutch readdb crawldb -stats -sort
///   trawl nutch readdb crawldb -dump out -format csv -status db_gone
///   trawl nutch readdb crawldb -dump part -regex 'https?://www\.example\.com/.*'
///   trawl nutch readdb crawldb -topN 20
///   trawl nutch readdb crawldb -url https://example.com/ --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, group = clap::ArgGroup::new("what").required(true))]
pub struct ReaddbArgs {
    /// The CrawlDb, one of its generations, or one of its parts
    crawldb: PathBuf,

    /// Print counts, times and scores of all URLs
    #[arg(long, group = "what")]
    stats: bool,

    /// With -stats: also count by host
    #[arg(long, requires = "stats")]
    sort: bool,

    /// Print every URL with its state: one file per part into the new directory DIR, or everything to stdout
    #[arg(long, group = "what", value_name = "DIR", num_args = 0..=1)]
    dump: Option<Option<PathBuf>>,

    /// With -dump: write text, CSV, JSON, or a CrawlDb (one MapFile per part in DIR, with unchanged records)
    #[arg(long, value_enum, default_value = "normal", requires = "dump")]
    format: Format,

    /// With -dump: only URLs with this status, such as db_gone
    #[arg(long, requires = "dump", value_name = "NAME", value_parser = status)]
    status: Option<NutchStatus>,

    /// With -dump: only URLs with at least this many retries
    #[arg(long, requires = "dump", value_name = "N")]
    retry: Option<i8>,

    /// With -dump: only URLs that this regular expression matches as a whole
    #[arg(long, requires = "dump", value_name = "REGEX", value_parser = UrlPattern::parse)]
    regex: Option<UrlPattern>,

    /// With -dump: only a random sample, each URL with this probability
    #[arg(long, requires = "dump", value_name = "FRACTION", value_parser = fraction)]
    sample: Option<f64>,

    /// Print the N URLs with the highest scores of at least MIN (default 0), into the new directory DIR or to stdout
    #[arg(long = "topN", group = "what", num_args = 1..=3, value_names = ["N", "DIR", "MIN"], allow_negative_numbers = true)]
    top: Option<Vec<String>>,

    /// Print the state of one URL
    #[arg(long, group = "what", value_name = "URL")]
    url: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Normal,
    Csv,
    Json,
    Crawldb,
}

fn fraction(text: &str) -> Result<f64, String> {
    let fraction: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if (0.0..=1.0).contains(&fraction) { Ok(fraction) } else { Err("expected a number from 0 to 1".to_owned()) }
}

fn status(name: &str) -> Result<NutchStatus, String> {
    NutchStatus::of_name(name).ok_or_else(|| {
        let names: Vec<_> = NutchStatus::ALL.iter().map(|s| s.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Runs the command.
pub fn run(args: ReaddbArgs, out: &mut Output) -> anyhow::Result<Status> {
    let mut db = CrawlDb::open(&args.crawldb, &OpenOptions::default())?;
    let missing: Vec<_> = db.map().cut().into_iter().collect();
    Ok(super::ended(asked(&args, &mut db, out)?, &missing))
}

/// Does what the flags ask for.
fn asked(args: &ReaddbArgs, db: &mut CrawlDb, out: &mut Output) -> anyhow::Result<Status> {
    if args.stats {
        return stats(args, db, out);
    }
    if let Some(dir) = &args.dump {
        return dump(args, db, dir.as_ref(), out);
    }
    if let Some(top) = &args.top {
        return top_n(args, top, db, out);
    }
    let Some(url) = &args.url else { bail!("nothing was asked for") };
    let datum = db.get(url.as_bytes())?;
    if out.json() {
        let state = datum.as_ref().map(datum_json).transpose()?;
        out.json_line(&json!({ "url": url, "datum": state }))?;
    } else {
        write_url(url, datum.as_ref(), out)?;
    }
    Ok(Status::from_findings(datum.is_none()))
}

fn datum_json(datum: &CrawlDatum<'_>) -> anyhow::Result<serde_json::Value> {
    let bytes = trawl_nutch::types::encoded(|out| datum.encode(out));
    Ok(NutchClasses.json(CRAWL_DATUM, &mut Decoder::new(&bytes), Detail::Full)?)
}

fn each(
    args: &ReaddbArgs,
    mut scan: Scan,
    out: &Output,
    mut f: impl FnMut(&Text<'_>, &CrawlDatum<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let bar = Progress::start(&format!("readdb {}", args.crawldb.display()), None, out.quiet());
    let mut urls = 0;
    while let Some(entry) = scan.next_entry()? {
        let datum = whole(entry.value, CrawlDatum::decode).map_err(|e| entry.error(e))?;
        f(&entry.key, &datum)?;
        urls += 1;
        bar.report(urls, || format!("{} URLs", show_count(urls)));
    }
    Ok(urls)
}

fn stats(args: &ReaddbArgs, db: &CrawlDb, out: &mut Output) -> anyhow::Result<Status> {
    let mut stats = Stats::new(args.sort);
    each(args, db.scan(), out, |url, datum| {
        stats.add(url, datum);
        Ok(())
    })?;
    if out.json() {
        out.json_line(&stats.json())?;
    } else {
        stats.write(&args.crawldb.display().to_string(), out)?;
    }
    Ok(Status::from_findings(stats.total() == 0))
}

fn dump(args: &ReaddbArgs, db: &CrawlDb, dir: Option<&PathBuf>, out: &mut Output) -> anyhow::Result<Status> {
    let mut filter = Filter { sample: None, status: args.status, retries: args.retry, url: args.regex.clone() };
    if let Some(fraction) = args.sample {
        let seed = u128::from_le_bytes(system::random_bytes()?) as u64;
        filter.sample = Some(Sample::new(fraction, seed));
    }
    let format = match args.format {
        Format::Normal => DumpFormat::Normal,
        Format::Csv => DumpFormat::Csv,
        Format::Json => DumpFormat::Json,
        Format::Crawldb => return dump_crawldb(args, db, filter, dir, out),
    };
    let mut urls = 0;
    let Some(dir) = dir else {
        let mut lines = Vec::new();
        if !out.json() {
            write_dump_header(format, out)?;
        }
        let mut scan = db.scan();
        while let Some(entry) = scan.next_entry()? {
            let datum = whole(entry.value, CrawlDatum::decode).map_err(|e| entry.error(e))?;
            if !filter.wants(&entry.key, &datum) {
                continue;
            }
            urls += 1;
            if out.json() {
                out.json_line(&json!({ "url": entry.key.to_str(), "datum": datum_json(&datum)? }))?;
            } else {
                lines.clear();
                write_dumped(format, &entry.key, &datum, &mut lines)?;
                out.write_all(&lines)?;
            }
        }
        return Ok(Status::from_findings(urls == 0));
    };
    let new = NewDirectory::create(dir)?;
    for (n, part) in db.map().parts().iter().enumerate() {
        let scan = Scan::of(part, &OpenOptions::default())?;
        new.write_file(&format!("part-r-{n:05}"), |file| {
            write_dump_header(format, file)?;
            each(args, scan, out, |url, datum| {
                if filter.wants(url, datum) {
                    urls += 1;
                    write_dumped(format, url, datum, file)?;
                }
                Ok(())
            })?;
            Ok(())
        })?;
    }
    new.finish()?;
    out.remark(&format!("{} URLs in {}", show_count(urls), dir.display()));
    Ok(Status::from_findings(urls == 0))
}

fn dump_crawldb(
    args: &ReaddbArgs,
    db: &CrawlDb,
    mut filter: Filter,
    dir: Option<&PathBuf>,
    out: &Output,
) -> anyhow::Result<Status> {
    let Some(dir) = dir else { bail!("-format crawldb writes a database: name its directory, as in -dump DIR") };
    let new = NewDirectory::create(dir)?;
    let bar = Progress::start(&format!("readdb {}", args.crawldb.display()), None, out.quiet());
    let mut urls = 0;
    for (n, part) in db.map().parts().iter().enumerate() {
        let path = new.aside.join(part_name(u32::try_from(n)?));
        let markers = [system::random_bytes()?, system::random_bytes()?];
        urls += copy_part(part, &OpenOptions::default(), &mut filter, &path, markers, &mut |read| {
            bar.report(read, || format!("{} URLs of part {n}", show_count(read)));
        })?;
    }
    drop(bar);
    new.finish()?;
    out.remark(&format!("{} URLs in {}", show_count(urls), dir.display()));
    Ok(Status::from_findings(urls == 0))
}

fn top_n(args: &ReaddbArgs, top: &[String], db: &CrawlDb, out: &mut Output) -> anyhow::Result<Status> {
    let wrong = |what, found: &String| anyhow::anyhow!("-topN: expected {what}, found {found:?}");
    let most = top.first().context("-topN N")?;
    let most = most.parse().map_err(|_| wrong("a whole number", most))?;
    let least = top.get(2).map_or(Ok(0.0), |min| min.parse().map_err(|_| wrong("a score as MIN", min)))?;
    let mut best = TopN::new(most, least);
    each(args, db.scan(), out, |url, datum| {
        best.push(url, datum.score);
        Ok(())
    })?;
    let best = best.finish();
    let line = |(score, url): &(f32, String)| format!("{}\t{url}", java_text::float(*score));
    if let Some(dir) = top.get(1).map(PathBuf::from) {
        let new = NewDirectory::create(&dir)?;
        new.write_file("part-r-00000", |file| {
            for ranked in &best {
                writeln!(file, "{}", line(ranked))?;
            }
            Ok(())
        })?;
        new.finish()?;
    } else {
        for ranked in &best {
            let value = json!({ "url": ranked.1, "score": ranked.0 });
            out.fact(&value, |w| writeln!(w, "{}", line(ranked)))?;
        }
    }
    Ok(Status::from_findings(best.is_empty()))
}
