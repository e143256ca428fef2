//! Sources that have grown since they were taken: only what came since is read.
//!
//! A source is known by the number and the hash of its bytes. A longer one of the same name whose first bytes have that hash
//! is the same one, of which a part was taken: it was still being written, or its download had been interrupted.
//!
//! ```text
//!  taken    item item item it          the last item may have been cut, and taken for something else
//!  now      item item item item item
//!                          └ read from here on, or behind it if it is what it was taken for
//! ```
//! Of an archive the last item is the last capture: its request or its facts may come after it. What it was taken for then
//! goes out of the dataset in the commit that brings the rest in.
//!
//! What comes through pipes has no name of its own, and is only known whole.

use super::archive::{Format, open_file};
use super::remembered::{Grown, Source};
use std::path::Path;
use trawl_archive::Registry;
use trawl_io::Compression;
use trawl_lists::{BadItem, ListFile, Options};
use trawl_model::{Advice, DoorError, SourceIdentity, UrlRecord, UrlSource};
use trawl_store::KnownSource;

/// Bytes that are read at a time to find the last item of lines, from the end.
const STEP_BYTES: u64 = 1 << 20;

/// From where on a source is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Start {
    /// What begins before this is known.
    pub at: u64,
    /// And so many of the records that begin here: one compressed member may hold several.
    pub known: u64,
    /// What is no record and begins before this has been told.
    pub told: u64,
    /// Whether splits before `at` need not be read: where items begin and where splits do is counted in the same bytes.
    pub skips_splits: bool,
}

impl Start {
    /// Whether an item is still to be taken; items come in their order.
    pub fn passes(&mut self, at: u64, is_record: bool) -> bool {
        if at == self.at && self.known > 0 {
            self.known -= u64::from(is_record);
            return false;
        }
        at >= self.at && (is_record || at >= self.told)
    }
}

/// The bytes a source may have begun with, as `known` has those of its name: sizes, rising, each once.
pub(super) fn marks(known: &[KnownSource]) -> Vec<u64> {
    let mut marks: Vec<u64> = known.iter().map(|known| known.identity.size).collect();
    marks.sort_unstable();
    marks.dedup();
    marks
}

/// The longest beginning of `file` that is known, if `file` is not known as it is. `tags` are the hashes of `marks`.
pub(super) fn longest<'a>(
    known: &'a [KnownSource],
    file: &SourceIdentity,
    marks: &[u64],
    tags: &[String],
) -> Option<&'a SourceIdentity> {
    let known = known.iter().map(|known| &known.identity);
    let of = |size: u64, tag: &str| known.clone().find(|known| known.size == size && known.tag == tag);
    let found = marks.iter().zip(tags).rev().find_map(|(size, tag)| of(*size, tag));
    found.filter(|found| found.size < file.size || found.uri != file.uri)
}

/// `file` as a source of what it holds beyond `known`.
pub(super) fn resume(
    registry: &Registry,
    file: &ListFile,
    known: &SourceIdentity,
    format: Format,
    options: &Options,
) -> Result<Source, DoorError> {
    let is_archive = format.is_archive();
    let compression = of_first(file.compression, known.size);
    let shorter = ListFile { identity: known.clone(), compression, ..file.clone() };
    let before = || Ok(Source::from(open_file(registry, shorter.clone(), format, options)?));
    // What was empty is no file of its kind, and need not be readable as one.
    let Ending { last, bad } = if known.size == 0 { Ending::default() } else { ending(&before()?, is_archive)? };
    let mut source = Source::from(open_file(registry, file.clone(), format, options)?);
    let mut stale: Option<UrlRecord> = None;
    if compression != file.compression {
        // What was taken for a text is none: all of that goes, a line at most.
        stale = last.and_then(|last| last.item.ok());
    } else if let Some(last) = last {
        // A first line that begins behind a mark of the byte order is found by reading from the mark.
        let skips_splits = compression == Compression::None && last.at > 3 && format.has_byte_splits();
        let start = Start { at: last.at, skips_splits, ..Start::default() };
        source.start = Start { known: last.records.saturating_sub(1), ..start };
        let now = first_item(&source, is_archive)?;
        match (last.item, now) {
            (Ok(record), Some((at, Ok(now)))) if at == last.at && now == record => source.start.known = last.records,
            // Cut inside a compressed member, a longer file may give less than a shorter one: it stays what it was.
            (Ok(_), None) if is_archive => return before(),
            // It was never finished, and others follow it: what was read of it is all there is.
            (Ok(_), Some((at, _)))
                if is_archive && at > last.at && damaged(&Source { start, ..source.clone() }, at)? =>
            {
                source.start.known = u64::MAX;
            }
            (Ok(record), _) => stale = Some(record),
            // It was whole, and is as bad as it was: that has been told.
            (Err(reason), Some((at, Err(now)))) if at == last.at && now == reason => source.start.known = u64::MAX,
            (Err(_), _) => {}
        }
    }
    // The row in the dataset names the file as it was called then.
    if let Some(place) = stale.as_mut().and_then(|record| record.place.as_mut())
        && let Some(then) = Path::new(&known.uri).file_name()
        && Path::new(&file.identity.uri).file_name().is_some_and(|now| now == &*place.file)
    {
        place.file = then.to_string_lossy().into();
    }
    if let Some(bad) = bad.filter(|_| compression == file.compression) {
        source.start.told = told(&bad, &source)?;
    }
    source.grown = Some(Grown { known: known.clone(), stale });
    Ok(source)
}

