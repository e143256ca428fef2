//! `trawl frontier seed`: any URL list into a file.

use super::files::{WriteArgs, directory};
use super::{carry, parse_hour};
use crate::commands::lake::sources::expand;
use crate::exit::Status;
use crate::lists::ListArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::system;
use crate::units::{show_bytes, show_count};
use anyhow::bail;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trawl_archive::Opening;
use trawl_lists::Options;
use trawl_meguri::keys::KeyPolicy;
use trawl_meguri::merge::extensions_of;
use trawl_meguri::schema::{Extension, Table};
use trawl_meguri::seed::{SeedOptions, Seeded, Seeder, grouping_of, hour_of};
use trawl_meguri::{Identity, MeguriFile, WriterOptions, Written};
use trawl_model::{Aside, DoorError, SourceIdentity, UrlRecord, UrlSource};
use trawl_url::SuffixList;
use trawl_url::key::HostGroup;

/// Turns URL lists into a partition file
///
/// Reads everything that `lake ingest` reads: lines, CSV, JSON lines, CDXJ, Parquet, captures.parquet, archives, other
/// partition files, and directories of these; `-` is standard input. What a list says about a URL (time, status, place
/// in an archive) goes into its row. URLs of a partition file keep all their columns, those of a Nutch CrawlDb their
/// state, due time, score and retries. Exit code 1 if items were rejected.
///
/// Examples:
///   trawl frontier seed urls.txt --out seeds.meguri
///   zcat urls.gz | trawl frontier seed - --out seeds.meguri --priority 0.9
///   trawl frontier seed crawl/captures.parquet --out crawl.meguri
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct SeedArgs {
    /// Lists, or directories of them; without any, standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// A list, by name
    #[arg(long, short, value_name = "FILE", hide = true)]
    input: Vec<PathBuf>,

    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// Priority of every URL whose source gives none
    #[arg(long, default_value_t = 0.5, value_parser = finite, value_name = "P")]
    priority: f32,

    /// Crawl delay of every host whose source gives none, in tenths of a second
    #[arg(long, default_value_t = 10, value_name = "N")]
    crawl_delay: u16,

    /// What keys are made of: Trawl's identity of a URL, its exact spelling, or the key form of the original project
    #[arg(long, value_enum, default_value = "trawl", value_name = "POLICY")]
    key_policy: Policy,

    /// What counts as one host; decided by the key policy by default
    #[arg(long, value_enum, value_name = "GROUP")]
    host_group: Option<Group>,

    /// Number of the partition
    #[arg(long, default_value_t = 1, value_name = "N")]
    partition_id: u32,

    /// Hours since 1970: when the file was made, and when URLs without a time were found; 0: now
    #[arg(long, value_parser = parse_hour, value_name = "HOUR")]
    created: Option<u32>,

    #[command(flatten)]
    lists: ListArgs,

    #[command(flatten)]
    write: WriteArgs,
}

