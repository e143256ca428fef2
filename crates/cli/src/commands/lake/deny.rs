//! `trawl lake deny`: what must not be answered.

use super::{LakeArg, dataset};
use crate::exit::Status;
use crate::output::{Output, harmless};
use crate::{lake_dir, system};
use anyhow::{Context, bail};
use trawl_store::denial::{DenyList, Prefix};
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{Lake, Manifest};
use trawl_url::{LakeUrl, SuffixList};

/// Keeps a deny list: URLs, prefixes, domains or datasets that are answered nowhere
///
/// An entry takes effect at the next request of every reader: rows are neither listed nor counted. They stay in the files
/// until `trawl lake purge`.
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
/// URLs and prefixes are compared in their normalised form (see `trawl url`); http and https, and each port, are
/// different. A name below which others have domains, such as com, co.uk or github.io, is only denied with --suffix.
///
/// Example: trawl lake deny add --lake lake --domain example.com --reason 'ticket 7'
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    #[command(flatten)]
    lake: LakeArg,

    #[command(flatten)]
    targets: Targets,

    /// Also deny a name below which others have domains, such as com or github.io, with all of them
    #[arg(long)]
    suffix: bool,

    /// Why, for people
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Takes entries off the deny list
///
/// Named as `list` shows them, or in any other spelling. Exit code 1 when one was not on it.
///
/// Example: trawl lake deny remove --lake lake --domain example.com
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    #[command(flatten)]
    lake: LakeArg,

    #[command(flatten)]
    targets: Targets,
}

/// Lists what is denied; exit code 1 when nothing is
///
/// Example: trawl lake deny list --lake lake --json
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    lake: LakeArg,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Targets {
    /// This URL, in every spelling
    #[arg(long, value_name = "URL")]
    url: Vec<String>,

    /// Every URL that begins so; the whole host must be there, and the rest as URLs are normalised
    #[arg(long, value_name = "URL")]
    prefix: Vec<String>,

    /// This registrable domain, with every host below it, also after a change of suffix lists
    #[arg(long, value_name = "DOMAIN")]
    domain: Vec<String>,

    /// This dataset, by name or number
    #[arg(long, value_name = "NAME")]
    dataset: Vec<String>,
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
    let targets = args.targets.resolve(&lake, &manifest, args.suffix)?;
    let now = system::now();
    let committed = lake.commit(now, |manifest| {
        let mut new = Vec::new();
        for target in &targets {
            if manifest.deny.iter().any(|deny| deny.target == *target) {
                continue;
            }
            let deny = Deny { target: target.clone(), since: now.to_string(), reason: args.reason.clone() };
            new.push(deny.clone());
            manifest.deny.push(deny);
        }
        Ok(new)
    })?;
    for target in &targets {
        let what = show(target, &manifest);
        match committed.value.iter().find(|deny| deny.target == *target) {
            Some(deny) => out.fact(&event("denied", deny)?, |w| writeln!(w, "denied {what}"))?,
            None => out.remark(&format!("denied already: {what}")),
        }
    }
    Ok(Status::Done)
}

fn remove(args: &RemoveArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = lake_dir::open(&args.lake.lake)?;
    let manifest = lake.current()?;
    let targets = args.targets.find(&lake, &manifest)?;
    let committed = lake.commit(system::now(), |manifest| {
        let (gone, kept) = manifest.deny.drain(..).partition(|deny| targets.contains(&deny.target));
        manifest.deny = kept;
        Ok::<Vec<Deny>, _>(gone)
    })?;
    let mut missing = false;
    for target in &targets {
        let what = show(target, &manifest);
        match committed.value.iter().find(|deny| deny.target == *target) {
            Some(deny) => out.fact(&event("allowed", deny)?, |w| writeln!(w, "no longer denied: {what}"))?,
            None => {
                missing = true;
                out.remark(&format!("was not denied: {what}"));
            }
        }
    }
    Ok(Status::from_findings(missing))
}

