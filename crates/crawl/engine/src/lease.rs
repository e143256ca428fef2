//! A lease as the crawl has it: with its URL parsed.

use crate::error::Error;
use std::sync::Arc;
use std::time::Duration;
use trawl_frontier::{LeaseId, Source};
use trawl_model::RobotsVerdict;
use trawl_url::WebUrl;

/// A URL to fetch now.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub id: LeaseId,
    pub url: WebUrl,
    /// Links followed from a seed, as far as was known then.
    pub depth: u32,
    /// Redirects followed in a row.
    pub hops: u32,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    pub source: Source,
    pub robots: RobotsVerdict,
    /// The seed's metadata.
    pub meta_json: Option<Arc<str>>,
    /// From the end of a request to the host to the start of its next one.
    pub delay: Duration,
}

impl TryFrom<trawl_frontier::Lease> for Lease {
    type Error = Error;

    fn try_from(lease: trawl_frontier::Lease) -> Result<Self, Error> {
        let url = WebUrl::parse(lease.url())
            .map_err(|reject| Error::Note { what: "a URL of the frontier", found: reject.to_string() })?;
        Ok(Lease {
            id: lease.id,
            url,
            depth: lease.depth,
            hops: lease.hops,
            attempt: lease.attempt,
            source: lease.source(),
            robots: lease.robots,
            meta_json: lease.meta_json().map(Into::into),
            delay: lease.delay,
        })
    }
}