/// What the first `bytes` of a file that is compressed so look like: too few do not tell.
fn of_first(compression: Compression, bytes: u64) -> Compression {
    let needed = match compression {
        Compression::None => 0,
        Compression::Gzip => 2,
        Compression::Zstd => 4,
    };
    if bytes < needed { Compression::None } else { compression }
}

/// How a source ends.
#[derive(Default)]
struct Ending {
    /// The last item; of an archive the last capture, since a record that was cut behind it may belong to it.
    last: Option<Last>,
    /// Of an archive the last item that is none.
    bad: Option<Bad>,
}

/// An item that is no record, and why.
struct Bad {
    at: u64,
    reason: String,
}

/// The last item of a source.
struct Last {
    at: u64,
    /// Records that begin there.
    records: u64,
    item: Item,
}

/// What an item is taken for, or why for nothing.
type Item = Result<UrlRecord, String>;

fn item_of(item: Result<UrlRecord, DoorError>) -> Item {
    item.map_err(|error| match error.source.downcast_ref::<BadItem>() {
        Some(bad) => format!("{} {} {}", bad.code, bad.message, bad.text),
        None => error.to_string(),
    })
}

fn ending(source: &dyn UrlSource, is_archive: bool) -> Result<Ending, DoorError> {
    for split in source.splits(STEP_BYTES)?.into_iter().rev() {
        let (mut last, mut bad) = (None::<Last>, None);
        source.read(split, &mut |at, item| {
            match item {
                Ok(record) => {
                    let before = last.as_ref().filter(|last| last.at == at).map_or(0, |last| last.records);
                    last = Some(Last { at, records: before + 1, item: Ok(record) });
                }
                Err(_) if is_archive => bad = item_of(item).err().map(|reason| Bad { at, reason }),
                Err(_) => last = Some(Last { at, records: 0, item: item_of(item) }),
            }
            Ok(())
        })?;
        if last.is_some() || bad.is_some() {
            return Ok(Ending { last, bad });
        }
    }
    Ok(Ending::default())
}

/// Whether something comes that is no record before the record at `until`.
fn damaged(source: &Source, until: u64) -> Result<bool, DoorError> {
    let found = find(source, |at, item| (item.is_err() || at >= until).then_some(item.is_err()))?;
    Ok(found.unwrap_or(false))
}

/// Up to where items of an archive have been told that are none. The last one may have been bad only because it was cut;
/// those before it are what they were.
fn told(bad: &Bad, now: &Source) -> Result<u64, DoorError> {
    let is_same = find(now, |at, item| {
        (at >= bad.at).then(|| at == bad.at && item_of(item).is_err_and(|reason| reason == bad.reason))
    })?;
    Ok(bad.at + u64::from(is_same.unwrap_or(false)))
}

/// The first item, of an archive the first capture, and where it begins.
fn first_item(source: &Source, is_archive: bool) -> Result<Option<(u64, Item)>, DoorError> {
    find(source, |at, item| (item.is_ok() || !is_archive).then(|| (at, item_of(item))))
}

/// The first thing that `look` finds in the items of a source; nothing is read behind it.
fn find<T>(
    source: &Source,
    look: impl Fn(u64, Result<UrlRecord, DoorError>) -> Option<T>,
) -> Result<Option<T>, DoorError> {
    let mut found = None;
    for split in source.splits(STEP_BYTES)? {
        let read = source.read(split, &mut |at, item| {
            found = look(at, item);
            if found.is_some() { Err(DoorError::new(Advice::Stop, "enough")) } else { Ok(()) }
        });
        if found.is_some() {
            return Ok(found);
        }
        read?;
    }
    Ok(None)
}
