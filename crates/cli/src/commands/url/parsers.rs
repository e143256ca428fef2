//! `trawl url robots|links|sitemap`: what the crawler's parsers make of a file.

use crate::exit::Status;
use crate::output::Output;
use crate::system;
use anyhow::{Context, bail};
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};
use trawl_lists::sitemap;
use trawl_parse::links::{self, links};
use trawl_parse::robots::{Robots, path_and_query};

/// Bytes of a file that are read: far more than any of the parsers takes.
const MAX_BYTES: u64 = 256 << 20;

/// Checks URLs against a robots.txt
///
/// Without URLs it prints the rules for the agent. Exit code 1 when a URL is forbidden.
///
/// Example: trawl url robots robots.txt https://example.com/private/ --agent MyBot
#[derive(Debug, clap::Args)]
pub struct RobotsArgs {
    /// A robots.txt, or - for standard input
    file: PathBuf,

    /// URLs, or paths of the site
    #[arg(value_name = "URL")]
    urls: Vec<String>,

    /// The product token of the crawler
    #[arg(long, value_name = "NAME", default_value = "trawl")]
    agent: String,
}

/// Prints the links of a page
///
/// Prints them as a crawl would follow them: absolute, without fragments, in document order. Exit code 1 when there are none.
///
/// Example: trawl url links page.html --base https://example.com/dir/
#[derive(Debug, clap::Args)]
pub struct LinksArgs {
    /// An HTML file, or - for standard input
    file: PathBuf,

    /// URL of the page
    #[arg(long, value_name = "URL")]
    base: String,

    /// The page's Content-Type, for its charset
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
}

/// Prints the URLs of a sitemap or feed
///
/// Exit code 1 when there are none, or the document is damaged.
///
/// Example: trawl url sitemap sitemap.xml.gz
#[derive(Debug, clap::Args)]
pub struct SitemapArgs {
    /// A sitemap, an index of sitemaps, RSS or Atom, or - for standard input
    file: PathBuf,

    /// URL of the sitemap; without it, relative URLs count as invalid
    #[arg(long, value_name = "URL")]
    base: Option<String>,
}

impl RobotsArgs {
    /// Whether it prints a verdict for each URL, and not what holds for all.
    pub(super) fn is_listing(&self) -> bool {
        !self.urls.is_empty()
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let from: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?),
    };
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("{} is larger than {MAX_BYTES} bytes", path.display());
    }
    Ok(bytes)
}

pub fn robots(args: &RobotsArgs, out: &mut Output) -> anyhow::Result<Status> {
    let robots = Robots::parse(&read(&args.file)?);
    let rules = robots.agent(&args.agent);
    if args.urls.is_empty() {
        let delay = rules.crawl_delay().map(|delay| delay.as_secs_f64());
        let sitemaps: Vec<_> = robots.sitemaps().iter().collect();
        let fact = json!({ "agent": args.agent, "crawl_delay": delay, "sitemaps": sitemaps,
            "truncated": robots.truncated() });
        out.fact(&fact, |w| {
            if let Some(delay) = delay {
                writeln!(w, "crawl-delay {delay}")?;
            }
            sitemaps.iter().try_for_each(|url| writeln!(w, "sitemap {url}"))
        })?;
        return Ok(Status::Done);
    }
    let mut forbidden = 0;
    for url in &args.urls {
        let verdict = rules.allows(path_and_query(url).as_bytes());
        forbidden += u64::from(!verdict.allowed);
        let fact = json!({ "url": url, "allowed": verdict.allowed, "line": verdict.line });
        out.row(&["url", "allowed", "line"], &fact, |w| {
            let word = if verdict.allowed { "allowed" } else { "forbidden" };
            let why = verdict.line.map_or("no rule".to_owned(), |line| format!("line {line}"));
            writeln!(w, "{word} {url} ({why})")
        })?;
    }
    Ok(Status::from_findings(forbidden > 0))
}

pub fn links_of(args: &LinksArgs, out: &mut Output) -> anyhow::Result<Status> {
    if let Err(reject) = trawl_url::Base::new(&args.base) {
        bail!("--base: {reject}");
    }
    let page = links(&read(&args.file)?, &args.base, args.content_type.as_deref(), &links::Options::default());
    for link in &page.links {
        let url = &link.url;
        let kind = format!("{:?}", link.kind).to_ascii_lowercase();
        let fact = json!({ "url": url, "kind": kind, "nofollow": link.rel.nofollow });
        out.row(&["url", "kind", "nofollow"], &fact, |w| writeln!(w, "{kind} {url}"))?;
    }
    let (not_web, over) = (page.not_web, page.over_limit);
    out.remark(&format!("{} links, {not_web} that are not web URLs, {over} too many or too long", page.links.len()));
    Ok(Status::from_findings(page.links.is_empty()))
}

pub fn sitemap_of(args: &SitemapArgs, out: &mut Output) -> anyhow::Result<Status> {
    let bytes = read(&args.file)?;
    if let Some(Err(reject)) = args.base.as_deref().map(trawl_url::Base::new) {
        bail!("--base: {reject}");
    }
    let found_at = args.base.as_deref().unwrap_or_default();
    let document = sitemap::parse(&bytes, found_at, system::now(), &sitemap::Options::default())
        .with_context(|| args.file.display().to_string())?;
    for entry in &document.entries {
        let url = &entry.url;
        let lastmod = entry.lastmod.map(|at| at.rfc3339_seconds());
        let fact = json!({ "url": url, "lastmod": lastmod });
        out.row(&["url", "lastmod"], &fact, |w| {
            writeln!(w, "{url}{}", lastmod.as_deref().map(|at| format!(" {at}")).unwrap_or_default())
        })?;
    }
    let kind = format!("{:?}", document.kind).to_ascii_lowercase();
    out.remark(&format!("{kind}: {} URLs, {} that are not web URLs", document.entries.len(), document.not_web));
    if document.over_limit {
        out.remark("there is more than is read of one document");
    }
    Ok(Status::from_findings(document.entries.is_empty() || document.damaged))
}
