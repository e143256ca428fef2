//! Bodies that are archived already, by their digests: what makes a body that did not change a revisit.
//!
//! [`Digests`] is the door; [`DigestStore`] keeps them on disk, in a seqdb map that any number of crawls use one after
//! another.
//!
//! ```text
//! key    SHA-1 of the stored body, 20 bytes
//! value  off size
//!          0   8   WARC-Date of the newest response with this body, Unix milliseconds, signed, big-endian
//!          8   1   N
//!          9   N   its WARC-Record-ID, without brackets
//!        9+N   …   its URL
//! ```
//! A body is remembered once its capture is in the journal, so a revisit never refers to a capture that a crash took
//! back. What a crash takes from the store itself since its last sync, a resume enters again from the journal; if the run
//! is not resumed, those bodies are stored once more, and nothing is wrong.

use crate::error::{Error, Result};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trawl_captures::CaptureRow;
use trawl_io::{Fs, describe_holder};
use trawl_model::{Algorithm, Clock, Digest, UnixMillis};
use trawl_seqdb::{
    Access, CreateHindex, CreateKvseq, Map, MapFiles, Purpose, Repr, Settings, SyncPolicy, inspect, map, silent,
};

/// Memory for cells of the index. A larger index is read and written in parts.
const INDEX_MEMORY: u64 = 64 << 20;
/// Seconds between syncs: what a crash takes back at most.
const SYNC_SECONDS: i64 = 10;
/// Cells of a new index.
const FIRST_CELLS: u64 = 100_003;
/// What the store says it is for.
const PURPOSE: &str = "DIGESTS";
/// Bytes of a SHA-1.
const KEY_BYTES: u8 = 20;

/// A capture whose body is archived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// Its URL.
    pub url: String,
    /// Its date.
    pub date: UnixMillis,
    /// Id of its response record.
    pub record_id: String,
}

/// Remembers which bodies are archived.
pub trait Digests: Send + Sync {
    /// The newest capture with this body.
    fn find(&self, digest: &Digest) -> Result<Option<Earlier>>;

    /// A body was archived, durably.
    fn remember(&self, digest: &Digest, capture: &Earlier) -> Result<()>;

    /// Makes what was remembered durable, and forgets the rest: nothing is found any more.
    fn close(&self) -> Result<()>;

    /// Enters the body of a row that is durable, if it has one of its own.
    fn remember_row(&self, row: &CaptureRow) -> Result<()> {
        let (Some(id), Some(date), true) = (&row.record_id, row.started_at, row.has_whole_body()) else {
            return Ok(());
        };
        let Ok(digest) = Digest::parse(&format!("sha1:{}", row.digest)) else { return Ok(()) };
        self.remember(&digest, &Earlier { url: row.url.clone(), date: UnixMillis(date), record_id: id.clone() })
    }
}

/// [`Digests`] on disk: `NAME.kvseq` and `NAME.hindex`.
#[derive(Debug)]
pub struct DigestStore(Mutex<Option<Map>>);

impl DigestStore {
    /// Whether there is a store of this name.
    pub fn exists(fs: &dyn Fs, stem: &Path) -> Result<bool> {
        Ok(fs.exists(&MapFiles::named(stem).kvseq)?)
    }

