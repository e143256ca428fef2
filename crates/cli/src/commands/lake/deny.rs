//! `trawl lake deny`: what must not be answered.

mod targets;

use super::tell::keep;
use super::{LakeArg, MEMORY_BYTES};
use crate::exit::Status;
use crate::lake_dir;
use crate::output::{Output, harmless};
use crate::units::show_count;
use std::collections::HashMap;
use std::io::Write;
use targets::Targets;
use trawl_maintain::Resolver;
use trawl_store::Manifest;
use trawl_store::manifest::{Deny, DenyTarget};

/// Edits the deny list: URLs, prefixes, domains and datasets that no query returns
///
/// An entry takes effect at the next request: denied rows are neither listed nor counted. They stay in the files until
/// `trawl lake purge` removes them.
#[derive(Debug, clap::Args)]
pub struct DenyArgs {
    #[command(subcommand)]
    command: DenyVerb,
}

#[derive(Debug, clap::Subcommand)]
enum DenyVerb {
    Add(AddArgs),
    Remove(RemoveArgs),
    List(ListArgs),
}

/// Denies URLs, prefixes, domains or datasets
///
/// URLs and prefixes are compared in their normalised form (see `trawl url`); http and https differ, and so do ports. A public
/// suffix such as com, co.uk or github.io, under which others have domains, is denied only with --suffix.
///
/// Example: trawl lake deny add --domain example.com --reason 'ticket 7'
///
/// Many at once: trawl lake deny add --lake lake --from takedowns.txt
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    #[command(flatten)]
    lake: LakeArg,

    #[command(flatten)]
    targets: Targets,

    /// Allow denying a public suffix such as com or github.io, with all domains under it
    #[arg(long)]
    suffix: bool,

    /// Why, as a note in the list
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Removes entries from the deny list
///
/// Name them as `list` shows them, or in any other spelling. Exit code 1 when one was not on the list.
///
/// Example: trawl lake deny remove --lake lake --domain example.com
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    #[command(flatten)]
    lake: LakeArg,

    #[command(flatten)]
    targets: Targets,
}

/// Lists the deny list; exit code 1 when it is empty
///
/// Example: trawl lake deny list --lake lake --json
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    lake: LakeArg,
}

impl DenyArgs {
    /// Whether it prints a listing.
    pub(super) fn is_listing(&self) -> bool {
        matches!(self.command, DenyVerb::List(_))
    }
}

pub(super) fn run(args: DenyArgs, out: &mut Output) -> anyhow::Result<Status> {
    match args.command {
        DenyVerb::Add(args) => add(&args, out),
        DenyVerb::Remove(args) => remove(&args, out),
        DenyVerb::List(args) => list(&args, out),
    }
}

fn add(args: &AddArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = lake_dir::open(&args.lake.lake)?;
    let manifest = lake.current()?;
    let resolver = Resolver::new(&lake, &manifest)?;
    let targets = args.targets.each(|named| resolver.to_add(named, args.suffix))?;
    let reason = args.reason.as_deref();
    let new = keep(&args.lake.lake, MEMORY_BYTES, out, |keeper| keeper.deny(&lake, &targets, reason))?;
    let verbs = Verbs { done: "denied", found: "denied", missing: "denied already" };
    tell(&targets, new, &verbs, &manifest, out)?;
    Ok(Status::Done)
}

fn remove(args: &RemoveArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = lake_dir::open(&args.lake.lake)?;
    let manifest = lake.current()?;
    let resolver = Resolver::new(&lake, &manifest)?;
    let targets = args.targets.each(|named| resolver.to_remove(named))?;
    let gone = keep(&args.lake.lake, MEMORY_BYTES, out, |keeper| keeper.allow(&lake, &targets))?;
    let verbs = Verbs { done: "allowed", found: "no longer denied:", missing: "was not denied" };
    Ok(Status::from_findings(tell(&targets, gone, &verbs, &manifest, out)? > 0))
}

/// If there are more entries than this, only their number is printed, except with `--json`.
const TOLD: usize = 100;

/// What became of an entry, for `--json` and for people.
struct Verbs {
    done: &'static str,
    found: &'static str,
    missing: &'static str,
}

/// Tells what became of the entries: those that were changed, and the others, of which it returns the number.
fn tell(
    targets: &[DenyTarget],
    mut changed: HashMap<DenyTarget, Deny>,
    verbs: &Verbs,
    manifest: &Manifest,
    out: &mut Output,
) -> anyhow::Result<usize> {
    let many = targets.len() > TOLD;
    let (mut done, mut missing) = (0, 0);
    for target in targets {
        match changed.remove(target) {
            Some(deny) => {
                done += 1;
                let line = |w: &mut dyn Write| writeln!(w, "{} {}", verbs.found, show(target, manifest));
                out.fact(&event(verbs.done, &deny)?, |w| if many { Ok(()) } else { line(w) })?;
            }
            None => {
                missing += 1;
                if !many {
                    out.remark(&format!("{}: {}", verbs.missing, show(target, manifest)));
                }
            }
        }
    }
    if many {
        if !out.json() {
            writeln!(out, "{} {} entries", verbs.found, show_count(done))?;
        }
        if missing > 0 {
            out.remark(&format!("{}: {} entries", verbs.missing, show_count(missing as u64)));
        }
    }
    Ok(missing)
}

fn list(args: &ListArgs, out: &mut Output) -> anyhow::Result<Status> {
    let manifest = lake_dir::open(&args.lake.lake)?.current()?;
    for deny in &manifest.deny {
        if out.csv() {
            let (kind, value) = match &deny.target {
                DenyTarget::Url(url) => ("url", url.clone()),
                DenyTarget::Prefix(prefix) => ("prefix", prefix.clone()),
                DenyTarget::Domain(domain) => ("domain", domain.clone()),
                DenyTarget::Dataset(id) => ("dataset", id.to_string()),
            };
            let row = serde_json::json!({ "since": deny.since, "kind": kind, "value": value, "reason": deny.reason });
            out.csv_row(&["since", "kind", "value", "reason"], &row)?;
            continue;
        }
        out.fact(&event("deny", deny)?, |w| {
            let reason = harmless(deny.reason.as_deref().unwrap_or_default());
            writeln!(w, "{}  {}  {reason}", deny.since, show(&deny.target, &manifest))
        })?;
    }
    Ok(Status::from_findings(manifest.deny.is_empty()))
}

fn event(kind: &str, deny: &Deny) -> anyhow::Result<serde_json::Value> {
    let mut json = serde_json::to_value(deny)?;
    json["type"] = kind.into();
    Ok(json)
}

/// An entry, for people.
fn show(target: &DenyTarget, manifest: &Manifest) -> String {
    match target {
        DenyTarget::Url(url) => format!("url {}", harmless(url)),
        DenyTarget::Prefix(prefix) => format!("prefix {}", harmless(prefix)),
        DenyTarget::Domain(domain) => format!("domain {domain}"),
        DenyTarget::Dataset(id) => {
            let name = manifest.dataset(*id).map(|d| d.info.name.as_str()).unwrap_or_default();
            format!("dataset {id} {}", harmless(name))
        }
    }
}
