//! What `trawl lake deny` has to deny: arguments, or lines of files.

use anyhow::{Context, bail};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use trawl_maintain::Named;
use trawl_store::manifest::DenyTarget;

/// Bytes of a line at most: no URL is longer.
const MAX_LINE: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(super) struct Targets {
    /// This URL, in every spelling
    #[arg(long, value_name = "URL")]
    url: Vec<String>,

    /// All URLs with this prefix; it must contain the whole host, and is compared with normalised URLs
    #[arg(long, value_name = "URL")]
    prefix: Vec<String>,

    /// This registrable domain and all hosts below it, even if the suffix list changes
    #[arg(long, value_name = "DOMAIN")]
    domain: Vec<String>,

    /// This dataset, by name or number
    #[arg(long, value_name = "NAME")]
    dataset: Vec<String>,

    /// Read entries from this file, or - for standard input. A line holds a domain, a prefix (with ://), or one of the words
    /// `url`, `prefix`, `domain` or `dataset` and its value. Blank lines and lines that begin with # are skipped
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
}

/// Something to deny, and the file and line that name it.
type Found = (Named, Option<String>);

/// What a line says; nothing if it is blank or a remark.
fn of_line(line: &str) -> Option<Named> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let told = line.split_once(char::is_whitespace).and_then(|(word, rest)| {
        let text = rest.trim_start().to_owned();
        match word {
            "url" => Some(Named::Url(text)),
            "prefix" => Some(Named::Prefix(text)),
            "domain" => Some(Named::Domain(text)),
            "dataset" => Some(Named::Dataset(text)),
            _ => None,
        }
    });
    let bare = || if line.contains("://") { Named::Prefix(line.to_owned()) } else { Named::Domain(line.to_owned()) };
    Some(told.unwrap_or_else(bare))
}

impl Targets {
    /// Everything that is named, in order.
    fn named(&self) -> anyhow::Result<Vec<Found>> {
        let mut named: Vec<Found> = Vec::new();
        let mut add = |list: &[String], kind: fn(String) -> Named| {
            named.extend(list.iter().map(|text| (kind(text.clone()), None)));
        };
        add(&self.url, Named::Url);
        add(&self.prefix, Named::Prefix);
        add(&self.domain, Named::Domain);
        add(&self.dataset, Named::Dataset);
        for file in &self.from {
            named.extend(read(file)?);
        }
        Ok(named)
    }

    /// The entries that `one` makes of what is named, each once.
    pub fn each(&self, one: impl Fn(&Named) -> trawl_maintain::Result<DenyTarget>) -> anyhow::Result<Vec<DenyTarget>> {
        let mut targets = Vec::new();
        let mut seen = HashSet::new();
        for (named, at) in self.named()? {
            let target = match (one(&named), at) {
                (Err(error), Some(at)) => return Err(anyhow::Error::new(error).context(at)),
                (target, _) => target?,
            };
            if seen.insert(target.clone()) {
                targets.push(target);
            }
        }
        Ok(targets)
    }
}

/// What the lines of a file name.
fn read(path: &Path) -> anyhow::Result<Vec<Found>> {
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
        let named = of_line(if number == 1 { text.trim_start_matches('\u{feff}') } else { text });
        out.extend(named.map(|named| (named, Some(at()))));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_they_name() {
        assert_eq!(of_line("  example.com\r\n"), Some(Named::Domain("example.com".into())));
        assert_eq!(of_line("https://example.com/a b"), Some(Named::Prefix("https://example.com/a b".into())));
        assert_eq!(of_line("url\thttps://example.com/a"), Some(Named::Url("https://example.com/a".into())));
        assert_eq!(of_line("domain  example.com"), Some(Named::Domain("example.com".into())));
        assert_eq!(of_line("dataset my list"), Some(Named::Dataset("my list".into())));
        assert_eq!(of_line("two words"), Some(Named::Domain("two words".into())));
        assert_eq!(
            (of_line("# url x"), of_line(" \n"), of_line("url")),
            (None, None, Some(Named::Domain("url".into())))
        );
    }
}
