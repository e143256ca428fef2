//! LinkRules that refuse links beside [`crate::Scope`]: path prefixes, a SURT list, regular expressions, a shard. Each refusal is
//! counted by the rule that made it. Seeds are asked for by name, so that only the shard applies to them.

use crate::error::Error;
use regex_lite::Regex;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};
use trawl_url::{SuffixList, WebUrl, domain_id, surt};

/// Directories of seeds at most: they are kept with the run, each time one is added. Seeds that move may add as many.
const MAX_DIRECTORIES: usize = 10_000;

/// Why a link is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// It lies outside the directories of the seeds.
    Prefix,
    /// The SURT list does not have it, or has it with a minus.
    Surt,
    /// No expression for links to follow matches.
    Include,
    /// An expression for links to leave out matches.
    Exclude,
    /// Its domain belongs to another shard.
    Shard,
    /// Its page asks crawlers not to follow its links.
    Nofollow,
}

impl Rule {
    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::Prefix => "prefix",
            Rule::Surt => "surt",
            Rule::Include => "include",
            Rule::Exclude => "exclude",
            Rule::Shard => "shard",
            Rule::Nofollow => "nofollow",
        }
    }
}

/// The rules of a crawl. Clones share the prefixes.
#[derive(Debug, Clone, Default)]
pub struct LinkRules {
    /// Links stay in the directories of the seeds, as `wget --no-parent` keeps them.
    pub no_parent: bool,
    /// Only URLs that one of these matches are followed, if there are any.
    pub include: Vec<Regex>,
    /// URLs that one of these matches are not.
    pub exclude: Vec<Regex>,
    /// Only URLs that this has are followed.
    pub surts: Option<Surts>,
    /// Only domains of this shard are fetched.
    pub shard: Option<Shard>,
    /// Host and directory of each seed.
    prefixes: Arc<Mutex<HashSet<(String, String)>>>,
}

/// Part `index`, from 0, of `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    count: u64,
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// `0/4` to `3/4`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected I/N with I from 0 and below N, as 0/4, found {text:?}");
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let (index, count) = (index.trim().parse().map_err(|_| wrong())?, count.trim().parse().map_err(|_| wrong())?);
        if index < count { Ok(Shard { index, count }) } else { Err(wrong()) }
    }
}

impl Shard {
    /// Whether a URL's registrable domain is in this shard: all pages of a domain are in one.
    pub fn has(self, url: &WebUrl) -> bool {
        domain_id(SuffixList::builtin().registrable(url.host())) % self.count == self.index
    }
}

/// Prefixes of SURTs, each with whether URLs below it are in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surts(BTreeMap<String, bool>);

impl Surts {
    /// Reads a list: a prefix a line, as `http://(com,example,`, `com,example)/path` or a URL or host name, which stands for
    /// everything below it; `-` in front leaves it out, `#` begins a comment. Of prefixes that fit, the longest decides.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (is_in, rest) = match line.strip_prefix('-') {
                Some(rest) => (false, rest),
                None => (true, line.strip_prefix('+').unwrap_or(line)),
            };
            let prefix = prefix_of(rest.trim()).ok_or_else(|| {
                format!("line {}: expected a SURT prefix, a URL or a host name, found {line:?}", n + 1)
            })?;
            all.insert(prefix, is_in);
        }
        Ok(Surts(all))
    }

    fn has(&self, url: &WebUrl) -> bool {
        let Ok(key) = surt::from_url(url.as_str()) else { return false };
        let key = key.replacen(')', ",)", 1);
        let mut end = key.len();
        // The greatest prefix that is not above the key either begins it, or shows how much of the key can still match.
        while let Some(probe) = key.get(..end) {
            let Some((prefix, is_in)) = self.0.range::<str, _>((Bound::Unbounded, Bound::Included(probe))).next_back()
            else {
                return false;
            };
            if key.starts_with(prefix.as_str()) {
                return *is_in;
            }
            let common = key.bytes().zip(prefix.bytes()).take_while(|(a, b)| a == b).count();
            end = key.floor_char_boundary(common.min(end.saturating_sub(1)));
            if end == 0 {
                return self.0.get("").copied().unwrap_or(false);
            }
        }
        false
    }
}

