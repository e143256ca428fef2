//! Rows as web-archive clients ask for them: by CDXJ key.
//!
//! A CDXJ key is coarser than a lake key: it has no `www.`, no upper case, no session ids. So rows are looked up in the ranges
//! of lake keys that can have it, and those whose key it really is are kept, sorted by it.

use crate::answer::UrlItem;
use crate::domain::gather;
use crate::postings::Postings;
use crate::seek::KeyRange;
use crate::urls::{WANTED, error_class, item};
use crate::{Pinned, Principal, QueryError};
use std::borrow::Cow;
use std::ops::ControlFlow;
use trawl_index::Segment;
use trawl_model::UnixMillis;
use trawl_store::denial::SharedNames;
use trawl_url::{LakeUrl, surt};
use xxhash_rust::xxh3::Xxh3;

/// Captures sorted together, and rows read at a time. More captures than these come in the order of datasets and lake keys, a
/// sorted stretch after the other.
const CDX_STRETCH: u64 = 50_000;
/// Rows that are looked at to find out whether there are more captures than are sorted together. An exact question is worth more:
/// its captures are few, and a client that wants the newest one takes the last.
const MAX_GATHERED: u64 = 20 * CDX_STRETCH;
/// Rows of a host that are compared one by one with a key. Of a larger one only the usual spellings are looked up.
const MAX_COMPARED: u64 = 1 << 16;
/// Domains of one question at most: below some suffixes there are millions.
const MAX_DOMAINS: usize = 10_000;
/// Names looked at before the effort is asked again.
const ROUND: u64 = 256;

/// What of a URL has to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MatchType {
    /// All of it.
    #[default]
    Exact,
    /// It begins so.
    Prefix,
    /// Its host.
    Host,
    /// Its host, or one below.
    Domain,
}

/// Which captures.
#[derive(Debug, Clone, Default)]
pub struct CdxQuery {
    /// The URL, a scheme not needed.
    pub url: String,
    /// What of it has to fit.
    pub match_type: MatchType,
    /// Not before this moment.
    pub from: Option<UnixMillis>,
    /// Not after this moment.
    pub to: Option<UnixMillis>,
    /// Only this dataset.
    pub dataset: Option<u32>,
}

/// One capture.
#[derive(Debug, Clone, PartialEq)]
pub struct CdxRow {
    /// Its CDXJ key.
    pub urlkey: String,
    /// The dataset.
    pub dataset_id: u32,
    /// The row.
    pub item: UrlItem,
}

/// The captures of a question, page by page.
pub struct CdxRows<'a> {
    pinned: &'a Pinned,
    who: &'a Principal,
    query: &'a CdxQuery,
    wanted: Wanted,
    lists: Vec<(u32, Postings)>,
    touched: bool,
    /// All captures, if they are few enough to be sorted together and did not all fit in one stretch of rows.
    whole: Option<Vec<CdxRow>>,
}

struct Wanted {
    key: String,
    match_type: MatchType,
}

impl Wanted {
    fn fits(&self, key: &str) -> bool {
        match self.match_type {
            MatchType::Exact => key == self.key,
            MatchType::Prefix => key.starts_with(&self.key),
            // Hosts end with a port or a bracket, and domains go on with a label.
            MatchType::Host => key.strip_prefix(&self.key).is_some_and(|rest| rest.starts_with([')', ':'])),
            MatchType::Domain => key.strip_prefix(&self.key).is_some_and(|rest| rest.starts_with([')', ':', ','])),
        }
    }
}