/// A number that can be compared with others.
fn finite(text: &str) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|_| format!("expected a number, found {text:?}"))?;
    if number.is_finite() { Ok(number) } else { Err(format!("expected a finite number, found {text:?}")) }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Policy {
    Trawl,
    Exact,
    Reference,
    Legacy,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Group {
    FullHost,
    Registrable,
}

#[derive(Serialize)]
struct Done {
    file: String,
    #[serde(flatten)]
    written: Written,
    /// Rows and hosts are reported by the writer.
    #[serde(flatten)]
    seeded: Seeded,
    unreadable_items: u64,
    /// Records of the sources that are not about a URL, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    not_captures: BTreeMap<String, u64>,
    /// What lies in directories and was not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignored: Vec<String>,
    /// Hosts of partition files whose keys were made in another way.
    #[serde(skip_serializing_if = "is_zero")]
    hosts_not_carried: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

pub fn run(mut args: SeedArgs, out: &mut Output) -> anyhow::Result<Status> {
    args.files.append(&mut args.input);
    if args.files.is_empty() {
        args.files.push(PathBuf::from("-"));
    }
    let policy = match args.key_policy {
        Policy::Trawl => KeyPolicy::Trawl,
        Policy::Exact => KeyPolicy::Exact,
        Policy::Reference => KeyPolicy::Reference,
        Policy::Legacy => KeyPolicy::Legacy,
    };
    let group = match args.host_group {
        None => policy.default_group(),
        Some(Group::FullHost) => HostGroup::FullHost,
        Some(Group::Registrable) => HostGroup::Registrable,
    };
    let inputs: Vec<_> = args.files.iter().map(PathBuf::as_path).collect();
    args.write.check_target(&args.out, &inputs)?;
    let lists = Options { now: system::now(), ..args.lists.apply(Options::default()) };
    let (mut sources, mut ignored) = (Vec::new(), Vec::new());
    for path in &args.files {
        open_sources(path, &lists, &mut sources, &mut ignored)?;
    }
    let partitions: Vec<_> = sources.iter().filter_map(Source::partition).cloned().collect();
    let now_hour = args.created.unwrap_or_else(|| hour_of(system::now()));
    let (priority, crawl_delay) = (args.priority, args.crawl_delay);
    let options = SeedOptions { policy, group, priority, crawl_delay, now_hour };
    let (created, metadata) = (now_hour, options.metadata());
    let identity = Identity { partition_id: args.partition_id, range: Some((0, u64::MAX)), created, metadata };
    let own =
        SeedOptions::extensions().into_iter().chain(carry::EXTENSIONS.into_iter().filter(|_| has_states(&sources)));
    let url_extensions = widest(own.chain(extensions_of(&partitions, Table::Urls)));
    let host_extensions = extensions_of(&partitions, Table::Hosts);
    let writer_options = WriterOptions {
        identity,
        url_extensions,
        host_extensions: host_extensions.clone(),
        ..WriterOptions::default()
    };
    let mut writer = args.write.writer(&args.out, writer_options)?;
    let (temp, memory) = (directory(&args.out), args.write.memory_bytes());
    let mut seeder = Seeder::new(options, SuffixList::builtin(), &temp, memory)?;
    seeder.keep_host_extensions(host_extensions);
    let not_captures = BTreeMap::new();
    let mut reading = Reading { options, seeder, unreadable: 0, not_captures, hosts_not_carried: 0, out };
    reading.all(&sources, &lists)?;
    let Reading { seeder, unreadable, not_captures, hosts_not_carried, .. } = reading;
    let seeded = seeder.finish(&mut writer)?;
    let done = Done {
        file: args.out.display().to_string(),
        written: writer.finish_file(&args.out)?,
        seeded,
        unreadable_items: unreadable,
        not_captures,
        ignored,
        hosts_not_carried,
    };
    out.fact(&done, |w| {
        let Done { written, seeded, unreadable_items, .. } = &done;
        let Written { urls, hosts, bytes, .. } = *written;
        writeln!(w, "{}: {} URLs, {} hosts, {}", done.file, show_count(urls), show_count(hosts), show_bytes(bytes))?;
        if seeded.duplicates > 0 {
            writeln!(w, "  {} URLs are the same page as another", show_count(seeded.duplicates))?;
        }
        if seeded.carried > 0 {
            writeln!(w, "  {} URLs keep their state and due time", show_count(seeded.carried))?;
        }
        for (what, n) in &done.not_captures {
            writeln!(w, "  not a URL: {what}, {} records", show_count(*n))?;
        }
        done.ignored.iter().try_for_each(|path| writeln!(w, "  not read: {path}"))?;
        if done.hosts_not_carried > 0 {
            let hosts = show_count(done.hosts_not_carried);
            writeln!(w, "  {hosts} hosts were not carried over: their file has another key policy or grouping")?;
        }
        seeded.rejected.iter().try_for_each(|(why, n)| writeln!(w, "  {} rejected: {why}", show_count(*n)))?;
        if *unreadable_items > 0 {
            writeln!(w, "  {} items could not be read", show_count(*unreadable_items))
        } else {
            Ok(())
        }
    })?;
    Ok(Status::from_findings(unreadable > 0 || !done.seeded.rejected.is_empty()))
}

/// What URLs are taken from.
enum Source {
    Stdin,
    Partition(MeguriFile),
    Other {
        urls: Box<dyn UrlSource>,
        /// Whether it may be a database that knows the states of URLs.
        has_states: bool,
    },
}

impl Source {
    fn partition(&self) -> Option<&MeguriFile> {
        match self {
            Source::Partition(file) => Some(file),
            _ => None,
        }
    }
}

fn has_states(sources: &[Source]) -> bool {
    sources.iter().any(|source| matches!(source, Source::Other { has_states: true, .. }))
}

/// Each column once, as wide as the widest.
fn widest(columns: impl Iterator<Item = Extension>) -> Vec<Extension> {
    let mut widths: BTreeMap<u16, u8> = BTreeMap::new();
    for Extension { id, width } in columns {
        let known = widths.entry(id).or_insert(width);
        *known = (*known).max(width);
    }
    widths.into_iter().map(|(id, width)| Extension { id, width }).collect()
}

/// Hands every item of every source over, and counts those that cannot be.
struct Reading<'a> {
    options: SeedOptions,
    seeder: Seeder<'a>,
    unreadable: u64,
    not_captures: BTreeMap<String, u64>,
    hosts_not_carried: u64,
    out: &'a Output,
}

impl Reading<'_> {
    fn all(&mut self, sources: &[Source], lists: &Options) -> anyhow::Result<()> {
        let bar = Progress::start("seed", None, self.out.quiet());
        let mut items = 0u64;
        let mut count = || {
            items += 1;
            bar.report(items, || format!("{} URLs", show_count(items)));
        };
        for source in sources {
            let mut each = |has_states: bool, item: Result<UrlRecord, DoorError>| {
                count();
                self.item(has_states, item)
            };
            match source {
                Source::Stdin => {
                    let stdin = std::io::stdin().lock();
                    trawl_lists::read_stream("stdin", None, stdin, lists, &mut |_, item| each(false, item))?;
                }
                Source::Other { urls, has_states } => {
                    let mut asides: BTreeMap<String, u64> = BTreeMap::new();
                    let mut aside = |_: u64, what: Aside<'_>| {
                        // A record that is odd is taken all the same.
                        let Aside::Record(kind) = what else { return };
                        match asides.get_mut(kind) {
                            Some(count) => *count += 1,
                            None => drop(asides.insert(kind.to_owned(), 1)),
                        }
                    };
                    for split in urls.splits(u64::MAX)? {
                        urls.read_all(split, &mut |_, item| each(*has_states, item), &mut aside)?;
                    }
                    for (kind, count) in asides {
                        *self.not_captures.entry(kind).or_default() += count;
                    }
                }
                Source::Partition(file) => self.partition(file, &mut count)?,
            }
        }
        Ok(())
    }

    fn item(&mut self, has_states: bool, item: Result<UrlRecord, DoorError>) -> Result<(), DoorError> {
        let record = match item {
            Ok(record) => record,
            Err(error) => {
                self.cannot_read(&error.to_string());
                return Ok(());
            }
        };
        match Some(&record).filter(|_| has_states).and_then(|record| carry::of_crawldb(record, self.options.now_hour)) {
            Some(row) => Ok(self.seeder.push_row(&record.url, &row, None)?),
            None => Ok(self.seeder.push(&record)?),
        }
    }

    fn cannot_read(&mut self, why: &str) {
        self.unreadable += 1;
        if self.unreadable <= 10 {
            self.out.remark(why);
        }
    }

    /// All rows of a partition file, and its hosts where their keys are made in the same way.
    fn partition(&mut self, file: &MeguriFile, count: &mut dyn FnMut()) -> anyhow::Result<()> {
        let same_policy = file.key_policy() == self.options.policy;
        let mut hosts = file.hosts()?;
        while let Some(host) = hosts.next_host()? {
            if same_policy && host.record.grouping == grouping_of(self.options.group) {
                self.seeder.push_host(&host)?;
            } else {
                self.hosts_not_carried += 1;
            }
        }
        let mut rows = file.cursor()?;
        while let Some(row) = rows.next_row()? {
            count();
            if let Some(fault) = file.key_fault(row.number, row.key(), &row.url) {
                self.cannot_read(&fault.to_string());
                continue;
            }
            match std::str::from_utf8(&row.url) {
                Ok("") => self.cannot_read(&format!("{}: row {}: no URL", file.path().display(), row.number)),
                Ok(url) => self.seeder.push_row(url, &row, Some(file))?,
                Err(e) => {
                    let (file, row) = (file.path().display(), row.number);
                    self.cannot_read(&format!("{file}: row {row}: the URL is not UTF-8: {e}"));
                }
            }
        }
        Ok(())
    }
}