/// `com,example,)/path`: the host closed by `,)`, so that `com,example,` is the domain and all below it.
fn prefix_of(text: &str) -> Option<String> {
    let bare = ["http://(", "https://(", "("].iter().find_map(|start| text.strip_prefix(start));
    if bare.is_some() || text.contains(',') {
        let bare = bare.unwrap_or(text).to_ascii_lowercase();
        return Some(match bare.find(')') {
            Some(at) if !bare.get(..at)?.ends_with(',') => bare.replacen(')', ",)", 1),
            _ => bare,
        });
    }
    let is_host = !text.contains('/');
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let key = surt::from_url(&url).ok()?.replacen(')', ",)", 1);
    // A name stands for its domain and all below it, a URL for its directory.
    let end = if is_host { key.find(')')? } else { key.rfind('/')? + 1 };
    key.get(..end).map(str::to_owned)
}

impl LinkRules {
    /// Why a link is not followed; `None` if it is.
    pub fn refuses(&self, url: &WebUrl) -> Option<Rule> {
        if self.shard.is_some_and(|shard| !shard.has(url)) {
            return Some(Rule::Shard);
        }
        if self.no_parent && !self.is_below_a_seed(url) {
            return Some(Rule::Prefix);
        }
        if self.surts.as_ref().is_some_and(|surts| !surts.has(url)) {
            return Some(Rule::Surt);
        }
        let text = url.as_str();
        if self.excludes(url) {
            return Some(Rule::Exclude);
        }
        (!self.include.is_empty() && !self.include.iter().any(|include| include.is_match(text)))
            .then_some(Rule::Include)
    }

    /// Why a sitemap is not read; `None` if it is. `include` and `no_parent` say which pages are wanted: a sitemap, which is none
    /// and seldom lies among them, only lists them.
    pub(crate) fn refuses_sitemap(&self, url: &WebUrl) -> Option<Rule> {
        match self.refuses(url) {
            Some(Rule::Include) => None,
            Some(Rule::Prefix) if self.surts.as_ref().is_some_and(|surts| !surts.has(url)) => Some(Rule::Surt),
            Some(Rule::Prefix) => self.excludes(url).then_some(Rule::Exclude),
            other => other,
        }
    }

    fn excludes(&self, url: &WebUrl) -> bool {
        self.exclude.iter().any(|exclude| exclude.is_match(url.as_str()))
    }

    /// Whether a redirect of a page that is `depth` links from a seed is followed: where a seed moved to is what was asked for.
    pub(crate) fn follows(&self, depth: u32, to: &WebUrl) -> bool {
        depth == 0 && self.takes_seed(to) || self.refuses(to).is_none()
    }

    /// Whether a seed is this crawl's to fetch.
    pub(crate) fn takes_seed(&self, url: &WebUrl) -> bool {
        self.shard.is_none_or(|shard| shard.has(url))
    }

    /// Takes note of a seed: its directory is in. Gives the directory, to be kept with the run, if it is a new one.
    pub(crate) fn note_seed(&self, url: &WebUrl) -> Result<Option<(String, String)>, Error> {
        self.note(url, MAX_DIRECTORIES).map_err(|()| {
            let (expected, found) = (format!("seeds in at most {MAX_DIRECTORIES} directories"), "more".to_owned());
            Error::Setting { setting: "no-parent", expected, found }
        })
    }

    /// The same for a host that a seed moved to, as from example.org to www.example.org: its directory came along. If that is one
    /// directory too many, its links are refused, and counted. A sitemap that moves is no seed, and takes no directory along.
    pub(crate) fn note_moved(&self, from: &WebUrl, to: &WebUrl) -> Option<(String, String)> {
        let is_elsewhere = from.host() != to.host() && self.is_below_a_seed(from);
        is_elsewhere.then(|| self.note(to, 2 * MAX_DIRECTORIES).ok().flatten()).flatten()
    }

    fn note(&self, url: &WebUrl, most: usize) -> Result<Option<(String, String)>, ()> {
        if !self.no_parent {
            return Ok(None);
        }
        let path = path_of(url);
        let directory = path.get(..path.rfind('/').map_or(0, |at| at + 1)).unwrap_or_default();
        let new = (url.host().to_owned(), directory.to_owned());
        let mut prefixes = self.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
        if prefixes.len() >= most && !prefixes.contains(&new) {
            return Err(());
        }
        Ok(prefixes.insert(new.clone()).then_some(new))
    }

    /// The directories of an earlier start of the run.
    pub(crate) fn restore(&self, directories: &[(String, String)]) {
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner).extend(directories.iter().cloned());
    }

    fn is_below_a_seed(&self, url: &WebUrl) -> bool {
        let prefixes = self.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path_of(url);
        let mut wanted = (url.host().to_owned(), String::new());
        path.match_indices('/').any(|(at, _)| {
            wanted.1.clear();
            wanted.1.push_str(path.get(..=at).unwrap_or_default());
            prefixes.contains(&wanted)
        })
    }
}