impl Pinned {
    /// The captures of a question: none is an empty answer, not an error.
    pub fn cdx<'a>(&'a self, query: &'a CdxQuery, who: &'a Principal) -> Result<CdxRows<'a>, QueryError> {
        let bad = |why: String| QueryError::BadUrl { found: query.url.chars().take(100).collect(), why };
        // A scheme ends before the first slash; later ones are part of a query.
        let has_scheme = query.url.split('/').next().is_some_and(|start| start.ends_with(':'));
        // Said for it, or the host in front of a port would be taken for one.
        let asked = if has_scheme { query.url.clone() } else { format!("http://{}", query.url) };
        let url = LakeUrl::parse(&asked, &self.suffixes).map_err(|e| bad(e.to_string()))?;
        let mut key = surt::cdxj(&asked).map_err(|e| bad(e.to_string()))?;
        if matches!(query.match_type, MatchType::Host | MatchType::Domain) {
            key.truncate(key.find([')', ':']).unwrap_or(key.len()));
        } else if query.match_type == MatchType::Prefix && query.url.ends_with('/') && !key.ends_with('/') {
            // The key of a page has no slash at its end; that of a directory's pages goes on with one.
            key.push('/');
        }
        let wanted = Wanted { key, match_type: query.match_type };
        let mut rows = CdxRows { pinned: self, who, query, wanted, lists: Vec::new(), touched: false, whole: None };
        let mut domains = 0;
        self.each_domain_of(&url, query.match_type, &mut |domain| {
            let before = rows.lists.len();
            for (dataset_id, _) in gather(&self.find(domain)?, Segment::bare_counts)? {
                let asked = query.dataset.is_none_or(|wanted| wanted == dataset_id);
                if asked && self.visible(dataset_id, who).is_some() {
                    let all = self.postings(domain, dataset_id, who)?;
                    rows.lists.push((dataset_id, self.narrow_cdx(all, &url, query.match_type)?));
                }
            }
            rows.touched |= self.deny.touches(domain);
            domains += usize::from(rows.lists.len() > before);
            let many = "too many domains end so: ask for one of them, or for its host";
            if domains > MAX_DOMAINS { Err(QueryError::BadRequest { why: many }) } else { Ok(()) }
        })?;
        rows.whole = rows.gathered()?;
        Ok(rows)
    }

    /// Tells the domains that can have rows of a question. Most have one; but keys have no `www.`, so `gov.uk` stands for rows of
    /// `www.gov.uk` too, which is a domain of its own, and so are those below `github.io`.
    fn each_domain_of(
        &self,
        url: &LakeUrl,
        match_type: MatchType,
        each: &mut dyn FnMut(&str) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let bare = without_www(url.host());
        let own = self.suffixes.registrable(bare);
        let is_shared = || self.shared_names.get_or_init(|| SharedNames::new(&self.suffixes)).has(bare, &self.suffixes);
        let is_below = |name: &str| name.strip_suffix(bare).is_some_and(|labels| labels.ends_with('.'));
        let (prefix, fits): (_, &dyn Fn(&str) -> bool) = match match_type {
            MatchType::Domain if is_shared() => ("", &is_below),
            MatchType::Domain => return each(own),
            // No name with `www.` is a domain, unless what follows it is a suffix of domains.
            _ if is_address(bare) || self.suffixes.registrable(&format!("www.{bare}")) == own => return each(own),
            _ => ("www", &|name| name != bare && without_www(name) == bare),
        };
        each(own)?;
        let mut looked = 0u64;
        self.each_name(prefix, None, &mut |name, _| {
            looked += 1;
            if looked.is_multiple_of(ROUND) {
                self.is_enough()?;
            }
            if fits(name) && name != own {
                each(name)?;
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The rows that can have a CDXJ key, and not many others.
    fn narrow_cdx(&self, all: Postings, url: &LakeUrl, match_type: MatchType) -> Result<Postings, QueryError> {
        let bare = without_www(url.host());
        let ranges = |ranges: &[KeyRange]| {
            let mut runs = Vec::new();
            for range in ranges {
                let mut part = Postings { runs: all.runs.clone() };
                self.narrow(&mut part, range)?;
                runs.append(&mut part.runs);
            }
            runs.sort_unstable_by_key(|(segment, run)| (*segment, run.file_id, run.row_group, run.first_row));
            runs.dedup();
            Ok::<_, QueryError>(Postings { runs })
        };
        if match_type == MatchType::Domain {
            return ranges(&[KeyRange::host_and_below(bare)]);
        }
        let hosts = ranges(&[KeyRange::prefix(bare, ""), KeyRange::host_and_below(&format!("www.{bare}"))])?;
        if match_type == MatchType::Host || hosts.total() <= MAX_COMPARED {
            return Ok(hosts);
        }
        let path = url.path_query();
        let mut paths = vec![path.to_owned(), path.to_ascii_lowercase()];
        match path.strip_suffix('/') {
            Some(without) if !without.is_empty() => paths.push(without.to_owned()),
            Some(_) => {}
            None if match_type == MatchType::Exact => paths.push(format!("{path}/")),
            None => {}
        }
        paths.sort_unstable();
        paths.dedup();
        if match_type == MatchType::Prefix {
            // What begins with a longer one begins with a shorter one too, and must not come twice.
            let all = paths.clone();
            paths.retain(|path| !all.iter().any(|other| other != path && path.starts_with(other.as_str())));
        }
        let hosts = [bare.to_owned(), format!("www.{bare}")];
        let exact = match_type == MatchType::Exact;
        let range = |host: &String, path: &String| match exact {
            true => KeyRange::exactly(crate::seek::key_of(host, path)),
            false => KeyRange::prefix(host, path),
        };
        ranges(&hosts.iter().flat_map(|host| paths.iter().map(move |path| range(host, path))).collect::<Vec<_>>())
    }
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// A host as keys have it.
fn without_www(host: &str) -> &str {
    let is_www =
        |label: &str| label.strip_prefix("www").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    host.split_once('.').filter(|(label, _)| is_www(label)).map_or(host, |(_, rest)| rest)
}

impl CdxRows<'_> {
    /// Rows to look at; captures are at most as many.
    pub fn total(&self) -> u64 {
        self.lists.iter().map(|(_, postings)| postings.total()).sum()
    }

    /// Pages of captures: one if all are sorted together, else one for each stretch of rows.
    pub fn pages(&self) -> u64 {
        if self.whole.is_some() { 1 } else { self.total().div_ceil(CDX_STRETCH) }
    }

    /// The captures of a page, by key and time.
    pub fn page(&self, page: u64) -> Result<Cow<'_, [CdxRow]>, QueryError> {
        match &self.whole {
            Some(all) if page == 0 => Ok(Cow::Borrowed(all.as_slice())),
            Some(_) => Ok(Cow::Borrowed(&[])),
            None => self.stretch(page.saturating_mul(CDX_STRETCH)).map(Cow::Owned),
        }
    }

    /// All captures, by key and time, if there are at most [`CDX_STRETCH`] of them; `None` also if their rows are one stretch anyway.
    /// A host may have very many rows in several datasets, of which a question takes few: stretch by stretch, the oldest capture
    /// of a URL would come behind the newest one if it is in a later dataset.
    fn gathered(&self) -> Result<Option<Vec<CdxRow>>, QueryError> {
        let total = self.total();
        let most = if self.wanted.match_type == MatchType::Exact { u64::MAX } else { MAX_GATHERED };
        if total <= CDX_STRETCH || total > most {
            return Ok(None);
        }
        let mut found = Vec::new();
        for stretch in 0..total.div_ceil(CDX_STRETCH) {
            found.append(&mut self.stretch(stretch * CDX_STRETCH)?);
            if found.len() as u64 > CDX_STRETCH {
                return Ok(None);
            }
        }
        sort(&mut found);
        Ok(Some(found))
    }

    /// A hash of which rows are looked at, in which order, and whether they are sorted together. Stretches are counted over all of
    /// them, so a stretch holds the same rows only while this is the same: within one version a dataset or domain may be denied,
    /// dropped or hidden. Rows that are denied one by one are still counted; they matter only to an asker who counted captures
    /// himself, `with_denials`.
    pub fn mark(&self, with_denials: bool) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(&[u8::from(self.whole.is_some())]);
        for (dataset_id, postings) in &self.lists {
            hash.update(&dataset_id.to_le_bytes());
            for (segment, run) in &postings.runs {
                hash.update(&(*segment as u64).to_le_bytes());
                hash.update(&run.file_id.to_le_bytes());
                hash.update(&run.row_group.to_le_bytes());
                hash.update(&run.first_row.to_le_bytes());
                hash.update(&run.row_count.to_le_bytes());
            }
        }
        for deny in self.pinned.manifest().deny.iter().filter(|_| with_denials) {
            hash.update(format!("{:?}\n", deny.target).as_bytes());
        }
        hash.digest()
    }

    /// The captures among [`CDX_STRETCH`] rows from `start` on, by key and time.
    fn stretch(&self, start: u64) -> Result<Vec<CdxRow>, QueryError> {
        let end = start.saturating_add(CDX_STRETCH);
        let mut rows = Vec::new();
        let mut before = 0u64;
        for (dataset_id, postings) in &self.lists {
            let total = postings.total();
            let (from, to) = (start.max(before) - before, end.min(before + total).saturating_sub(before));
            before += total;
            if from >= to {
                continue;
            }
            let part = Postings { runs: crate::postings::cut(&postings.runs, from, to).collect() };
            self.pinned.scan(&part, WANTED, &mut |_, read, i| {
                let in_time = |ts: UnixMillis| {
                    self.query.from.is_none_or(|from| ts >= from) && self.query.to.is_none_or(|to| ts <= to)
                };
                // A URL without a time was listed, not captured: clients would take it for a capture of 1900, or fail.
                let timed = read.ts(i).is_some_and(in_time);
                let shown = timed && !(self.touched && self.pinned.is_denied(read, i));
                // A fetch that failed left nothing to replay.
                if shown
                    && error_class(read, i).is_none()
                    && let Ok(urlkey) = surt::cdxj(&read.url(i))
                    && self.wanted.fits(&urlkey)
                {
                    let mut item = item(read, i);
                    if !item.is_derived() {
                        // Of what else a source knew, clients see no more than this. It may be the text of a page, fifty
                        // thousand times: four answers of rows with 4 KB each took 1.5 GB.
                        item.extras = item.record_type().map(|kind| serde_json::json!({ "record_type": kind }));
                        item.finish(*dataset_id, self.who);
                        rows.push(CdxRow { urlkey, dataset_id: *dataset_id, item });
                    }
                }
                ControlFlow::Continue(())
            })?;
        }
        sort(&mut rows);
        Ok(rows)
    }
}

fn sort(rows: &mut [CdxRow]) {
    rows.sort_by(|a, b| (&a.urlkey, a.item.ts, a.dataset_id).cmp(&(&b.urlkey, b.item.ts, b.dataset_id)));
}
