//! `trawl url`: how Trawl sees a URL.

mod parsers;

use crate::exit::Status;
use crate::output::Output;
use anyhow::Context;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use trawl_url::key::{self, HostGroup, Policy};
use trawl_url::{Base, LakeUrl, Reject, SuffixList, domain_id, domain_prefix, url_id};

/// A longer line is no URL; it is refused without being kept.
const MAX_LINE: usize = 1 << 20;

/// Shows how Trawl sees a URL: its forms, its domain, its keys and ids
///
/// The lake form is how a lake stores and compares a URL; the key form is hashed in .meguri files that ask for it. Exit code 1
/// when a URL was refused.
///
/// The subcommands show how the crawler parses a robots.txt, a page or a sitemap.
///
/// Examples:
///   trawl url 'HTTP://Example.COM:80/a/../b?utm_source=x&id=7#top'
///   zcat urls.gz | trawl url --json - | head
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,

    /// URLs; `-` reads them from standard input, one per line
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// Resolve each URL as a link on this page
    #[arg(long, value_name = "URL")]
    base: Option<String>,

    /// Key by the full host name instead of the registrable domain
    #[arg(long)]
    full_host: bool,

    /// Use this public suffix list instead of the compiled-in one
    #[arg(long, value_name = "FILE")]
    psl: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Robots(parsers::RobotsArgs),
    Links(parsers::LinksArgs),
    Sitemap(parsers::SitemapArgs),
}

impl Args {
    /// Whether it prints a listing.
    pub fn is_listing(&self) -> bool {
        match &self.verb {
            Some(Verb::Robots(args)) => args.is_listing(),
            Some(Verb::Links(_) | Verb::Sitemap(_)) => true,
            None => false,
        }
    }
}

/// What is known of one URL. Ids are hexadecimal text: JSON numbers lose bits above 2^53 in many readers.
#[derive(Debug, Serialize)]
struct Seen<'a> {
    input: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lake: Option<Lake>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Key>,
    /// Why there is no key form of a URL that the lake takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_key: Option<Rejected>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<Rejected>,
}

#[derive(Debug, Serialize)]
struct Lake {
    url: String,
    scheme: String,
    host: String,
    port: Option<u16>,
    path_query: String,
    domain: String,
    surt: String,
    url_id: String,
    domain_id: String,
    domain_prefix: String,
}

#[derive(Debug, Serialize)]
struct Key {
    url: String,
    host_key: String,
    path_key: String,
}

#[derive(Debug, Serialize)]
struct Rejected {
    code: &'static str,
    reason: String,
}

impl Rejected {
    fn of(reject: &Reject) -> Self {
        Self { code: reject.code(), reason: reject.to_string() }
    }
}

struct Viewer<'a> {
    psl: &'a SuffixList,
    base: Option<String>,
    group: HostGroup,
    policy: Policy,
    rejected: u64,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    match &args.verb {
        Some(Verb::Robots(args)) => return parsers::robots(args, out),
        Some(Verb::Links(args)) => return parsers::links_of(args, out),
        Some(Verb::Sitemap(args)) => return parsers::sitemap_of(args, out),
        None => {}
    }
    let custom = match &args.psl {
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            Some(SuffixList::parse(&text).with_context(|| format!("{} is not a suffix list", path.display()))?)
        }
        None => None,
    };
    let mut viewer = Viewer {
        psl: custom.as_ref().unwrap_or_else(|| SuffixList::builtin()),
        base: args.base,
        group: if args.full_host { HostGroup::FullHost } else { HostGroup::Registrable },
        policy: Policy::default(),
        rejected: 0,
    };
    for url in &args.urls {
        if url == "-" {
            viewer.stream(io::stdin().lock(), out)?;
        } else {
            viewer.show(url, out)?;
        }
    }
    Ok(Status::from_findings(viewer.rejected > 0))
}

impl Viewer<'_> {
    /// One URL a line; a line that is no UTF-8 is shown as such and refused.
    fn stream(&mut self, mut input: impl BufRead, out: &mut Output) -> anyhow::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = io::Read::take(&mut input, MAX_LINE as u64 + 1).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            if line.last() != Some(&b'\n') && line.len() > MAX_LINE {
                input.skip_until(b'\n')?;
            }
            let text = trawl_url::text_of(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            if !text.trim().is_empty() {
                self.show(text, out)?;
            }
        }
    }

    fn show(&mut self, input: &str, out: &mut Output) -> anyhow::Result<()> {
        let shown = if out.credentials() { Cow::Borrowed(input) } else { trawl_url::without_userinfo(input) };
        let (input, url) = (shown, input);
        let seen = match self.see(url) {
            Ok((lake, key)) => {
                let (key, no_key) = match key {
                    Ok(key) => (Some(key), None),
                    Err(reject) => (None, Some(Rejected::of(&reject))),
                };
                Seen { input, lake: Some(lake), key, no_key, rejected: None }
            }
            Err(reject) => {
                self.rejected += 1;
                Seen { input, lake: None, key: None, no_key: None, rejected: Some(Rejected::of(&reject)) }
            }
        };
        out.fact(&seen, |w| seen.write(w))?;
        Ok(())
    }

    /// The lake form, and the key form, which not every URL of a lake has.
    fn see(&self, input: &str) -> Result<(Lake, Result<Key, Reject>), Reject> {
        let resolved = self.base.as_deref().map(|base| Base::new(base)?.resolve(input)).transpose()?;
        let raw = resolved.as_deref().unwrap_or(input);
        let lake = LakeUrl::parse(raw, self.psl)?;
        // A line without a scheme is http to the lake; the key form takes absolute URLs only.
        let absolute = key::canonical(raw.as_bytes(), None, &self.policy);
        let canonical = absolute.or_else(|_| key::canonical(lake.as_str().as_bytes(), None, &self.policy));
        let key = canonical.map(|url| {
            let key = key::of(&url, self.group, self.psl);
            Key { host_key: format!("{:016x}", key.host), path_key: format!("{:016x}", key.path), url }
        });
        let id = domain_id(lake.domain());
        Ok((
            Lake {
                url: lake.as_str().to_owned(),
                scheme: lake.scheme().to_owned(),
                host: lake.host().to_owned(),
                port: lake.port(),
                path_query: lake.path_query().to_owned(),
                domain: lake.domain().to_owned(),
                surt: lake.surt(),
                url_id: format!("{:016x}", url_id(raw.as_bytes())),
                domain_id: format!("{id:016x}"),
                domain_prefix: domain_prefix(id, 2),
            },
            key,
        ))
    }
}

impl Seen<'_> {
    fn write(&self, w: &mut dyn Write) -> io::Result<()> {
        writeln!(w, "{}", self.input)?;
        if let Some(rejected) = &self.rejected {
            writeln!(w, "  rejected   {} ({})", rejected.reason, rejected.code)?;
        }
        if let Some(lake) = &self.lake {
            writeln!(w, "  lake form  {}", lake.url)?;
            writeln!(w, "  domain     {}  (host {})", lake.domain, lake.host)?;
            writeln!(w, "  surt       {}", lake.surt)?;
            writeln!(w, "  url_id     {}   domain_id {}  prefix {}", lake.url_id, lake.domain_id, lake.domain_prefix)?;
        }
        if let Some(key) = &self.key {
            writeln!(w, "  key form   {}", key.url)?;
            writeln!(w, "  url key    {} {}", key.host_key, key.path_key)?;
        }
        if let Some(why) = &self.no_key {
            writeln!(w, "  key form   none: {} ({})", why.reason, why.code)?;
        }
        Ok(())
    }
}