/// The path without the query.
fn path_of(url: &WebUrl) -> &str {
    url.path_query().split('?').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(url: &str) -> WebUrl {
        WebUrl::parse(url).unwrap()
    }

    #[test]
    fn links_stay_below_the_directories_of_seeds() {
        let rules = LinkRules { no_parent: true, ..LinkRules::default() };
        let noted = rules.note_seed(&web("http://a.example/docs/index.html?x=/y/")).unwrap();
        assert_eq!(noted, Some(("a.example".into(), "/docs/".into())));
        assert_eq!(rules.note_seed(&web("http://a.example/docs/b.html")).unwrap(), None, "it is known");
        rules.restore(&[("b.example".into(), "/".into())]);
        for (url, refused) in [
            ("http://a.example/docs/", None),
            ("https://a.example/docs/deep/er?q", None),
            ("http://a.example/docs", Some(Rule::Prefix)),
            ("http://a.example/", Some(Rule::Prefix)),
            ("http://a.example/docsy/", Some(Rule::Prefix)),
            ("http://b.example/anything", None),
            ("http://c.example/docs/", Some(Rule::Prefix)),
        ] {
            assert_eq!(rules.refuses(&web(url)), refused, "{url}");
        }
    }

    #[test]
    fn sitemaps_are_read_wherever_they_lie() {
        let regex = |text: &str| vec![Regex::new(text).unwrap()];
        let mut rules = LinkRules { no_parent: true, include: regex("/docs/"), ..LinkRules::default() };
        rules.note_seed(&web("http://a.example/docs/")).unwrap();
        let (sitemap, page) = (web("http://a.example/sitemap.xml"), web("http://a.example/news/1"));
        assert_eq!((rules.refuses(&page), rules.refuses_sitemap(&sitemap)), (Some(Rule::Prefix), None));
        // One that is redirected to another host opens nothing there.
        assert_eq!(rules.note_moved(&sitemap, &web("http://www.a.example/sitemap.xml")), None);
        assert_eq!(rules.refuses(&web("http://www.a.example/news/1")), Some(Rule::Prefix));
        rules.exclude = regex("sitemap");
        assert_eq!(rules.refuses_sitemap(&sitemap), Some(Rule::Exclude));
        rules.surts = Some(Surts::parse("b.example").unwrap());
        assert_eq!(rules.refuses_sitemap(&sitemap), Some(Rule::Surt));
    }

    #[test]
    fn the_longest_surt_decides() {
        let list = "# comment\nhttp://(com,example,\n-http://(com,example,)/private\n+com,example)/private/open/ # again\norg,archive,www)/web\nplain.example\nhttp://dir.example/a/b.html\n";
        let rules = LinkRules { surts: Some(Surts::parse(list).unwrap()), ..LinkRules::default() };
        for (url, is_in) in [
            ("http://example.com/", true),
            ("https://sub.example.com/private", true),
            ("http://example.com/private/x", false),
            ("http://example.com/private/open/x", true),
            ("http://example.community/", false),
            ("http://archive.org/web", false),
            ("http://www.plain.example/x", true),
            ("http://dir.example/a/c.html", true),
            ("http://dir.example/", false),
            ("http://aaa.example/", false),
        ] {
            assert_eq!(rules.refuses(&web(url)).is_none(), is_in, "{url}");
        }
        assert!(Surts::parse("ok.example\nhttp://\n").unwrap_err().starts_with("line 2"));
    }

    #[test]
    fn expressions_and_shards() {
        let regex = |text: &str| vec![Regex::new(text).unwrap()];
        let rules = LinkRules { include: regex("/news/"), exclude: regex(r"[?&]print="), ..LinkRules::default() };
        assert_eq!(rules.refuses(&web("http://a.example/news/1")), None);
        assert_eq!(rules.refuses(&web("http://a.example/news/1?print=1")), Some(Rule::Exclude));
        assert_eq!(rules.refuses(&web("http://a.example/sport")), Some(Rule::Include));
        let shards: Vec<Shard> = (0..3).map(|n| format!("{n}/3").parse().unwrap()).collect();
        let mut found = [0; 3];
        for n in 0..300 {
            let urls = [web(&format!("http://d{n}.example/")), web(&format!("https://www.d{n}.example/x"))];
            let of: Vec<usize> = (0..3).filter(|n| shards[*n].has(&urls[0])).collect();
            assert_eq!(of.len(), 1, "each domain is in one shard");
            assert!(shards[of[0]].has(&urls[1]), "with all its hosts");
            found[of[0]] += 1;
        }
        assert!(found.iter().all(|n| *n > 60), "{found:?}");
        for wrong in ["3/3", "1", "a/b", "-1/2", "0/0"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
