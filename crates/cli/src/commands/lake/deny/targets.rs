//! What `trawl lake deny` is told to deny: by arguments, or by lines of files.

use super::super::dataset;
use super::suffixes;
use anyhow::{Context, bail};
use std::collections::HashSet;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use trawl_query::dataset_number;
use trawl_store::denial::{Prefix, SharedNames};
use trawl_store::manifest::DenyTarget;
use trawl_store::{Lake, Manifest};
use trawl_url::{LakeUrl, SuffixList};

/// Bytes of a line at most: no URL is longer.
const MAX_LINE: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(super) struct Targets {
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

    /// What the lines of this file say, - for standard input: a domain, a prefix (with ://), or `url`, `prefix`,
    /// `domain` or `dataset` and what it is; blank lines and those that begin with # say nothing
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
}

/// What kind of thing is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Url,
    Prefix,
    Domain,
    Dataset,
}

/// Something to deny, as it was named.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    kind: Kind,
    text: String,
    /// The file and line that name it.
    at: Option<(String, usize)>,
}

impl Named {
    /// What a line says; nothing if it is blank or a remark.
    fn of_line(line: &str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let told = line.split_once(char::is_whitespace).and_then(|(word, rest)| {
            let kind = match word {
                "url" => Kind::Url,
                "prefix" => Kind::Prefix,
                "domain" => Kind::Domain,
                "dataset" => Kind::Dataset,
                _ => return None,
            };
            Some((kind, rest.trim_start()))
        });
        let bare = || (if line.contains("://") { Kind::Prefix } else { Kind::Domain }, line);
        let (kind, text) = told.unwrap_or_else(bare);
        Some(Self { kind, text: text.to_owned(), at: None })
    }
}

/// Where it was named, for errors.
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some((file, line)) => write!(f, "{file} line {line}"),
            None => f.write_str("the arguments"),
        }
    }
}

impl Targets {
    /// Everything that is named, in order.
    fn named(&self) -> anyhow::Result<Vec<Named>> {
        let lists = [
            (Kind::Url, &self.url),
            (Kind::Prefix, &self.prefix),
            (Kind::Domain, &self.domain),
            (Kind::Dataset, &self.dataset),
        ];
        let of = |(kind, list): (Kind, &Vec<String>)| {
            list.iter().map(|text| Named { kind, text: text.clone(), at: None }).collect::<Vec<_>>()
        };
        let mut named: Vec<Named> = lists.into_iter().flat_map(of).collect();
        for file in &self.from {
            named.extend(read(file)?);
        }
        Ok(named)
    }

    /// The entries, spelled as rows are.
    pub fn resolve(&self, lake: &Lake, manifest: &Manifest, suffix: bool) -> anyhow::Result<Vec<DenyTarget>> {
        let suffixes = suffixes(lake, manifest)?;
        let shared = SharedNames::new(&suffixes);
        let one = |named: &Named| {
            let text = &named.text;
            Ok(match named.kind {
                Kind::Url => DenyTarget::Url(parse(text, &suffixes)?.as_str().to_owned()),
                Kind::Prefix => DenyTarget::Prefix(Prefix::parse(text, &suffixes)?.as_str().to_owned()),
                Kind::Domain => DenyTarget::Domain(whole_domain(text, &suffixes, &shared, suffix)?),
                Kind::Dataset => DenyTarget::Dataset(dataset(manifest, text)?.id),
            })
        };
        self.each(one)
    }

