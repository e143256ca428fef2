//! The deny list of a manifest, as questions need it.

use std::collections::{BTreeMap, BTreeSet};
use trawl_store::Manifest;
use trawl_store::manifest::DenyTarget;
use trawl_url::{LakeUrl, SuffixList};

/// What must not be answered.
#[derive(Debug, Default)]
pub struct DenyList {
    datasets: BTreeSet<u32>,
    domains: BTreeSet<String>,
    urls: BTreeSet<String>,
    prefixes: Vec<String>,
    /// Domain → hosts and paths with which denied URLs begin.
    touched: BTreeMap<String, Vec<(String, String)>>,
}

impl DenyList {
    /// The deny list of a state of the lake, under its suffix list.
    pub fn new(manifest: &Manifest, suffixes: &SuffixList) -> Self {
        let mut list = Self::default();
        for deny in &manifest.deny {
            match &deny.target {
                DenyTarget::Dataset(id) => drop(list.datasets.insert(*id)),
                DenyTarget::Domain(domain) => drop(list.domains.insert(domain.to_ascii_lowercase())),
                DenyTarget::Prefix(prefix) => {
                    if let Ok(url) = LakeUrl::parse(prefix, suffixes) {
                        list.touch(&url);
                    }
                    list.prefixes.push(prefix.clone());
                }
                // Compared in normalised form; what does not normalise can equal no row.
                DenyTarget::Url(url) => {
                    let Ok(url) = LakeUrl::parse(url, suffixes) else { continue };
                    list.touch(&url);
                    list.urls.insert(url.as_str().to_owned());
                }
            }
        }
        list
    }

    fn touch(&mut self, url: &LakeUrl) {
        let key = (url.host().to_owned(), url.path_query().to_owned());
        self.touched.entry(url.domain().to_owned()).or_default().push(key);
    }

    /// Whether rows of a domain may be denied for their own sake.
    pub fn touches(&self, domain: &str) -> bool {
        self.touched.contains_key(domain)
    }

    /// Hosts and paths with which the denied URLs of a domain begin.
    pub(crate) fn keys(&self, domain: &str) -> impl Iterator<Item = (&str, &str)> {
        self.touched.get(domain).into_iter().flatten().map(|(host, path)| (host.as_str(), path.as_str()))
    }

    /// Whether a dataset is denied.
    pub fn dataset(&self, id: u32) -> bool {
        self.datasets.contains(&id)
    }

    /// Whether a registrable domain is denied.
    pub fn domain(&self, domain: &str) -> bool {
        self.domains.contains(domain)
    }

    /// Whether any row may be denied for its own sake.
    pub fn has_urls(&self) -> bool {
        !self.urls.is_empty() || !self.prefixes.is_empty()
    }

    /// Whether a row is denied, by its normalised URL.
    pub fn url(&self, lake_url: &str) -> bool {
        self.urls.contains(lake_url) || self.prefixes.iter().any(|prefix| lake_url.starts_with(prefix.as_str()))
    }

    /// Domains that are denied, whole or in part. A row of another domain is not denied, if prefixes have whole hosts.
    pub fn domains(&self) -> impl Iterator<Item = &str> {
        self.domains.iter().chain(self.touched.keys()).map(String::as_str)
    }
}
