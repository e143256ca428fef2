//! The deny list: from what somebody names to entries, and on and off the list.

use crate::keeper::suffixes;
use crate::{Error, Keeper, Result};
use std::collections::{HashMap, HashSet};
use trawl_store::denial::{Prefix, SharedNames};
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{Dataset, Lake, Manifest, dataset_number};
use trawl_url::{LakeUrl, SuffixList};

/// Something to deny, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// One URL, in any spelling.
    Url(String),
    /// Every URL that begins so.
    Prefix(String),
    /// A registrable domain, with every host below it.
    Domain(String),
    /// A dataset, by name or number.
    Dataset(String),
}

impl Named {
    /// As the list would have it word for word, whatever would be refused today.
    fn given(&self, manifest: &Manifest) -> DenyTarget {
        match self {
            Self::Url(text) => DenyTarget::Url(text.clone()),
            Self::Prefix(text) => DenyTarget::Prefix(text.clone()),
            Self::Domain(text) => DenyTarget::Domain(text.clone()),
            Self::Dataset(text) => {
                // One that was dropped since has no name any more. No dataset has the number 0.
                let named = manifest.dataset_named(text).map(|dataset| dataset.id);
                DenyTarget::Dataset(named.or_else(|| dataset_number(text)).unwrap_or(0))
            }
        }
    }

    /// Spelled as rows are; a domain by `domain`.
    fn spelled(
        &self,
        manifest: &Manifest,
        suffixes: &SuffixList,
        domain: impl Fn(&str) -> Result<String>,
    ) -> Result<DenyTarget> {
        Ok(match self {
            Self::Url(text) => DenyTarget::Url(parse(text, suffixes)?.as_str().to_owned()),
            Self::Prefix(text) => {
                let prefix = Prefix::parse(text, suffixes).map_err(|e| Error::Refused(e.to_string()))?;
                DenyTarget::Prefix(prefix.as_str().to_owned())
            }
            Self::Domain(text) => DenyTarget::Domain(domain(text)?),
            Self::Dataset(text) => DenyTarget::Dataset(dataset(manifest, text)?.id),
        })
    }
}

/// Resolves names to entries under the lake's suffix list.
pub struct Resolver<'a> {
    manifest: &'a Manifest,
    suffixes: SuffixList,
    shared: SharedNames,
    listed: HashSet<&'a DenyTarget>,
}

impl<'a> Resolver<'a> {
    /// For the lake as `manifest` has it.
    pub fn new(lake: &Lake, manifest: &'a Manifest) -> Result<Self> {
        let suffixes = suffixes(lake, manifest)?;
        let shared = SharedNames::new(&suffixes);
        Ok(Self { manifest, suffixes, shared, listed: manifest.deny.iter().map(|deny| &deny.target).collect() })
    }

    /// An entry to add. A domain below which others have domains needs `suffix`: denying it takes them all away.
    pub fn to_add(&self, named: &Named, suffix: bool) -> Result<DenyTarget> {
        named.spelled(self.manifest, &self.suffixes, |text| {
            let url = parse_domain(text, &self.suffixes)?;
            let domain = url.domain();
            // To deny all of a domain when one of its hosts is named would take away more than was asked for.
            if domain != url.host() {
                return Err(Error::Refused(format!(
                    "{text} is a host of {domain}: deny --domain {domain}, or --prefix http://{text}/ and https://{text}/"
                )));
            }
            if !suffix && self.shared.has(domain, &self.suffixes) {
                return Err(Error::Refused(format!(
                    "{domain} is a public suffix in the lake's suffix list: to deny it with all domains below it, add --suffix"
                )));
            }
            Ok(domain.to_owned())
        })
    }

    /// An entry to remove: as it may be on the list word for word, or spelled as rows are.
    pub fn to_remove(&self, named: &Named) -> Result<DenyTarget> {
        let given = named.given(self.manifest);
        if self.listed.contains(&given) {
            return Ok(given);
        }
        let host = |text: &str| Ok(parse_domain(text, &self.suffixes)?.host().to_owned());
        named.spelled(self.manifest, &self.suffixes, host)
    }
}

impl Keeper<'_> {
    /// Puts entries on the list; those that were not on it yet.
    pub fn deny(&self, lake: &Lake, targets: &[DenyTarget], reason: Option<&str>) -> Result<HashMap<DenyTarget, Deny>> {
        let now = (self.now)();
        let committed = lake.commit(now, &self.writer(), |manifest| {
            let mut listed: HashSet<DenyTarget> = manifest.deny.iter().map(|deny| deny.target.clone()).collect();
            let mut new = HashMap::new();
            for target in targets.iter().filter(|target| listed.insert((*target).clone())) {
                let (since, reason) = (now.to_string(), reason.map(str::to_owned));
                let deny = Deny { target: target.clone(), since, reason };
                new.insert(target.clone(), deny.clone());
                manifest.deny.push(deny);
            }
            Ok(new)
        })?;
        Ok(committed.value)
    }

    /// Takes entries off the list; those that were on it.
    pub fn allow(&self, lake: &Lake, targets: &[DenyTarget]) -> Result<HashMap<DenyTarget, Deny>> {
        let named: HashSet<&DenyTarget> = targets.iter().collect();
        let committed = lake.commit((self.now)(), &self.writer(), |manifest| {
            let (gone, kept) = manifest.deny.drain(..).partition::<Vec<Deny>, _>(|deny| named.contains(&deny.target));
            manifest.deny = kept;
            Ok(gone.into_iter().map(|deny| (deny.target.clone(), deny)).collect())
        })?;
        Ok(committed.value)
    }
}

/// The dataset of this name or number.
pub fn dataset<'a>(manifest: &'a Manifest, text: &str) -> Result<&'a Dataset> {
    if let Some(named) = manifest.dataset_named(text) {
        return Ok(named);
    }
    let numbered = dataset_number(text).and_then(|id| manifest.dataset(id)).filter(|dataset| !dataset.dropped);
    numbered.ok_or_else(|| {
        let there = manifest.datasets.iter().filter(|d| !d.dropped).map(|d| d.info.name.as_str());
        let there = there.collect::<Vec<_>>().join(", ");
        Error::Refused(format!("there is no dataset {text:?}; there are: {there}"))
    })
}

fn parse(text: &str, suffixes: &SuffixList) -> Result<LakeUrl> {
    LakeUrl::parse(text, suffixes).map_err(|reject| Error::Refused(format!("{text:?} is not a URL: {reject}")))
}

/// A URL of nothing but the host of a domain, as rows spell it.
fn parse_domain(domain: &str, suffixes: &SuffixList) -> Result<LakeUrl> {
    let ipv6 = domain.parse::<std::net::Ipv6Addr>().is_ok();
    let host = if ipv6 { format!("[{domain}]") } else { domain.to_owned() };
    let refused = |reject| Error::Refused(format!("{domain:?} is not a domain: {reject}"));
    let url = LakeUrl::parse(&format!("http://{host}/"), suffixes).map_err(refused)?;
    if url.path_query() != "/" || url.port().is_some() {
        return Err(Error::Refused(format!(
            "{domain:?} is not a domain: it has a port or a path; --url and --prefix deny URLs"
        )));
    }
    Ok(url)
}
