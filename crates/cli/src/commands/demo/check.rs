//! `trawl demo --check`: what the demo made, against what the web's model says.

use super::{DEPTH, Made};
use crate::system;
use anyhow::{Context, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use trawl_archive::{CapturesReader, verify};
use trawl_model::Check;
use trawl_url::SuffixList;

/// Rows of each dataset, by domain.
type Counts = BTreeMap<String, BTreeMap<&'static str, u64>>;

/// Checks everything; the number of checks made.
pub fn run(made: &Made, address: SocketAddr) -> anyhow::Result<u64> {
    let mut checks = 0;
    let mut counts = Counts::new();
    pages_exactly_once(made, &mut counts).context("the crawl")?;
    archive_is_sound(made).context("the archive")?;
    checks += 2;
    for listed in &made.list {
        *counts.entry(listed.domain.clone()).or_default().entry("list").or_default() += 1;
    }
    for (domain, expected) in &counts {
        domain_is_right(address, domain, expected).with_context(|| domain.clone())?;
        checks += 1;
    }
    checks += pages_are_right(made, address, &counts)?;
    for (path, status, word) in [
        ("/", 200, "Trawl explorer"),
        ("/explorer.js", 200, "replaceChildren"),
        ("/health", 200, "ok"),
        ("/v1/stats", 200, "\"datasets\":2"),
        ("/v1/domain/nobody-has-this.example", 404, "unknown_domain"),
        ("/v1/domain/example.com/datasets/1/urls?limit=x", 400, "bad_request"),
        ("/nowhere", 404, "unknown_path"),
    ] {
        let (got, body) = get(address, path)?;
        ensure!(got == status && body.contains(word), "GET {path}: {got}, expected {status} and {word:?}: {body:.200}");
        checks += 1;
    }
    Ok(checks)
}

/// Every page that a polite crawler fetches is in captures.parquet once, and no other page is.
fn pages_exactly_once(made: &Made, counts: &mut Counts) -> anyhow::Result<()> {
    let expected = made.world.expected_pages(DEPTH);
    let mut seen = BTreeSet::new();
    for row in CapturesReader::open(&made.crawl_dir.join("captures.parquet"))? {
        let row = row?;
        let domain = SuffixList::builtin().registrable(&row.host).to_owned();
        *counts.entry(domain).or_default().entry("crawl").or_default() += 1;
        if row.url.ends_with("/robots.txt") || row.is_failure() {
            continue;
        }
        ensure!(expected.contains(&row.url), "{} was fetched and should not have been", row.url);
        ensure!(seen.insert(row.url.clone()), "{} was recorded twice", row.url);
    }
    let missing: Vec<_> = expected.difference(&seen).take(3).collect();
    ensure!(missing.is_empty(), "{} pages are missing, {missing:?} among them", expected.len() - seen.len());
    Ok(())
}

fn archive_is_sound(made: &Made) -> anyhow::Result<()> {
    let mut faults = Vec::new();
    let (fs, registry) = system::archives();
    let temp_dir = &made.lake_dir.join("tmp");
    let (on_finding, progress) = (&mut |fault| faults.push(fault), &mut |_| {});
    let mut check = Check { temp_dir, memory_bytes: 64 << 20, on_finding, progress };
    verify(&fs, &registry.files(&fs, &made.crawl_dir)?, true, &mut check)?;
    if let Some(first) = faults.first() {
        bail!("{} faults: {}: {}", faults.len(), first.file, first.detail);
    }
    Ok(())
}

fn domain_is_right(address: SocketAddr, domain: &str, expected: &BTreeMap<&str, u64>) -> anyhow::Result<()> {
    let answer = json(address, &format!("/v1/domain/{domain}"))?;
    let datasets = answer["datasets"].as_array().context("no datasets")?;
    let got: BTreeMap<&str, u64> =
        datasets.iter().filter_map(|d| Some((d["name"].as_str()?, d["url_count_est"].as_u64()?))).collect();
    ensure!(&got == expected, "the lake says {got:?}, the lists say {expected:?}");
    Ok(())
}

/// The URLs of the largest domains and of the last ones, page by page.
fn pages_are_right(made: &Made, address: SocketAddr, counts: &Counts) -> anyhow::Result<u64> {
    let mut domains: Vec<_> = counts.iter().filter_map(|(domain, n)| Some((*n.get("list")?, domain))).collect();
    domains.sort_unstable();
    let mut checks = 0;
    for (total, domain) in domains.iter().rev().take(10).chain(domains.iter().take(10)) {
        let mut expected: Vec<&str> =
            made.list.iter().filter(|l| l.domain == **domain).map(|l| l.url.as_str()).collect();
        expected.sort_unstable();
        let mut got = Vec::new();
        let mut offset = Some(0);
        while let Some(at) = offset {
            let page = json(address, &format!("/v1/domain/{domain}/datasets/2/urls?offset={at}&limit=37"))?;
            ensure!(page["total_est"].as_u64() == Some(*total), "{domain}: {} of {total} rows", page["total_est"]);
            let items = page["items"].as_array().context("no items")?;
            got.extend(items.iter().filter_map(|item| item["url"].as_str().map(str::to_owned)));
            offset = page["next_offset"].as_u64();
        }
        got.sort_unstable();
        ensure!(got == expected, "{domain}: {} URLs, expected {}", got.len(), expected.len());
        checks += 1;
    }
    Ok(checks)
}

fn json(address: SocketAddr, path: &str) -> anyhow::Result<serde_json::Value> {
    let (status, body) = get(address, path)?;
    ensure!(status == 200, "GET {path}: {status}: {body:.200}");
    serde_json::from_str(&body).with_context(|| format!("GET {path} gave no JSON"))
}

/// A request of our own making: nothing of the server's library judges the server.
fn get(address: SocketAddr, path: &str) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no head in the answer")?;
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).context("no status in the answer")?;
    Ok((status, body.to_owned()))
}
