//! What the addresses of a feed are relative to.
//!
//! Nearest first: `xml:base` of the element or of one around it; the address of the feed's site (`<link>` of an RSS channel); the
//! address of the document. Sitemaps have absolute addresses by their own rules, so nothing is relative there.

use super::Kind;
use trawl_url::Base;

/// Elements inside each other whose `xml:base` is kept; real documents nest at most three.
const MAX_NESTED: usize = 100;

pub(super) struct Bases {
    /// Where the document was found.
    document: Option<Base>,
    site: Option<Base>,
    /// How many elements are open, and those of them that say a base, by how many were open with them.
    depth: u64,
    said: Vec<(u64, Option<Base>)>,
}

impl Bases {
    pub fn new(document: Option<Base>) -> Self {
        Self { document, site: None, depth: 0, said: Vec::new() }
    }

    /// An element begins, maybe with an `xml:base`, which may be relative to the one around it.
    pub fn start(&mut self, xml_base: Option<&str>) {
        self.depth += 1;
        if let Some(text) = xml_base.filter(|_| self.said.len() < MAX_NESTED) {
            let outer = self.nearest().cloned();
            let base = Base::new(&resolve(outer.as_ref(), text.to_owned())).ok();
            self.said.push((self.depth, base));
        }
    }

    /// An element ends.
    pub fn end(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.said.retain(|(depth, _)| *depth <= self.depth);
    }

    /// The feed says which site it is of.
    pub fn site(&mut self, text: &str) {
        if self.site.is_none() {
            self.site = Base::new(&resolve(self.document.as_ref(), text.to_owned())).ok();
        }
    }

    /// Another document begins, maybe a feed of another site.
    pub fn next_document(&mut self) {
        self.site = None;
    }

    fn nearest(&self) -> Option<&Base> {
        let said = self.said.iter().rev().find_map(|(_, base)| base.as_ref());
        said.or(self.site.as_ref()).or(self.document.as_ref())
    }

    /// What an address at this place is relative to.
    pub fn current(&self, kind: Kind) -> Option<Base> {
        matches!(kind, Kind::Rss | Kind::Atom).then(|| self.nearest().cloned()).flatten()
    }

    /// An address at this place, absolute if that can be.
    pub fn resolve(&self, kind: Kind, address: String) -> String {
        resolve(self.current(kind).as_ref(), address)
    }
}

/// Whether a text has to be resolved: it begins with neither a scheme nor a host.
pub(crate) fn is_relative(address: &str) -> bool {
    let address = address.trim();
    let scheme = address.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    !is_scheme && !address.starts_with("//")
}

/// An address, absolute if there is a base; one that is absolute already stays as it is written.
pub(super) fn resolve(base: Option<&Base>, address: String) -> String {
    let is_written_so = !is_relative(&address) && !address.trim().starts_with("//");
    match base.filter(|_| !is_written_so && !address.trim().is_empty()).map(|base| base.resolve(address.trim())) {
        Some(Ok(url)) => url.as_str().to_owned(),
        _ => address,
    }
}
