//! `trawl lake purge` and `drop`: taking data out of a lake for good.

use super::compact::merge_segments;
use super::{LakeArg, confirm, dataset, datasets, publish, rewrite_settings, show_ingest};
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{show_bytes, show_count};
use crate::{lake_dir, system};
use anyhow::Context;
use trawl_index::Compaction;
use trawl_ingest::{Files, Losses, Rewrite, losses, purge_rejects, rewrite};
use trawl_model::UrlRecord;
use trawl_query::DenyList;
use trawl_store::manifest::DenyTarget;
use trawl_store::{DataFile, Lake, Manifest};
use trawl_url::{LakeUrl, SuffixList};

const AFTER: &str = "the old bytes stay for readers of older versions: \
                     `trawl lake gc --keep-versions 1 --keep-states 1 --grace 0s --yes` takes them away now";

/// Writes files again without what the deny list names
///
/// Rows of denied URLs, prefixes and domains leave the Parquet files and the rejects; denied datasets are dropped; the
/// index is made without them. The bytes are gone once `trawl lake gc` has taken the old files. Entries stay on the deny
/// list, so that a later ingest does not bring them back. Needs --yes; --dry-run counts what would go.
///
/// Example: trawl lake purge --lake lake --dry-run
#[derive(Debug, clap::Args)]
pub struct PurgeArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// This dataset only
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,

    /// Count what would go, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Purge without asking
    #[arg(long)]
    yes: bool,
}

/// Drops a dataset: it is answered nowhere any more
///
/// Its files go with a later `trawl lake gc`; its number is never used again, its name is free. Needs --yes.
///
/// Example: trawl lake drop --lake lake old-list --yes
#[derive(Debug, clap::Args)]
pub struct DropArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Name or number of the dataset
    #[arg(value_name = "DATASET")]
    dataset: String,

    /// Tell what would go, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Drop without asking
    #[arg(long)]
    yes: bool,
}

pub(super) fn drop_dataset(args: &DropArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    let lake = lake_dir::open(dir)?;
    let manifest = lake.current()?;
    let (id, name) = {
        let dataset = dataset(&manifest, &args.dataset)?;
        (dataset.id, dataset.info.name.clone())
    };
    let commit = lake.dataset_newest(id)?;
    let (rows, files, bytes) = commit.map_or((0, 0, 0), |c| (c.rows, c.files.len(), c.bytes));
    let holds = format!("{} rows, {files} files, {}", show_count(rows), show_bytes(bytes));
    let json = serde_json::json!({
        "type": "dropped", "dataset": name, "dataset_id": id, "rows": rows, "files": files, "bytes": bytes,
        "dry_run": args.dry_run,
    });
    if args.dry_run {
        out.fact(&json, |w| writeln!(w, "would drop dataset {name}: {holds}"))?;
        return Ok(Status::Done);
    }
    confirm(&format!("dropping dataset {name} ({holds})"), args.yes)?;
    lake.drop_dataset(system::now(), &system::nonce()?, id)?;
    publish(&lake, dir, out)?;
    out.fact(&json, |w| writeln!(w, "dropped dataset {name}: {holds}"))?;
    out.remark(AFTER);
    Ok(Status::Done)
}

/// What a purge takes, decided row by row.
struct Denied {
    list: DenyList,
    suffixes: SuffixList,
    /// Texts by which a rejected line is known to be about something denied.
    hosts: Vec<String>,
}

impl Denied {
    fn new(lake: &Lake, manifest: &Manifest) -> anyhow::Result<Self> {
        let bytes = lake.suffix_list(manifest)?;
        let suffixes = SuffixList::parse(std::str::from_utf8(&bytes)?).context("the lake's suffix list")?;
        let list = DenyList::new(manifest, &suffixes);
        let host = |target: &DenyTarget| match target {
            DenyTarget::Url(url) | DenyTarget::Prefix(url) => {
                LakeUrl::parse(url, &suffixes).ok().map(|url| url.host().to_owned())
            }
            DenyTarget::Domain(domain) => Some(domain.clone()),
            DenyTarget::Dataset(_) => None,
        };
        let hosts = manifest.deny.iter().filter_map(|deny| host(&deny.target)).collect();
        Ok(Self { list, suffixes, hosts })
    }