fn list(args: &ListArgs, out: &mut Output) -> anyhow::Result<Status> {
    let manifest = lake_dir::open(&args.lake.lake)?.current()?;
    for deny in &manifest.deny {
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
pub(super) fn show(target: &DenyTarget, manifest: &Manifest) -> String {
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

/// The suffix list that the lake's domains are cut by.
pub(super) fn suffixes(lake: &Lake, manifest: &Manifest) -> anyhow::Result<SuffixList> {
    let bytes = lake.suffix_list(manifest)?;
    SuffixList::parse(std::str::from_utf8(&bytes)?).context("the lake's suffix list")
}

fn parse(text: &str, suffixes: &SuffixList) -> anyhow::Result<LakeUrl> {
    LakeUrl::parse(text, suffixes).with_context(|| format!("{text:?} is no URL"))
}

/// Whether hosts below a denied domain are cut into domains of their own.
fn has_domains_below(target: &DenyTarget, suffixes: &SuffixList) -> bool {
    let deny = vec![Deny { target: target.clone(), since: String::new(), reason: None }];
    DenyList::new(&Manifest { deny, ..Manifest::empty() }, suffixes).cuts_below(suffixes)
}

/// A URL of nothing but the host of a domain, as rows spell it.
fn parse_domain(domain: &str, suffixes: &SuffixList) -> anyhow::Result<LakeUrl> {
    let ipv6 = domain.parse::<std::net::Ipv6Addr>().is_ok();
    let host = if ipv6 { format!("[{domain}]") } else { domain.to_owned() };
    let url = parse(&format!("http://{host}/"), suffixes)?;
    if url.path_query() != "/" || url.port().is_some() {
        bail!("{domain:?} is no domain: it has a port or a path");
    }
    Ok(url)
}

impl Targets {
    /// The entries, spelled as rows are.
    fn resolve(&self, lake: &Lake, manifest: &Manifest, suffix: bool) -> anyhow::Result<Vec<DenyTarget>> {
        let suffixes = suffixes(lake, manifest)?;
        let mut targets = Vec::new();
        for url in &self.url {
            targets.push(DenyTarget::Url(parse(url, &suffixes)?.as_str().to_owned()));
        }
        for prefix in &self.prefix {
            targets.push(DenyTarget::Prefix(Prefix::parse(prefix, &suffixes)?.as_str().to_owned()));
        }
        for domain in &self.domain {
            let url = parse_domain(domain, &suffixes)?;
            // To deny all of a domain when one of its hosts is named would take away more than was asked for.
            if url.domain() != url.host() {
                bail!(
                    "{domain} is a host of {0}: deny --domain {0}, or --prefix http://{domain}/ and https://{domain}/",
                    url.domain()
                );
            }
            let target = DenyTarget::Domain(url.domain().to_owned());
            if !suffix && has_domains_below(&target, &suffixes) {
                bail!(
                    "others have domains below {0} by the lake's suffix list: denying it takes them all away, which \
                     needs --suffix",
                    url.domain()
                );
            }
            targets.push(target);
        }
        for name in &self.dataset {
            targets.push(DenyTarget::Dataset(dataset(manifest, name)?.id));
        }
        Ok(targets)
    }

    /// The entries as they may be on the list: word for word, whatever would be refused today, or spelled as rows are.
    fn find(&self, lake: &Lake, manifest: &Manifest) -> anyhow::Result<Vec<DenyTarget>> {
        let suffixes = suffixes(lake, manifest)?;
        let mut targets = Vec::new();
        let mut add = |given: DenyTarget, spelled: &dyn Fn() -> anyhow::Result<DenyTarget>| {
            let listed = manifest.deny.iter().any(|deny| deny.target == given);
            targets.push(if listed { given } else { spelled()? });
            anyhow::Ok(())
        };
        for url in &self.url {
            let spelled = || Ok(DenyTarget::Url(parse(url, &suffixes)?.as_str().to_owned()));
            add(DenyTarget::Url(url.clone()), &spelled)?;
        }
        for prefix in &self.prefix {
            let spelled = || Ok(DenyTarget::Prefix(Prefix::parse(prefix, &suffixes)?.as_str().to_owned()));
            add(DenyTarget::Prefix(prefix.clone()), &spelled)?;
        }
        for domain in &self.domain {
            let spelled = || Ok(DenyTarget::Domain(parse_domain(domain, &suffixes)?.host().to_owned()));
            add(DenyTarget::Domain(domain.clone()), &spelled)?;
        }
        for name in &self.dataset {
            // One that was dropped since has no name any more.
            let spelled = || Ok(DenyTarget::Dataset(dataset(manifest, name)?.id));
            let named = manifest.dataset_named(name).map(|dataset| dataset.id);
            // No dataset has the number 0.
            let id = named.or_else(|| name.parse().ok()).unwrap_or_default();
            add(DenyTarget::Dataset(id), &spelled)?;
        }
        Ok(targets)
    }
}
