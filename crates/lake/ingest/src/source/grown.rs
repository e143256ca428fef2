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

use super::BadItem;
use super::text::SourceFile;
use trawl_model::{Advice, DoorError, Grown, SourceIdentity, UrlRecord, UrlSource};
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
    marks.iter().zip(tags).rev().find_map(|(size, tag)| of(*size, tag)).filter(|found| found.size < file.size)
}

/// `file` as a source of what it holds beyond `known`. `make` opens it as what it is.
pub(super) fn resume(
    mut file: SourceFile,
    known: &SourceIdentity,
    is_archive: bool,
    make: &dyn Fn(SourceFile) -> Box<dyn UrlSource>,
) -> Result<Box<dyn UrlSource>, DoorError> {
    let compression = file.compression.of_first(known.size);
    let before = make(SourceFile { identity: known.clone(), compression, stamp: None, ..file.clone() });
    // What was empty is no file of its kind, and need not be readable as one.
    let Ending { last, bad } = if known.size == 0 { Ending::default() } else { ending(&*before, is_archive)? };
    let mut stale = None;
    if compression != file.compression {
        // What was taken for a text is none: all of that goes, a line at most.
        stale = last.and_then(|last| last.item.ok());
    } else if let Some(last) = last {
        file.start = Start { at: last.at, known: last.records.saturating_sub(1), told: 0 };
        let torn = |until| {
            let start = Start { at: last.at, ..Start::default() };
            damaged(&*make(SourceFile { start, ..file.clone() }), until)
        };
        let now = first_item(&*make(file.clone()), is_archive)?;
        match (last.item, now) {
            (Ok(record), Some((at, Ok(now)))) if at == last.at && now == record => file.start.known = last.records,
            // Cut inside a compressed member, a longer file may give less than a shorter one: it stays what it was.
            (Ok(_), None) if is_archive => return Ok(before),
            // It was never finished, and others follow it: what was read of it is all there is.
            (Ok(_), Some((at, _))) if is_archive && at > last.at && torn(at)? => file.start.known = u64::MAX,
            (Ok(record), _) => stale = Some(record),
            // It was whole, and is as bad as it was: that has been told.
            (Err(reason), Some((at, Err(now)))) if at == last.at && now == reason => file.start.known = u64::MAX,
            (Err(_), _) => {}
        }
    }
    if let Some(bad) = bad.filter(|_| compression == file.compression) {
        file.start.told = told(&bad, &*make(file.clone()))?;
    }
    file.grown = Some(Grown { known: known.clone(), stale });
    Ok(make(file))
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
fn damaged(source: &dyn UrlSource, until: u64) -> Result<bool, DoorError> {
    let (mut found, mut ended) = (false, false);
    for split in source.splits(STEP_BYTES)? {
        let read = source.read(split, &mut |at, item| {
            ended = item.is_ok() && at >= until;
            found |= item.is_err();
            if found || ended { Err(DoorError::new(Advice::Stop, "enough")) } else { Ok(()) }
        });
        if found || ended {
            return Ok(found);
        }
        read?;
    }
    Ok(false)
}

/// Up to where items of an archive have been told that are none. The last one may have been bad only because it was cut;
/// those before it are what they were.
fn told(bad: &Bad, now: &dyn UrlSource) -> Result<u64, DoorError> {
    let mut is_same = false;
    let Some(split) = now.splits(STEP_BYTES)?.into_iter().next() else { return Ok(bad.at) };
    let mut found = false;
    let read = now.read(split, &mut |at, item| {
        if at < bad.at {
            return Ok(());
        }
        found = true;
        is_same = at == bad.at && item_of(item).is_err_and(|reason| reason == bad.reason);
        Err(DoorError::new(Advice::Stop, "enough"))
    });
    if !found {
        read?;
    }
    Ok(bad.at + u64::from(is_same))
}

/// The first item of the first split, of an archive the first capture, and where it begins.
fn first_item(source: &dyn UrlSource, is_archive: bool) -> Result<Option<(u64, Item)>, DoorError> {
    let mut found = None;
    let Some(split) = source.splits(STEP_BYTES)?.into_iter().next() else { return Ok(None) };
    let read = source.read(split, &mut |at, item| {
        if is_archive && item.is_err() {
            return Ok(());
        }
        found = Some((at, item_of(item)));
        Err(DoorError::new(Advice::Stop, "enough"))
    });
    if found.is_none() {
        read?;
    }
    Ok(found)
}
