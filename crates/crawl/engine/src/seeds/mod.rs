//! Seeds: URL lists of every kind that [`trawl_lists`] reads, archives and databases of URLs (a CrawlDb), and URLs given
//! directly.
//!
//! An item of a list that is not a URL is rejected, with its reason; the rest goes on. Everything streams, so that a crawl can
//! begin before its list ends; only Parquet and `.meguri`, whose index is at their end, are read from files.

mod retry;
#[cfg(test)]
mod tests;

pub use retry::Retry;

use crate::error::Error;
use crate::prior;
use crate::rules::LinkRules;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::{CapturesReader, Opening, Registry};
use trawl_io::{Fs, Hasher, Op, RealFs};
use trawl_lists::{BadItem, Format, Options};
use trawl_model::{Advice, Archive, DoorError, SourceIdentity, UrlRecord};
use trawl_url::WebUrl;

/// Where seeds come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedInput {
    /// A URL given directly.
    Url(String),
    /// A file that holds a list, or an archive.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// What an earlier run gave up, by its capture index.
    Retry(Retry),
}

impl SeedInput {
    /// Reads an argument: a URL, `-`, or a path.
    pub fn from_argument(text: &str) -> Self {
        match text {
            "-" => Self::Stdin,
            _ if is_url(text) => Self::Url(text.to_owned()),
            _ => Self::File(text.into()),
        }
    }

    /// Path, URL or `-`.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Url(url) => trawl_url::without_userinfo(url).into_owned(),
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "-".into(),
            Self::Retry(retry) => retry.path.display().to_string(),
        }
    }

    /// The file that it is read from.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Retry(retry) => Some(&retry.path),
            Self::Url(_) | Self::Stdin => None,
        }
    }

    /// Whether it is read each time it is named: a pipe is another list each time, a directory cannot be told by a digest, and of an
    /// index to be tried again other classes may be wanted. The frontier knows what was fetched.
    pub(crate) fn is_always_new(&self) -> bool {
        match self {
            Self::Stdin | Self::Retry(_) => true,
            Self::File(path) => !path.is_file(),
            Self::Url(_) => false,
        }
    }

    /// As it is kept: without passwords, found from any directory.
    pub(crate) fn for_keeps(self) -> Self {
        let whole = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        match self {
            Self::Url(url) => Self::Url(trawl_url::without_userinfo(&url).into_owned()),
            Self::File(path) => Self::File(whole(path)),
            Self::Stdin => Self::Stdin,
            Self::Retry(retry) => Self::Retry(Retry { path: whole(retry.path), ..retry }),
        }
    }

    /// Whether it can be read, as far as its first item: what is not a list must not leave half a run behind, which no later start
    /// could continue. A pipe is not touched, because what is taken from it is gone.
    pub(crate) fn check(&self, registry: &Registry, options: &Options) -> Result<(), Error> {
        let fail = |source| Error::Seeds { input: self.name(), source };
        let path = match self {
            Self::File(path) => path,
            Self::Retry(retry) => {
                let found = RealFs.metadata(&retry.path).map_err(|e| fail(e.into()))?;
                // The footer of a Parquet file comes last, so that no pipe can be one.
                if !found.is_file {
                    let kind = if found.is_dir { "a directory" } else { "a pipe or device" };
                    let index = retry.path.join("captures.parquet");
                    let advice =
                        if index.is_file() { format!(": name its index ({})", index.display()) } else { String::new() };
                    let text = format!("expected the captures.parquet of a crawl, found {kind}{advice}");
                    return Err(fail(DoorError::new(Advice::Stop, text)));
                }
                return CapturesReader::open(&retry.path).map(drop).map_err(|e| fail(DoorError::from(e)));
            }
            Self::Url(_) | Self::Stdin => return Ok(()),
        };
        let found = RealFs.metadata(path).map_err(|e| fail(e.into()))?;
        if !found.is_file && !found.is_dir || open_archive(path, registry).map_err(fail)?.is_some() {
            return Ok(());
        }
        if found.is_dir {
            let index = path.join("captures.parquet");
            let (kind, advice) = match trawl_archive::walk::is_lake(&RealFs, path) {
                true => ("a lake", "`trawl query urls --json` prints the URLs of a domain".to_owned()),
                // The other files of a crawl are its reports.
                false if index.is_file() => ("a directory", format!("name its index ({})", index.display())),
                false => ("a directory", format!("name the files in it ('{}')", path.join("*").display())),
            };
            let text = format!("expected a list or an archive, found {kind}: {advice}");
            return Err(fail(DoorError::new(Advice::Stop, text)));
        }
        let mut any = false;
        let read = read_input(self, registry, options, &|| (), &mut |_, _| {
            any = true;
            Err(DoorError::new(Advice::Stop, "one item is enough"))
        });
        match read {
            Err(error) if !any => Err(fail(error)),
            _ => Ok(()),
        }
    }

    /// SHA-256 of its bytes, in hex.
    pub(crate) fn sha256(&self) -> Result<String, Error> {
        let fail = |e| Error::Seeds { input: self.name(), source: DoorError::new(Advice::Stop, e) };
        let mut tap = Tap { source: open(self).map_err(fail)?, hash: Hasher::sha256(), bytes: 0, before_read: &|| () };
        io::copy(&mut tap, &mut io::sink()).map_err(fail)?;
        Ok(tap.hash.finish().hex())
    }
}

