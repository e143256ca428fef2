//! The deny list of a manifest: one matcher for what is answered, taken in and purged.

mod denied;
mod prefix;
mod record;

pub use denied::Denied;
use prefix::Prefixes;
pub use prefix::{NoPrefix, Prefix, begins_in_some_order};
pub(crate) use record::recorded;
pub use record::{DENY_FORMAT, DenyRecord, deny_record};

use crate::Manifest;
use crate::manifest::DenyTarget;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Bound::Included;
use trawl_url::{LakeUrl, SuffixList};

/// What must neither be answered nor taken in.
///
/// A denied domain covers its name and every host below it, whatever the suffix list makes of either: a list that changes
/// moves rows to shorter or longer domains, and must not bring them back.
#[derive(Debug, Default)]
pub struct DenyList {
    datasets: BTreeSet<u32>,
    domains: BTreeSet<String>,
    urls: HashSet<String>,
    /// Host → prefixes of its rows.
    prefixes: BTreeMap<String, Prefixes>,
    /// With what denied rows begin.
    starts: Vec<Start>,
    /// Name → places in `starts` that are of it or of hosts below it.
    touched: BTreeMap<String, Vec<usize>>,
}

/// With what the keys of denied rows begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// The host and the beginning of a path.
    Path(String, String),
    /// A host, and all below it.
    Host(String),
}

impl DenyList {
    /// The deny list of a state of the lake, under its suffix list.
    pub fn new(manifest: &Manifest, suffixes: &SuffixList) -> Self {
        let mut list = Self::default();
        let mut prefixes: BTreeMap<String, Vec<Prefix>> = BTreeMap::new();
        for deny in &manifest.deny {
            match &deny.target {
                DenyTarget::Dataset(id) => drop(list.datasets.insert(*id)),
                DenyTarget::Domain(domain) => {
                    let domain = domain.to_ascii_lowercase();
                    list.touch(&domain, Start::Host(domain.clone()));
                    list.domains.insert(domain);
                }
                DenyTarget::Prefix(prefix) => {
                    // What begins as no URL does begins no row.
                    let Some(prefix) = Prefix::listed(prefix, suffixes) else { continue };
                    list.touch(prefix.host(), Start::Path(prefix.host().into(), prefix.path_start().into()));
                    prefixes.entry(prefix.host().to_owned()).or_default().push(prefix);
                }
                // Compared in normalised form; what does not normalise can equal no row.
                DenyTarget::Url(url) => {
                    let Ok(url) = LakeUrl::parse(url, suffixes) else { continue };
                    list.touch(url.host(), Start::Path(url.host().into(), url.path_query().into()));
                    list.urls.insert(url.as_str().to_owned());
                }
            }
        }
        list.prefixes = prefixes.into_iter().map(|(host, all)| (host, Prefixes::new(all))).collect();
        list
    }

    /// Notes a start for every name that can be the domain of its rows, under any suffix list.
    fn touch(&mut self, host: &str, start: Start) {
        for name in upwards(host) {
            self.touched.entry(name.to_owned()).or_default().push(self.starts.len());
        }
        self.starts.push(start);
    }

    /// Whether rows of a domain may be denied for their own sake.
    pub fn touches(&self, domain: &str) -> bool {
        self.touched.contains_key(domain)
    }

    /// With what the denied rows of a domain begin.
    pub fn starts(&self, domain: &str) -> impl Iterator<Item = &Start> {
        self.touched.get(domain).into_iter().flatten().filter_map(|at| self.starts.get(*at))
    }

    /// Whether a dataset is denied.
    pub fn dataset(&self, id: u32) -> bool {
        self.datasets.contains(&id)
    }

    /// Whether a domain or host is denied whole: it or a name above it is on the list.
    pub fn domain(&self, name: &str) -> bool {
        !self.domains.is_empty() && upwards(name).any(|name| self.domains.contains(name))
    }

    /// Whether a row is denied, by its host and its normalised URL.
    pub fn row(&self, host: &str, lake_url: &str) -> bool {
        self.domain(host)
            || self.urls.contains(lake_url)
            || self.prefixes.get(host).is_some_and(|prefixes| prefixes.cover(lake_url))
    }

    /// Names that are domains of denied rows, if rows of denied domains have these or longer ones, and if prefixes have
    /// whole hosts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.touched.keys().map(String::as_str)
    }

    /// Whether the suffix list cuts denied domains further, so that rows below them may be of longer domains.
    pub fn cuts_below(&self, suffixes: &SuffixList) -> bool {
        self.domains.iter().any(|domain| is_suffix(domain, suffixes))
            || !self.domains.is_empty() && rule_names(suffixes).any(|name| self.domain(&name))
    }

    /// Whether a name that can be the domain of denied rows lies between two others, these included.
    pub fn names_between(&self, first: &str, last: &str) -> bool {
        first <= last && self.touched.range::<str, _>((Included(first), Included(last))).next().is_some()
    }

    /// The domains that are denied whole.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.domains.iter().map(String::as_str)
    }
}

/// Names below which others have domains, by a suffix list.
#[derive(Debug)]
pub struct SharedNames(HashSet<String>);

impl SharedNames {
    /// Those of a suffix list.
    pub fn new(suffixes: &SuffixList) -> Self {
        let mut names = HashSet::new();
        for rule in rule_names(suffixes) {
            names.extend(upwards(&rule).map(str::to_owned));
        }
        Self(names)
    }

    /// Whether hosts below a name are cut into domains of their own, by the list these are of.
    pub fn has(&self, name: &str, suffixes: &SuffixList) -> bool {
        is_suffix(name, suffixes) || self.0.contains(name)
    }
}

