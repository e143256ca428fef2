//! Two datasets side by side: which domains and URLs only one of them holds, and which both.
//!
//! ```text
//! dictionaries of all segments ─ merge ─► domain ─► only in A · only in B · in both
//!                                                        rows of A ┐
//!                                                        rows of B ┴ merge by key ─► URL ─► only in A · …
//! ```
//! Both merges stream: a batch of names, and some rows of each file that holds the domain, are all that is in memory.

mod rows;
mod windows;

use crate::pinned::Found;
use crate::{Pinned, Principal, QueryError};
use serde::Serialize;
use std::ops::ControlFlow;
use windows::Windows;

/// Where something is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Only in the first dataset.
    A,
    /// Only in the second.
    B,
    /// In both.
    Both,
}

impl Side {
    /// Where something is that is in A, in B, or in both; `None` if in neither.
    pub(crate) fn of(a: bool, b: bool) -> Option<Self> {
        match (a, b) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::A),
            (false, true) => Some(Self::B),
            (false, false) => None,
        }
    }
}

/// How many things are where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Only in A.
    pub only_a: u64,
    /// Only in B.
    pub only_b: u64,
    /// In both.
    pub both: u64,
}

impl Tally {
    fn count(&mut self, side: Side) {
        match side {
            Side::A => self.only_a += 1,
            Side::B => self.only_b += 1,
            Side::Both => self.both += 1,
        }
    }

    fn add(&mut self, more: &Tally) {
        self.only_a += more.only_a;
        self.only_b += more.only_b;
        self.both += more.both;
    }

    /// Whether nothing is in one of them alone.
    pub fn is_equal(&self) -> bool {
        self.only_a == 0 && self.only_b == 0
    }
}

/// One domain of either dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DomainDiff {
    /// The registrable domain, in punycode.
    pub domain: String,
    /// Which dataset holds it.
    #[serde(rename = "in")]
    pub side: Side,
    /// Its rows in A.
    pub rows_a: u64,
    /// Its rows in B.
    pub rows_b: u64,
    /// Its URLs, compared by their normalised form; none if only domains are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urls: Option<Tally>,
}

/// What the whole comparison came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DiffSummary {
    /// The version that answered.
    pub version: String,
    /// Domains.
    pub domains: Tally,
    /// URLs, by their normalised form; none if only domains were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urls: Option<Tally>,
    /// Rows of A looked at.
    pub rows_a: u64,
    /// Rows of B looked at.
    pub rows_b: u64,
}

/// What a comparison tells as it goes, in the order of domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffEvent<'a> {
    /// A URL of the domain that follows, in the order of keys.
    Url {
        /// Its registrable domain.
        domain: &'a str,
        /// Which dataset holds it.
        side: Side,
        /// Its normalised form.
        url: &'a str,
    },
    /// A domain, after its URLs.
    Domain(&'a DomainDiff),
}

/// What to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison<'a> {
    /// The first dataset.
    pub a: u32,
    /// The second.
    pub b: u32,
    /// Only this domain; a host name stands for its registrable domain.
    pub domain: Option<&'a str>,
    /// Also URLs, or only domains: then no row is read.
    pub urls: bool,
}

impl Pinned {
    /// Compares two datasets. `each` hears of every domain and URL and may end the comparison early.
    pub fn diff(
        &self,
        what: &Comparison<'_>,
        who: &Principal,
        each: &mut dyn FnMut(DiffEvent<'_>) -> ControlFlow<()>,
    ) -> Result<DiffSummary, QueryError> {
        for dataset_id in [what.a, what.b] {
            if self.visible(dataset_id, who).is_none() {
                return Err(QueryError::NoDataset { dataset_id });
            }
        }
        let mut summary = DiffSummary { version: self.version().to_owned(), ..DiffSummary::default() };
        summary.urls = what.urls.then(Tally::default);
        let mut windows = Windows::default();
        if let Some(name) = what.domain {
            let domain = self.domain_of(name)?;
            let found = self.find(&domain)?;
            if self.diff_domain(&domain, &found, what, who, &mut windows, &mut summary, each)?.is_none() {
                return Err(QueryError::UnknownDomain { domain });
            }
            return Ok(summary);
        }
        self.each_name("", None, &mut |name, found| {
            let flow = self.diff_domain(name, found, what, who, &mut windows, &mut summary, each)?;
            Ok(flow.unwrap_or(ControlFlow::Continue(())))
        })?;
        Ok(summary)
    }

    /// Compares one domain; `None` if neither dataset holds it.
    #[allow(clippy::too_many_arguments)]
    fn diff_domain(
        &self,
        domain: &str,
        found: &[Found<'_>],
        what: &Comparison<'_>,
        who: &Principal,
        windows: &mut Windows,
        summary: &mut DiffSummary,
        each: &mut dyn FnMut(DiffEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Option<ControlFlow<()>>, QueryError> {
        if self.deny.domain(domain) {
            return Ok(None);
        }
        let counts = self.shown_counts(domain, found, who)?;
        let rows = |id: u32| counts.get(&id).map_or(0, |count| count.rows);
        let (rows_a, rows_b) = (rows(what.a), rows(what.b));
        let Some(side) = Side::of(rows_a > 0, rows_b > 0) else { return Ok(None) };
        let mut urls = Tally::default();
        let mut flow = ControlFlow::Continue(());
        if what.urls {
            self.diff_rows(domain, what, who, windows, &mut |side, url| {
                urls.count(side);
                flow = each(DiffEvent::Url { domain, side, url });
                flow
            })?;
        }
        let diff = DomainDiff { domain: domain.to_owned(), side, rows_a, rows_b, urls: what.urls.then_some(urls) };
        summary.domains.count(side);
        summary.rows_a += rows_a;
        summary.rows_b += rows_b;
        if let Some(sum) = &mut summary.urls {
            sum.add(&urls);
        }
        if flow.is_continue() {
            flow = each(DiffEvent::Domain(&diff));
        }
        Ok(Some(flow))
    }
}
