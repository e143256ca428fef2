//! `trawl frontier seed`: any URL list into a file.

use super::files::{WriteArgs, directory};
use super::parse_hour;
use crate::exit::Status;
use crate::lists::ListArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::system;
use crate::units::{show_bytes, show_count};
use serde::Serialize;
use std::path::{Path, PathBuf};
use trawl_archive::Opening;
use trawl_lists::Options;
use trawl_meguri::keys::KeyPolicy;
use trawl_meguri::seed::{SeedOptions, Seeded, Seeder, hour_of};
use trawl_meguri::{Identity, WriterOptions, Written};
use trawl_model::{DoorError, SourceIdentity, UrlRecord, UrlSource};
use trawl_url::SuffixList;
use trawl_url::key::HostGroup;

/// Turns URL lists into a partition file
///
/// Anything that `lake ingest` reads: lines, CSV, JSON lines, CDXJ, Parquet, captures.parquet, archives, other partition
/// files; `-` is standard input. What
/// a list knows of a URL (time, status, place in an archive) goes into its row. Exit code 1 if items were rejected.
///
/// Examples:
///   trawl frontier seed urls.txt --out seeds.meguri
///   zcat urls.gz | trawl frontier seed - --out seeds.meguri --priority 0.9
///   trawl frontier seed crawl/captures.parquet --out crawl.meguri
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct SeedArgs {
    /// Lists; without any, standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// A list, by name
    #[arg(long, short, value_name = "FILE", hide = true)]
    input: Vec<PathBuf>,

    /// Where the file goes
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// Priority of every URL
    #[arg(long, default_value_t = 0.5, value_name = "P")]
    priority: f32,

    /// Crawl delay of every host, in tenths of a second
    #[arg(long, default_value_t = 10, value_name = "N")]
    crawl_delay: u16,

    /// How keys are made: Trawl's identity, the URL exactly, or as the reference does
    #[arg(long, value_enum, default_value = "trawl", value_name = "POLICY")]
    key_policy: Policy,

    /// What counts as one host; else as the key policy has it
    #[arg(long, value_enum, value_name = "GROUP")]
    host_group: Option<Group>,

    /// Number of the partition
    #[arg(long, default_value_t = 1, value_name = "N")]
    partition_id: u32,

    /// Hour since 1970 at which the file is made, and URLs without a time were found; 0: now
    #[arg(long, value_parser = parse_hour, value_name = "HOUR")]
    created: Option<u32>,

    #[command(flatten)]
    lists: ListArgs,

    #[command(flatten)]
    write: WriteArgs,
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
    #[serde(flatten)]
    seeded: Seeded,
    unreadable_items: u64,
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
    let now_hour = args.created.unwrap_or_else(|| hour_of(system::now()));
    let (priority, crawl_delay) = (args.priority, args.crawl_delay);
    let options = SeedOptions { policy, group, priority, crawl_delay, now_hour };
    let (created, metadata) = (now_hour, options.metadata());
    let identity = Identity { partition_id: args.partition_id, range: Some((0, u64::MAX)), created, metadata };
    let url_extensions = SeedOptions::extensions();
    let mut writer =
        args.write.writer(&args.out, WriterOptions { identity, url_extensions, ..WriterOptions::default() })?;
    let (temp, memory) = (directory(&args.out), args.write.memory_bytes());
    let mut seeder = Seeder::new(options, SuffixList::builtin(), &temp, memory)?;
    let lists = Options { now: system::now(), ..args.lists.apply(Options::default()) };
    let unreadable = read(&args.files, &lists, &mut seeder, out)?;
    let seeded = seeder.finish(&mut writer)?;
    let done = Done {
        file: args.out.display().to_string(),
        written: writer.finish_file(&args.out)?,
        seeded,
        unreadable_items: unreadable,
    };
    out.fact(&done, |w| {
        let Done { written, seeded, unreadable_items, .. } = &done;
        let Written { urls, hosts, bytes, .. } = *written;
        writeln!(w, "{}: {} URLs, {} hosts, {}", done.file, show_count(urls), show_count(hosts), show_bytes(bytes))?;
        if seeded.duplicates > 0 {
            writeln!(w, "  {} URLs are the same page as another", show_count(seeded.duplicates))?;
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

/// Hands every item of every list over, and counts those that are none.
fn read(files: &[PathBuf], lists: &Options, seeder: &mut Seeder<'_>, out: &Output) -> anyhow::Result<u64> {
    let bar = Progress::start("seed", None, out.quiet());
    let (mut items, mut unreadable) = (0u64, 0);
    let mut each = |_: u64, item: Result<UrlRecord, DoorError>| -> Result<(), DoorError> {
        items += 1;
        bar.report(items, || format!("{} URLs", show_count(items)));
        match item {
            Ok(record) => Ok(seeder.push(&record)?),
            Err(error) => {
                unreadable += 1;
                if unreadable <= 10 {
                    out.remark(&error.to_string());
                }
                Ok(())
            }
        }
    };
    for path in files {
        if path.as_os_str() == "-" {
            trawl_lists::read_stream("stdin", None, std::io::stdin().lock(), lists, &mut each)?;
            continue;
        }
        let source = open_list(path, lists)?;
        for split in source.splits(u64::MAX)? {
            source.read(split, &mut each)?;
        }
    }
    Ok(unreadable)
}

/// A list, or an archive or partition file whose URLs are taken.
fn open_list(path: &Path, lists: &Options) -> anyhow::Result<Box<dyn UrlSource>> {
    let (fs, registry) = system::archives();
    let Some(format) = registry.detect(&fs, path)?.filter(|format| !format.is_index()) else {
        return Ok(trawl_lists::open(&fs, path, None, lists)?);
    };
    let archive = format.open(&Opening::new(&fs, path))?;
    // Nobody asks for this source again: its name is enough.
    let size = fs.metadata(path)?.len;
    let identity = SourceIdentity { uri: path.display().to_string(), size, tag: String::new() };
    Ok(trawl_archive::urls(archive, path, identity)?)
}
