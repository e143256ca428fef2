//! Which scheme a server speaks that was named without one.

use crate::error::Error;
use std::sync::Arc;
use trawl_fetch::{Ask, FetchConfig, Fetcher};
use trawl_io::RealFs;
use trawl_model::{ErrorClass, Failure, Outcome, UnixMillis};
use trawl_url::WebUrl;

/// Whether the server of an `https` URL answers; an error if its name cannot be looked up. Requests robots.txt, which a crawl
/// would request next anyway.
pub fn speaks_https(url: &WebUrl, config: &FetchConfig, now: UnixMillis) -> Result<bool, Error> {
    let fetcher = Fetcher::new(config.clone(), Arc::new(RealFs))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| Error::Thread { what: "runtime", source })?;
    // Only whether it answers counts.
    let ask = Ask { body_limit: Some(0), ..Ask::new(url.robots(), now) };
    let outcome = runtime.block_on(fetcher.fetch(ask)).outcome;
    // A lookup that was given up may still sit on its thread.
    runtime.shutdown_background();
    match outcome {
        Outcome::Failed(Failure { class, message }) => match class {
            ErrorClass::DnsNxdomain
            | ErrorClass::DnsTimeout
            | ErrorClass::DnsServfail
            | ErrorClass::DnsRefused
            // No name server answers.
            | ErrorClass::LocalResource
            | ErrorClass::DnsFailure => Err(Error::Host { name: url.host().to_owned(), class, message }),
            _ => Ok(false),
        },
        _ => Ok(true),
    }
}