/// The names in the rules of a suffix list, as rows have them. An exception (`!www.ck`) is a domain, and nothing below it is one.
fn rule_names(suffixes: &SuffixList) -> impl Iterator<Item = Cow<'_, str>> {
    let rules = suffixes.text().lines().map(|line| line.split_whitespace().next().unwrap_or_default());
    let cutting = rules.filter(|rule| !rule.starts_with("//") && !rule.starts_with('!'));
    cutting.map(|rule| rule.trim_start_matches("*.")).filter_map(ascii)
}

/// Whether names right below a name are domains of their own. The list itself answers, since not every suffix is written there: a
/// top level that no rule names is one, and `*.ck` stands for `co.ck`.
fn is_suffix(name: &str, suffixes: &SuffixList) -> bool {
    let below = format!("x.{name}");
    !name.starts_with('[') && suffixes.registrable(&below) == below
}

/// A name in any script as rows have it, if it is one.
fn ascii(name: &str) -> Option<Cow<'_, str>> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
    match name {
        "" => None,
        name if name.bytes().all(plain) => Some(Cow::Borrowed(name)),
        // The list does not matter: only the host is wanted.
        name => {
            let url = LakeUrl::parse(&format!("http://{name}/"), SuffixList::builtin()).ok()?;
            Some(Cow::Owned(url.host().to_owned()))
        }
    }
}

/// A name and those above it: `a.b.com`, `b.com`, `com`. An address has none above it.
fn upwards(name: &str) -> impl Iterator<Item = &str> {
    let numbers = name.starts_with('[') || name.parse::<std::net::Ipv4Addr>().is_ok();
    std::iter::successors(Some(name), move |name| name.split_once('.').map(|(_, above)| above).filter(|_| !numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Deny;

    pub(super) fn manifest(targets: &[DenyTarget]) -> Manifest {
        let deny = |target: &DenyTarget| Deny { target: target.clone(), since: String::new(), reason: None };
        Manifest { deny: targets.iter().map(deny).collect(), ..Manifest::empty() }
    }

    fn list(targets: &[DenyTarget]) -> DenyList {
        DenyList::new(&manifest(targets), SuffixList::builtin())
    }

    #[test]
    fn a_domain_covers_what_is_below_and_touches_what_is_above() {
        let list = list(&[DenyTarget::Domain("octo.github.io".into()), DenyTarget::Domain("192.0.2.1".into())]);
        for (name, denied, touched) in [
            ("octo.github.io", true, true),
            ("a.b.octo.github.io", true, false),
            ("xocto.github.io", false, false),
            ("github.io", false, true),
            ("io", false, true),
            ("192.0.2.1", true, true),
            ("2.1", false, false),
            ("7.192.0.2.1", true, false),
        ] {
            assert_eq!((list.domain(name), list.touches(name)), (denied, touched), "{name}");
        }
        assert!(list.row("www.octo.github.io", "https://www.octo.github.io/") && !list.row("io", "https://io/"));
    }

    #[test]
    fn names_that_others_have_domains_below() {
        let suffixes = SuffixList::builtin();
        let shared = SharedNames::new(suffixes);
        for (name, has) in [
            ("com", true),
            ("co.uk", true),
            ("github.io", true),
            ("io", true),
            ("nosuchtop", true),
            ("example.com", false),
            ("octo.github.io", false),
            ("[::1]", false),
            ("192.0.2.1", false),
            ("ck", true),
            // Rules with a wildcard do not name these: `*.ck` without `www.ck`, and `*.sch.uk`.
            ("co.ck", true),
            ("www.ck", false),
            ("a.co.ck", false),
            ("essex.sch.uk", true),
        ] {
            let one = list(&[DenyTarget::Domain(name.into())]);
            assert_eq!((shared.has(name, suffixes), one.cuts_below(suffixes)), (has, has), "{name}");
        }
    }

    #[test]
    fn names_between_two_others() {
        let list = list(&[DenyTarget::Domain("b.com".into()), DenyTarget::Url("http://x.d.com/1".into())]);
        let between =
            [("a.com", "b.com"), ("b.com", "b.com"), ("b.d", "czz"), ("d.a", "d.b"), ("d.com", "d.com"), ("x", "a")];
        assert_eq!(
            between.map(|(first, last)| list.names_between(first, last)),
            [true, true, true, false, true, false]
        );
    }

    #[test]
    fn urls_and_prefixes_touch_every_name_their_host_may_be_cut_to() {
        let list = list(&[DenyTarget::Url("http://a.b.com/x".into()), DenyTarget::Prefix("http://c.com/".into())]);
        assert_eq!(
            ["a.b.com", "b.com", "com", "c.com", "d.com"].map(|name| list.touches(name)),
            [true, true, true, true, false]
        );
        assert_eq!(list.starts("b.com").collect::<Vec<_>>(), [&Start::Path("a.b.com".into(), "/x".into())]);
        assert!(!list.domain("a.b.com") && list.row("a.b.com", "http://a.b.com/x"));
        assert!(list.row("c.com", "http://c.com/y") && !list.row("a.b.com", "http://a.b.com/xy"));
    }

    #[test]
    fn the_rows_of_a_prefix_with_a_query_begin_where_its_path_ends() {
        let list = list(&[DenyTarget::Prefix("http://c.com/a?b=2".into()), DenyTarget::Prefix("no url".into())]);
        assert_eq!(list.starts("c.com").collect::<Vec<_>>(), [&Start::Path("c.com".into(), "/a?".into())]);
        assert!(list.row("c.com", "http://c.com/a?a=1&b=2") && !list.row("c.com", "http://c.com/a?a=1"));
    }
}