/// Whether a text is meant as a URL, good or bad: a scheme and a slash, or `http:` and anything. Taken for the name of a
/// file, its password would be shown and kept.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.trim_start_matches(|c| c <= ' ').split_once(':') else { return false };
    let is_scheme = scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    is_web || is_scheme && rest.starts_with(['/', '\\'])
}

/// What an input turned out to be, for `run.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedIdentity {
    /// Path, URL or `-`.
    pub name: String,
    /// Bytes as stored.
    pub bytes: u64,
    /// SHA-256 of those bytes, in hex; of an archive, what its format tells it by, or nothing.
    pub sha256: String,
    /// URLs taken from it.
    pub rows: u64,
    /// Items that were rejected.
    pub rejects: u64,
    /// URLs that belong to other shards.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_shards: u64,
    /// Rows of an index of captures that are of robots.txt files, which a crawl asks for on its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub robots_files: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A seed as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seed {
    #[serde(rename = "u")]
    pub url: WebUrl,
    /// A JSON object, byte for byte.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<String>,
}

/// An item that is not a seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reject {
    /// Where it came from.
    pub input: String,
    /// Where it begins there: a byte of the unpacked list, or of Parquet the number of the row.
    pub offset: u64,
    /// Why.
    pub reason: String,
    /// The item, cut.
    pub text: String,
}

/// Some items of the input, in order: what is journaled at a time.
#[derive(Debug, Default)]
pub(crate) struct SeedBatch {
    pub seeds: Vec<Seed>,
    pub rejects: Vec<Reject>,
    /// Items read so far, over all inputs: where a resumed run goes on.
    pub items: u64,
    /// Digest of these items, by which a resumed run tells whether they are still the same.
    pub digest: String,
    /// Set on the last batch: all inputs, complete.
    pub end: Option<Vec<SeedIdentity>>,
}

/// Seeds handed over at a time.
const BATCH: usize = 1000;
/// And bytes: metadata may be large.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes of a rejected item that are kept.
const REJECT_BYTES: usize = 200;

/// Items that an earlier start of the run took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub items: u64,
    /// Their digest; `None` if that start did not note it.
    pub digest: Option<String>,
}

/// Reads all inputs, batch by batch, behind the items that were `taken`; `give` returns `false` to stop.
pub(crate) fn read(
    inputs: &[SeedInput],
    registry: &Registry,
    options: &Options,
    rules: &LinkRules,
    taken: Taken,
    give: &mut dyn FnMut(SeedBatch) -> bool,
) -> Result<(), Error> {
    let Taken { items: skip, digest: expected } = taken;
    let (batch, hash) = (SeedBatch::default(), Hasher::sha256());
    let batches = RefCell::new(Batches { batch, bytes: 0, hash, skip, expected, give, stopped: false });
    let mut identities = Vec::new();
    for input in inputs {
        let name = input.name();
        let (mut rows, mut rejects, mut other_shards, mut robots_files) = (0, 0, 0, 0);
        let of_index = matches!(input, SeedInput::File(path) if path.is_file() && trawl_lists::is_captures(path));
        // A pipe may stay open for long: what came through it is crawled meanwhile.
        let before_read = || batches.borrow_mut().hand_over();
        let read = read_input(input, registry, options, &before_read, &mut |offset, item| {
            let reject = |(reason, text)| Reject { input: name.clone(), offset, reason, text };
            let item = match item {
                Err(error) if error.advice != Advice::Skip => return Err(error),
                Ok(record) if of_index && prior::is_robots_file(&record) => {
                    robots_files += 1;
                    batches.borrow_mut().batch.items += 1;
                    return Ok(());
                }
                item => seed_of(item, of_index).map_err(reject),
            };
            batches.borrow_mut().note(&item)?;
            if item.as_ref().is_ok_and(|seed| !rules.takes_seed(&seed.url)) {
                other_shards += 1;
                batches.borrow_mut().batch.items += 1;
                return Ok(());
            }
            *if item.is_ok() { &mut rows } else { &mut rejects } += 1;
            batches.borrow_mut().take(item)
        });
        if batches.borrow().stopped {
            return Ok(());
        }
        let (bytes, sha256) = read.map_err(|source| Error::Seeds { input: name.clone(), source })?;
        identities.push(SeedIdentity { name, bytes, sha256, rows, rejects, other_shards, robots_files });
    }
    let mut batches = batches.into_inner();
    let checked = if batches.batch.items < skip {
        let found = batches.batch.items;
        let gone = format!(
            "expected the {skip} items that were taken before, and more, found {found}: give the whole list again"
        );
        Err(DoorError::new(Advice::Stop, gone))
    } else {
        batches.check()
    };
    checked.map_err(|source| {
        let input = inputs.iter().find(|input| matches!(input, SeedInput::Stdin)).or(inputs.last());
        Error::Seeds { input: input.map(SeedInput::name).unwrap_or_default(), source }
    })?;
    let Batches { mut batch, give, .. } = batches;
    batch.end = Some(identities);
    give(batch);
    Ok(())
}

