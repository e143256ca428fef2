#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]
//! How Trawl sees a URL. No I/O.
//!
//! | form | made by | used for |
//! | --- | --- | --- |
//! | as found | [`WebUrl`] | what is stored, fetched and archived: the WHATWG spelling without the fragment |
//! | lake form | [`LakeUrl`] | the spelling under which a lake stores, sorts and compares |
//! | identity | [`key::identity`] | only hashed: decides whether two links of a crawl are the same page |
//! | key form | [`key::canonical`] | only hashed: the same decision in `.meguri` files of the reference |
//! | SURT | [`surt`] | order by domain, CDX keys |
//!
//! Every function takes any input and gives a value or a [`Reject`] that says why, in time about linear in the input's length.
//!
//! ```
//! use trawl_url::{LakeUrl, SuffixList, WebUrl, surt};
//!
//! let found = WebUrl::parse("https://www.example.co.uk/a/b")?.join("../c?x=1#top")?;
//! assert_eq!(found.as_str(), "https://www.example.co.uk/c?x=1");
//! let url = LakeUrl::parse(&found, SuffixList::builtin())?;
//! assert_eq!((url.domain(), url.path_query()), ("example.co.uk", "/c?x=1"));
//! assert_eq!(surt::cdxj(&found)?, "uk,co,example)/c?x=1");
//! # Ok::<(), trawl_url::Reject>(())
//! ```

mod dots;
pub mod entities;
mod host;
mod ids;
pub mod key;
mod lake;
mod odd;
mod percent;
mod plain;
mod psl;
mod raw;
mod redact;
mod reject;
mod spelling;
pub mod surt;
mod userinfo;
mod web;

pub use ids::{domain_id, domain_prefix, url_id};
pub use lake::LakeUrl;
pub use percent::{push_surrogate, text_of};
pub use psl::{MAX_LIST_LEN, Sections, SuffixList, SuffixListError};
pub use redact::{Printed, Redacted, redact};
pub use reject::Reject;
pub use spelling::{AnySpelling, shown_host};
pub use userinfo::{without_credentials, without_userinfo};
pub use web::{Base, WebUrl};

/// No form takes or makes a URL longer than this many bytes. Browsers stop between 32 KiB and 2 MiB, servers at 8 to 64 KiB.
pub const MAX_URL_LEN: usize = 64 << 10;

/// No form takes or makes a host longer than this. DNS stops at 253 bytes; the rest is room for odd spellings of short names.
pub const MAX_HOST_LEN: usize = 1024;
