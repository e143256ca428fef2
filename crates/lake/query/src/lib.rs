//! Pin a version of a lake and ask it: which datasets hold a domain, and which URLs.
//!
//! ```text
//! Lake::open(store, options)   once per process
//!   └ lake.pin()               once per request: the newest version, cheap while it is unchanged
//!       ├ domain(name, who)                          → DomainAnswer
//!       ├ urls(name, dataset_id, page, filter, who)  → UrlsAnswer
//!       ├ url(url, limit, who)                       → UrlAnswer
//!       ├ diff(datasets, who, each)                  → DiffSummary
//!       ├ domains(prefix, after, limit, who)         → Vec<DomainSummary>
//!       ├ datasets(who)                              → Vec<DatasetInfo>
//!       └ stats()                                    → LakeStats
//! ```
//!
//! Everything is synchronous: a server runs these calls on its blocking threads. Answers serialise to the JSON of the
//! API; see [`answer`] for how ids are written.
//!
//! A dataset that the asker may not see is as good as absent: it is left out before anything is counted, and the reads
//! are the same.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod answer;
mod ask;
mod cursor;
mod denied;
mod diff;
mod domain;
mod error;
mod gaps;
mod hidden;
mod lake;
mod lookup;
mod name;
mod names;
mod overview;
mod pinned;
mod postings;
mod principal;
mod seek;
mod urls;

pub use answer::{
    DatasetCount, DatasetInfo, DomainAnswer, DomainDataset, DomainSummary, LakeStats, TopPath, UrlAnswer, UrlHit,
    UrlItem, UrlsAnswer,
};
pub use ask::{DEFAULT_LIMIT, Filter, MAX_LIMIT, Page, dataset_number};
pub use diff::{Comparison, DiffEvent, DiffSummary, DomainDiff, Side, Tally};
pub use error::QueryError;
pub use lake::{Lake, Options};
pub use pinned::Pinned;
pub use principal::Principal;
pub use trawl_store::denial::DenyList;
