//! Pin a version of a lake and ask it: which datasets hold a domain, and which URLs.
//!
//! ```text
//! Lake::open(store, options)   once per process
//!   └ lake.pin()               once per request: the newest version, cheap while it is unchanged
//!       ├ domain(name, who)                          → DomainAnswer
//!       ├ urls(name, dataset_id, page, filter, who)  → UrlsAnswer
//!       ├ urls_json(…)                               → the same as JSON, without the way through values
//!       ├ url(url, limit, who)                       → UrlAnswer
//!       ├ diff(datasets, who, each)                  → DiffSummary
//!       ├ names(query, who)                          → NamesAnswer
//!       ├ export_domain, export_dataset              → every row, one by one
//!       ├ cdx(query, who)                            → CdxRows, by CDXJ key
//!       ├ capture(dataset, url, ts, who), replay     → the bytes of a capture
//!       ├ datasets(who)                              → Vec<DatasetInfo>
//!       └ stats()                                    → LakeStats
//! ```
//!
//! Everything is synchronous: a server runs these calls on its blocking threads. Answers serialise to the JSON of the
//! API; see [`answer`] for how ids are written.
//!
//! A dataset that the asker may not see is as good as absent: it is left out before anything is counted, and the reads
//! are the same.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use trawl_query::{Lake, Options, Principal};
//! # let dir = std::env::temp_dir().join(format!("trawl-query-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let now = || trawl_model::UnixMillis(1_782_262_923_456);
//! # std::fs::write(dir.join("urls.txt"), "https://www.example.org/a\nhttps://example.org/b\n")?;
//! # let fs: Arc<dyn trawl_io::Fs> = Arc::new(trawl_io::RealFs);
//! # let urls = trawl_ingest::source::open(&fs, &dir.join("urls.txt"), None)?;
//! # let store: Arc<dyn trawl_store::Store> = Arc::new(trawl_store::DirStore::new(dir.join("lake")));
//! # let lake = trawl_store::Lake::init(store.clone(), now(), "w1", b"com\norg\n")?;
//! # let id = lake.register_dataset(now(), "w2", &trawl_store::DatasetInfo::named("news"))?;
//! # trawl_ingest::ingest(&lake, id, &[urls], &trawl_ingest::IngestSettings::new("w3", &dir), &now, &|_| ())?;
//! # trawl_index::publish(&lake, &now, "w4", &trawl_index::BuildOptions::new(&dir), &|_| ())?;
//! // `store` has a lake whose dataset `news` has two URLs of example.org.
//! let lake = Lake::open(store, Options::default())?;
//! let answer = lake.ask(|pinned| pinned.domain("www.example.org", &Principal::anyone()))?;
//! assert_eq!((&*answer.domain, &*answer.datasets[0].name, answer.datasets[0].url_count_est), ("example.org", "news", 2));
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod answer;
mod ask;
mod cdx;
mod cursor;
mod denied;
mod diff;
mod domain;
mod effort;
mod error;
mod export;
mod gaps;
mod hidden;
mod json;
mod lake;
mod locator;
mod lookup;
mod name;
mod names;
mod overview;
mod pinned;
mod postings;
mod principal;
mod replay;
mod seek;
mod table;
mod urls;

pub use answer::{
    DatasetCount, DatasetInfo, DomainAnswer, DomainDataset, DomainSummary, LakeStats, NamesAnswer, Progress, TopPath,
    UrlAnswer, UrlHit, UrlItem, UrlsAnswer,
};
pub use ask::{DEFAULT_LIMIT, Filter, MAX_LIMIT, Page};
pub use cdx::{CdxQuery, CdxRow, CdxRows, MatchType};
pub use diff::{Comparison, DiffEvent, DiffSummary, DomainDiff, Side, Tally};
pub use effort::{Effort, Pace};
pub use error::QueryError;
pub use json::UrlsJson;
pub use lake::{Lake, LakeChange, Options};
pub use locator::Locator;
pub use names::NamesQuery;
pub use pinned::Pinned;
pub use principal::Principal;
pub use replay::{Archives, Replayed, TakeCapture};
pub use table::ItemTable;
pub use trawl_store::dataset_number;
pub use trawl_store::denial::DenyList;