/// What a path names, or everything in a directory that holds URLs; what else lies there is `ignored`.
fn open_sources(
    path: &Path,
    lists: &Options,
    sources: &mut Vec<Source>,
    ignored: &mut Vec<String>,
) -> anyhow::Result<()> {
    let (fs, registry) = system::archives();
    if !path.is_dir() || registry.detect(&fs, path)?.is_some() {
        sources.push(open_source(path, lists)?);
        return Ok(());
    }
    let found = expand(&[path.to_owned()], None)?;
    ignored.extend(found.not_files.iter().map(|other| format!("{}: {}", other.path, other.why)));
    if let Some(part) = found.incomplete.first() {
        bail!("{}: {}", part.path, part.why);
    }
    for file in found.files {
        match file.detect(&fs)? {
            Some(_) => match open_source(&file.path, lists) {
                Ok(source) => sources.push(source),
                Err(error) if holds_no_urls(&error) => ignored.push(format!("{}: no URLs", file.shown())),
                Err(error) => return Err(error),
            },
            None => ignored.push(format!("{}: not of a known format", file.shown())),
        }
    }
    Ok(())
}

/// Whether a container is sound and holds something else than URLs, as a host database does.
fn holds_no_urls(error: &anyhow::Error) -> bool {
    let archive = error.downcast_ref::<DoorError>().and_then(|e| e.source.downcast_ref::<trawl_archive::Error>());
    matches!(archive, Some(trawl_archive::Error::NoCaptures { .. }))
}

/// A list, or an archive, database or partition file whose URLs are taken.
fn open_source(path: &Path, lists: &Options) -> anyhow::Result<Source> {
    if path.as_os_str() == "-" {
        return Ok(Source::Stdin);
    }
    let (fs, registry) = system::archives();
    let Some(format) = registry.detect(&fs, path)?.filter(|format| !format.is_index()) else {
        return Ok(Source::Other { urls: trawl_lists::open(&fs, path, None, lists)?, has_states: false });
    };
    if format.name() == "meguri" {
        return Ok(Source::Partition(super::open(path)?));
    }
    let archive = format.open(&Opening::new(&fs, path))?;
    // This source is not asked for again: its name is enough.
    let size = fs.metadata(path)?.len;
    let identity = SourceIdentity { uri: path.display().to_string(), size, tag: String::new() };
    let urls = trawl_archive::urls(archive, path, identity)?;
    Ok(Source::Other { urls, has_states: format.name() == "nutch" })
}