    fn keeps(&self, record: &UrlRecord) -> bool {
        match LakeUrl::parse(&record.url, &self.suffixes) {
            Ok(url) => !self.list.domain(url.domain()) && !self.list.url(url.as_str()),
            // Whatever this is, no entry can be about it.
            Err(_) => true,
        }
    }

    fn may_be_in(&self, file: &DataFile) -> bool {
        self.list.domains().any(|domain| *file.min_domain <= *domain && *domain <= *file.max_domain)
    }

    fn keeps_reject(&self, line: &str) -> bool {
        let line = line.to_lowercase();
        !self.hosts.iter().any(|host| line.contains(host.as_str()))
    }
}

pub(super) fn purge(args: &PurgeArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    let lake = lake_dir::open(dir)?;
    let manifest = lake.current()?;
    if !args.dry_run {
        confirm(&format!("purging {} denied thing(s)", manifest.deny.len()), args.yes)?;
    }
    let denied = Denied::new(&lake, &manifest)?;
    let mut any = false;
    for (id, name) in datasets(&manifest, args.dataset.as_deref())? {
        any |= if denied.list.dataset(id) {
            purge_whole(&lake, id, &name, args.dry_run, out)?
        } else {
            purge_rows(&lake, args, id, &name, &denied, out)?
        };
    }
    if !any {
        out.fact(&serde_json::json!({ "type": "nothing" }), |w| writeln!(w, "nothing denied is in the files"))?;
        return Ok(Status::Done);
    }
    if !args.dry_run {
        publish(&lake, dir, out)?;
        // Segments that still answer for others hold names and paths of what went; merging leaves those out.
        let masked = |version: &trawl_store::Version| version.segments.iter().any(|s| !s.masked.is_empty());
        if lake.current()?.current().is_some_and(masked) {
            merge_segments(&lake, dir, Compaction::Full, out)?;
        }
        out.remark(AFTER);
    }
    Ok(Status::Done)
}

fn purge_whole(lake: &Lake, id: u32, name: &str, dry_run: bool, out: &mut Output) -> anyhow::Result<bool> {
    let rows = lake.dataset_newest(id)?.map_or(0, |commit| commit.rows);
    if !dry_run {
        lake.drop_dataset(system::now(), &system::nonce()?, id)?;
    }
    let json = serde_json::json!({
        "type": "dropped", "dataset": name, "dataset_id": id, "rows": rows, "dry_run": dry_run,
    });
    out.fact(&json, |w| {
        let verb = if dry_run { "would drop" } else { "dropped" };
        writeln!(w, "{name}: denied whole, {verb} {} rows", show_count(rows))
    })?;
    Ok(true)
}

fn purge_rows(
    lake: &Lake,
    args: &PurgeArgs,
    id: u32,
    name: &str,
    denied: &Denied,
    out: &mut Output,
) -> anyhow::Result<bool> {
    let keep = |record: &UrlRecord| denied.keeps(record);
    let may = |file: &DataFile| denied.may_be_in(file);
    let bar = Progress::start(&format!("purge {name}"), None, out.quiet());
    let (lost, rejects) = if args.dry_run {
        (losses(lake, id, &keep, &may)?, 0)
    } else {
        let settings = rewrite_settings(&args.lake.lake)?;
        let what = Rewrite { keep: &keep, files: Files::Losing(&may), suffix_list: None };
        let report = rewrite(lake, id, &what, &settings, &system::now, &|p| show_ingest(&bar, p))?;
        let rejects = purge_rejects(lake, id, &settings.writer, &|line| denied.keeps_reject(line))?;
        (Losses { files: report.files_before, rows: report.rows_before - report.rows_after }, rejects)
    };
    drop(bar);
    if lost == Losses::default() && rejects == 0 {
        return Ok(false);
    }
    let json = serde_json::json!({
        "type": "purged", "dataset": name, "dataset_id": id, "rows": lost.rows, "files": lost.files,
        "rejects": rejects, "dry_run": args.dry_run,
    });
    out.fact(&json, |w| {
        let verb = if args.dry_run { "would take" } else { "took" };
        writeln!(w, "{name}: {verb} {} rows out of {} file(s)", show_count(lost.rows), show_count(lost.files))?;
        if rejects > 0 { writeln!(w, "{name}: and {} rejected lines", show_count(rejects)) } else { Ok(()) }
    })?;
    Ok(true)
}