    /// The entries as they may be on the list: word for word, whatever would be refused today, or spelled as rows are.
    pub fn find(&self, lake: &Lake, manifest: &Manifest) -> anyhow::Result<Vec<DenyTarget>> {
        let suffixes = suffixes(lake, manifest)?;
        let listed: HashSet<&DenyTarget> = manifest.deny.iter().map(|deny| &deny.target).collect();
        let one = |named: &Named| {
            let text = &named.text;
            let given = match named.kind {
                Kind::Url => DenyTarget::Url(text.clone()),
                Kind::Prefix => DenyTarget::Prefix(text.clone()),
                Kind::Domain => DenyTarget::Domain(text.clone()),
                Kind::Dataset => {
                    // One that was dropped since has no name any more. No dataset has the number 0.
                    let named = manifest.dataset_named(text).map(|dataset| dataset.id);
                    DenyTarget::Dataset(named.or_else(|| dataset_number(text)).unwrap_or_default())
                }
            };
            if listed.contains(&given) {
                return Ok(given);
            }
            Ok(match named.kind {
                Kind::Url => DenyTarget::Url(parse(text, &suffixes)?.as_str().to_owned()),
                Kind::Prefix => DenyTarget::Prefix(Prefix::parse(text, &suffixes)?.as_str().to_owned()),
                Kind::Domain => DenyTarget::Domain(parse_domain(text, &suffixes)?.host().to_owned()),
                Kind::Dataset => DenyTarget::Dataset(dataset(manifest, text)?.id),
            })
        };
        self.each(one)
    }

    fn each(&self, one: impl Fn(&Named) -> anyhow::Result<DenyTarget>) -> anyhow::Result<Vec<DenyTarget>> {
        let resolve = |named: Named| match (one(&named), &named.at) {
            (Err(error), Some(_)) => Err(error.context(named.to_string())),
            (result, _) => result,
        };
        let mut targets = self.named()?.into_iter().map(resolve).collect::<anyhow::Result<Vec<_>>>()?;
        let mut seen = HashSet::new();
        targets.retain(|target| seen.insert(target.clone()));
        Ok(targets)
    }
}

/// What the lines of a file name.
fn read(path: &Path) -> anyhow::Result<Vec<Named>> {
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let cannot = || format!("cannot read {name}");
    let input: Box<dyn Read> =
        if is_stdin { Box::new(std::io::stdin()) } else { Box::new(std::fs::File::open(path).with_context(cannot)?) };
    let mut input = BufReader::new(input);
    let (mut out, mut line) = (Vec::new(), Vec::new());
    for number in 1.. {
        line.clear();
        if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).with_context(cannot)? == 0 {
            break;
        }
        let at = || format!("{name} line {number}");
        if line.len() as u64 == MAX_LINE && !line.ends_with(b"\n") {
            bail!("{}: expected at most {MAX_LINE} bytes", at());
        }
        let text = std::str::from_utf8(&line).with_context(at)?;
        let named = Named::of_line(if number == 1 { text.trim_start_matches('\u{feff}') } else { text });
        out.extend(named.map(|named| Named { at: Some((name.clone(), number)), ..named }));
    }
    Ok(out)
}

fn parse(text: &str, suffixes: &SuffixList) -> anyhow::Result<LakeUrl> {
    LakeUrl::parse(text, suffixes).with_context(|| format!("{text:?} is no URL"))
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

/// A domain that is denied as a whole.
fn whole_domain(text: &str, suffixes: &SuffixList, shared: &SharedNames, suffix: bool) -> anyhow::Result<String> {
    let url = parse_domain(text, suffixes)?;
    let domain = url.domain();
    // To deny all of a domain when one of its hosts is named would take away more than was asked for.
    if domain != url.host() {
        bail!("{text} is a host of {domain}: deny --domain {domain}, or --prefix http://{text}/ and https://{text}/");
    }
    if !suffix && shared.has(domain) {
        bail!(
            "others have domains below {domain} by the lake's suffix list: denying it takes them all away, which needs \
             --suffix"
        );
    }
    Ok(domain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_they_name() {
        let of = |line| Named::of_line(line).map(|named| (named.kind, named.text));
        let some = |kind, text: &str| Some((kind, text.to_owned()));
        assert_eq!(of("  example.com\r\n"), some(Kind::Domain, "example.com"));
        assert_eq!(of("https://example.com/a b"), some(Kind::Prefix, "https://example.com/a b"));
        assert_eq!(of("url\thttps://example.com/a"), some(Kind::Url, "https://example.com/a"));
        assert_eq!(of("domain  example.com"), some(Kind::Domain, "example.com"));
        assert_eq!(of("dataset my list"), some(Kind::Dataset, "my list"));
        assert_eq!(of("two words"), some(Kind::Domain, "two words"));
        assert_eq!((of("# url x"), of(" \n"), of("url")), (None, None, some(Kind::Domain, "url")));
    }
}