    /// Opens a store, repairs one whose crawl was killed, or makes a new one.
    pub fn open(fs: &Arc<dyn Fs>, stem: &Path, software: &str, clock: &Clock) -> Result<Self> {
        let files = MapFiles::named(stem);
        let holder = describe_holder(software, &clock.now().rfc3339_seconds());
        let settings = Settings {
            index_memory_bytes: INDEX_MEMORY,
            sync: SyncPolicy::Data,
            sync_every: SYNC_SECONDS,
            ..Settings::new(clock.clone(), holder).on(fs.clone())
        };
        let map = if fs.exists(&files.kvseq)? {
            expect_digests(&files.kvseq, &settings)?;
            match Map::open(&files, Access::Write, &settings) {
                Ok(map) => map,
                Err(trawl_seqdb::Error::Io(e)) if !e.is_not_found() => return Err(e.into()),
                Err(locked @ trawl_seqdb::Error::LockFailed(_)) => return Err(locked.into()),
                // Made halfway, or not closed.
                Err(_) => Self::repaired(&files, &settings)?,
            }
        } else if fs.exists(&files.hindex)? {
            // An index over something else: a store that is made halfway has its entries first.
            let found = format!("{}, without {}", files.hindex.display(), files.kvseq.display());
            return Err(Error::NoDigests { found }.into());
        } else {
            let purpose = Purpose::new(PURPOSE).unwrap_or_default();
            let (key, value) = (Repr::Fixed(KEY_BYTES), Repr::Int16);
            let kvseq = CreateKvseq { key, value, purpose, ..CreateKvseq::default() };
            let hindex = CreateHindex { htsize: FIRST_CELLS, ..CreateHindex::default() };
            Map::create(&files, &kvseq, &hindex, &settings)?
        };
        Ok(Self(Mutex::new(Some(map))))
    }

    fn repaired(files: &MapFiles, settings: &Settings) -> Result<Map> {
        map::repair(files, settings, false, &silent)?;
        Ok(Map::open(files, Access::Write, settings)?)
    }

    fn map(&self) -> MutexGuard<'_, Option<Map>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Digests for DigestStore {
    fn find(&self, digest: &Digest) -> Result<Option<Earlier>> {
        let Some(key) = key(digest) else { return Ok(None) };
        match &*self.map() {
            Some(map) => Ok(map.get(key)?.and_then(|value| decode(&value))),
            None => Ok(None),
        }
    }

    fn remember(&self, digest: &Digest, capture: &Earlier) -> Result<()> {
        let (Some(key), Some(value)) = (key(digest), encode(capture)) else { return Ok(()) };
        let mut map = self.map();
        let Some(map) = &mut *map else { return Ok(()) };
        let newer = map.get(key)?.and_then(|value| decode(&value)).is_some_and(|known| known.date >= capture.date);
        if newer { Ok(()) } else { Ok(map.put(key, &value)?) }
    }

    fn close(&self) -> Result<()> {
        self.map().take().map_or(Ok(()), |map| Ok(map.close()?))
    }
}

/// Refuses a map that is somebody else's, before anything in it is changed.
fn expect_digests(kvseq: &Path, settings: &Settings) -> Result<()> {
    let seen = inspect(kvseq, settings)?;
    let keys = seen.variables.iter().find(|variable| variable.name == "KEYREPR").map(|variable| variable.value);
    if seen.purpose == PURPOSE && keys == Some(Repr::Fixed(KEY_BYTES).to_value()) {
        return Ok(());
    }
    let keys = keys.and_then(Repr::from_value).map_or_else(|| "unknown".to_owned(), |repr| repr.to_string());
    let found = match seen.purpose.as_str() {
        "" => format!("{}, without a PURPOSE, keys {keys}", kvseq.display()),
        purpose => format!("{}, PURPOSE {purpose}, keys {keys}", kvseq.display()),
    };
    Err(Error::NoDigests { found }.into())
}

fn key(digest: &Digest) -> Option<&[u8]> {
    (digest.algorithm() == Algorithm::Sha1).then(|| digest.as_bytes())
}

fn encode(capture: &Earlier) -> Option<Vec<u8>> {
    let mut value = capture.date.0.to_be_bytes().to_vec();
    value.push(u8::try_from(capture.record_id.len()).ok()?);
    value.extend_from_slice(capture.record_id.as_bytes());
    value.extend_from_slice(capture.url.as_bytes());
    u16::try_from(value.len()).ok().map(|_| value)
}

/// `None` for a value that Trawl did not write.
fn decode(value: &[u8]) -> Option<Earlier> {
    let (date, rest) = value.split_first_chunk::<8>()?;
    let (len, rest) = rest.split_first()?;
    let (id, url) = rest.split_at_checked(usize::from(*len))?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    Some(Earlier { url: text(url)?, date: UnixMillis(i64::from_be_bytes(*date)), record_id: text(id)? })
}

#[cfg(test)]
mod tests;