/// Gathers batches.
struct Batches<'a> {
    batch: SeedBatch,
    /// Bytes in the batch.
    bytes: usize,
    /// Of all items so far.
    hash: Hasher,
    skip: u64,
    /// The digest of the first `skip` items, until it is compared.
    expected: Option<String>,
    give: &'a mut dyn FnMut(SeedBatch) -> bool,
    stopped: bool,
}

impl Batches<'_> {
    /// Adds an item to the digest, by its URL or its text: what a list says besides may be read differently on another day.
    fn note(&mut self, item: &Result<Seed, Reject>) -> Result<(), DoorError> {
        if self.batch.items >= self.skip {
            self.check()?;
        }
        let text = match item {
            Ok(seed) => seed.url.as_str(),
            Err(reject) => reject.text.as_str(),
        };
        self.hash.update(text.as_bytes());
        self.hash.update(b"\n");
        Ok(())
    }

    /// Refuses a list of which the items that were taken before are other ones by now: new ones among them would never be fetched.
    fn check(&mut self) -> Result<(), DoorError> {
        match self.expected.take() {
            Some(expected) if self.hash.clone().finish().hex() != expected => {
                let changed = format!(
                    "its first {} items were taken before, and are other ones now: give the list as it was, and more \
                     seeds in another list",
                    self.skip
                );
                Err(DoorError::new(Advice::Stop, changed))
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, item: Result<Seed, Reject>) -> Result<(), DoorError> {
        if self.stopped {
            return Err(DoorError::new(Advice::Stop, "the crawl takes no more seeds"));
        }
        self.batch.items += 1;
        if self.batch.items <= self.skip {
            return Ok(());
        }
        match item {
            Ok(seed) => {
                self.bytes += seed.url.len() + seed.meta.as_ref().map_or(0, String::len);
                self.batch.seeds.push(seed);
            }
            Err(reject) => {
                self.bytes += reject.text.len();
                self.batch.rejects.push(reject);
            }
        }
        if self.batch.seeds.len() + self.batch.rejects.len() < BATCH && self.bytes < BATCH_BYTES {
            return Ok(());
        }
        self.hand_over();
        if self.stopped { Err(DoorError::new(Advice::Stop, "the crawl takes no more seeds")) } else { Ok(()) }
    }

    fn hand_over(&mut self) {
        if self.stopped || self.batch.seeds.is_empty() && self.batch.rejects.is_empty() {
            return;
        }
        let next = SeedBatch { items: self.batch.items, ..SeedBatch::default() };
        self.bytes = 0;
        self.batch.digest = self.hash.clone().finish().hex();
        self.stopped = !(self.give)(std::mem::replace(&mut self.batch, next));
    }
}

/// The seed of an item, or a reason and a text.
fn seed_of(item: Result<UrlRecord, DoorError>, of_index: bool) -> Result<Seed, (String, String)> {
    let (reason, mut text) = match item {
        Ok(record) => match WebUrl::parse(&record.url).or_else(|reject| of_host(&record.url).ok_or(reject)) {
            Ok(url) => return Ok(Seed { url, meta: prior::note(&record, of_index) }),
            Err(reject) => (reject.to_string(), record.url),
        },
        Err(error) => match error.source.downcast::<BadItem>() {
            Ok(bad) => (bad.message, bad.text),
            Err(source) => (source.to_string(), String::new()),
        },
    };
    text = trawl_url::without_userinfo(&text).into_owned();
    text.truncate(text.floor_char_boundary(REJECT_BYTES));
    Err((reason, text))
}

/// The URL of a host without a scheme (`example.com`, `example.com/docs`), as lists of domains have them and a lake reads them.
fn of_host(text: &str) -> Option<WebUrl> {
    let is_host = !text.contains("://") && trawl_lists::looks_like_url(text);
    is_host.then(|| WebUrl::parse(&format!("http://{text}")).ok()).flatten()
}

/// Hands over the items of one input, and calls `before_read` where that may have to wait for more. Its stored bytes: how many, and their SHA-256.
fn read_input(
    input: &SeedInput,
    registry: &Registry,
    options: &Options,
    before_read: &dyn Fn(),
    each: &mut trawl_model::Items<'_>,
) -> Result<(u64, String), DoorError> {
    if let SeedInput::File(path) = input
        && let Some(archive) = open_archive(path, registry)?
    {
        return read_archive(path, archive, each);
    }
    let fail = |e: io::Error| DoorError::new(Advice::Stop, e);
    if let SeedInput::Retry(retry) = input {
        let offset = retry.read(each)?;
        let sha256 = input.sha256().map_err(|e| DoorError::new(Advice::Stop, e))?;
        return Ok((offset, sha256));
    }
    let source = open(input).map_err(fail)?;
    let waits = match input {
        SeedInput::File(path) => !path.is_file(),
        _ => matches!(input, SeedInput::Stdin),
    };
    let before_read = if waits { before_read } else { &|| () };
    let mut tap = Tap { source, hash: Hasher::sha256(), bytes: 0, before_read };
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let broken = |e: trawl_lists::Error| DoorError::new(Advice::Stop, e);
    let (mut format, mut source) = (None, None);
    // What is a pipe cannot be looked at without taking it.
    if let SeedInput::File(path) = input
        && path.is_file()
    {
        format = trawl_lists::look(&fs, path).map_err(broken)?.format;
        if format == Some(Format::Parquet) {
            source = Some(trawl_lists::open(&fs, path, format, options).map_err(broken)?);
        }
    }
    match source {
        Some(source) => source.splits(u64::MAX)?.into_iter().try_for_each(|split| source.read(split, each))?,
        None => trawl_lists::read_stream(&input.name(), format, &mut tap, options, each)?,
    }
    // Whatever the list did not need counts too.
    io::copy(&mut tap, &mut io::sink()).map_err(fail)?;
    Ok((tap.bytes, tap.hash.finish().hex()))
}

/// The archive at a path, if it is one. What is a pipe cannot be looked at without taking it.
fn open_archive(path: &Path, registry: &Registry) -> Result<Option<Box<dyn Archive>>, DoorError> {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    if !path.is_file() && !path.is_dir() {
        return Ok(None);
    }
    let format = registry.detect(&fs, path)?;
    // An index of captures is read as the list it is.
    let format = format.filter(|format| !format.is_index());
    format.map(|format| format.open(&Opening::new(&fs, path))).transpose()
}

fn read_archive(
    path: &Path,
    archive: Box<dyn Archive>,
    each: &mut trawl_model::Items<'_>,
) -> Result<(u64, String), DoorError> {
    let unnamed = || -> Result<SourceIdentity, DoorError> {
        Ok(SourceIdentity { uri: String::new(), size: RealFs.metadata(path)?.len, tag: String::new() })
    };
    let identity = archive.identity().map_or_else(unnamed, Ok)?;
    let source = trawl_archive::urls(archive, path, identity.clone())?;
    source.splits(u64::MAX)?.into_iter().try_for_each(|split| source.read(split, each))?;
    Ok((identity.size, identity.tag))
}

fn open(input: &SeedInput) -> io::Result<Box<dyn Read + Send>> {
    Ok(match input {
        SeedInput::Url(url) => Box::new(io::Cursor::new(url.clone().into_bytes())),
        SeedInput::Stdin => Box::new(io::stdin()),
        SeedInput::File(path) | SeedInput::Retry(Retry { path, .. }) => {
            Box::new(File::open(path).map_err(|error| trawl_io::Error::io(Op::Open, path, error))?)
        }
    })
}

/// Counts and hashes what passes.
struct Tap<'a> {
    source: Box<dyn Read + Send>,
    hash: Hasher,
    bytes: u64,
    before_read: &'a dyn Fn(),
}

impl Read for Tap<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (self.before_read)();
        let n = self.source.read(buf)?;
        self.hash.update(buf.get(..n).unwrap_or_default());
        self.bytes += n as u64;
        Ok(n)
    }
}
