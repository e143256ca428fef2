//! The other halves of captures, found by walking over two files side by side.

use super::left_out::is_lost;
use crate::db::text_key;
use crate::types::{CrawlDatum, whole};
use crate::{Error, Result};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use trawl_hadoop::map::MapReader;
use trawl_hadoop::parts::part_of_text;
use trawl_hadoop::seq::{At, OpenOptions, Reader};
use trawl_hadoop::{Text, class as hadoop};

/// Keys must ascend: halves of captures are found by walking over both files side by side, so that one out of its place would
/// become a capture without its other half.
#[derive(Debug, Default)]
pub(super) struct Ascending {
    last: Vec<u8>,
}

impl Ascending {
    /// An error for a key below the one before, which stays the mark for those that follow.
    pub fn check(&mut self, file: &Path, at: At, key: &[u8]) -> Result<()> {
        if key < self.last.as_slice() {
            let found = format!("{} behind {}", Text::new(key), Text::new(&self.last));
            return Err(Error::corrupt(file, at.offset, "keys that ascend", format!("{found}: sort the file first")));
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }
}

/// The files that hold the other half of captures. Keys ascend, so that each file is read forwards from where the first key
/// led its index; a lookup for each would unpack a block again and again.
#[derive(Default)]
pub(super) struct Beside {
    readers: Vec<(PathBuf, Half)>,
    /// Which of them the task wrote that wrote the file whose other halves these are.
    same_task: Option<usize>,
    /// The URL that was asked for last, and the datum of its fetch: contents of one URL may follow each other.
    found: Option<(Vec<u8>, Option<Vec<u8>>)>,
}

/// One of those files.
enum Half {
    Unopened,
    Open(Box<Walk>),
    /// It cannot be opened, which is reported once, beside the captures.
    Lost(Option<Error>),
}

/// A file that is read forwards.
pub(super) struct Walk {
    reader: Reader,
    is_utf8: bool,
    /// Nothing after keys that did not ascend, which is reported once: those whose other half was passed by cannot be told from
    /// those that never had one.
    order: Option<Ascending>,
    /// Told beside the captures, which are made of the half that can be read.
    faults: VecDeque<Error>,
    /// The last of them: each record of a damaged block has the same one.
    last_fault: String,
}

/// Faults of a file that wait to be reported. Of one that is damaged everywhere, those beyond cost a capture each.
const MAX_FAULTS: usize = 100;

impl Walk {
    fn new(reader: Reader) -> Self {
        let is_utf8 = reader.header().key_class() == hadoop::UTF8;
        // It may stand on a record, where an index has led: that one counts for the order too.
        let last = key_of(&reader, is_utf8).map(|key| key.as_bytes().to_vec()).unwrap_or_default();
        let (faults, last_fault) = (VecDeque::new(), String::new());
        Walk { reader, is_utf8, order: Some(Ascending { last }), faults, last_fault }
    }

    fn key(&self) -> Option<Text<'_>> {
        key_of(&self.reader, self.is_utf8)
    }

    /// Moves to the next record that can be read.
    fn step(&mut self) -> Result<bool> {
        loop {
            match self.reader.advance() {
                Ok(found) => {
                    if let Some(order) = &mut self.order
                        && let Some(key) = key_of(&self.reader, self.is_utf8)
                        && let Err(fault) = order.check(self.reader.path(), self.reader.at(), key.as_bytes())
                    {
                        self.order = None;
                        self.faults.push_back(fault);
                    }
                    return Ok(found);
                }
                Err(error) => {
                    self.reader.resync()?;
                    self.damaged(error)?;
                }
            }
        }
    }

    /// The value, unless it is damaged.
    fn value(&mut self) -> Result<Option<&[u8]>> {
        if let Err(error) = self.reader.value() {
            self.damaged(error)?;
            return Ok(None);
        }
        self.reader.value().map(Some)
    }

    /// Keeps damage for a later report; any other error is returned.
    fn damaged(&mut self, error: Error) -> Result<()> {
        if !error.is_damage() || self.faults.len() >= MAX_FAULTS {
            return Err(error);
        }
        let text = error.to_string();
        if text != self.last_fault {
            self.last_fault = text;
            self.faults.push_back(error);
        }
        Ok(())
    }

    /// Reads on to the end: keys out of order there belong to captures that have been made.
    pub fn rest(&mut self) -> Result<()> {
        while self.order.is_some() && self.step()? {}
        Ok(())
    }
}

/// The key that a reader stands on; `None` before the first record, behind the last, and for what is not a key.
fn key_of(reader: &Reader, is_utf8: bool) -> Option<Text<'_>> {
    let key = reader.has_record().then(|| reader.key())?;
    whole(key, |d| if is_utf8 { d.utf8("key") } else { d.text("key") }).ok()
}

impl Beside {
    /// Looks in `files`, of which `same_task` is the one with the number of the file that is read, if they are numbered alike.
    pub fn new(files: &[PathBuf], same_task: Option<usize>) -> Self {
        let readers = files.iter().map(|file| (file.clone(), Half::Unopened)).collect();
        Beside { readers, same_task, found: None }
    }

    /// What was found damaged or out of order, and is not told yet.
    pub fn take_fault(&mut self) -> Option<Error> {
        self.readers.iter_mut().find_map(|(_, half)| match half {
            Half::Open(walk) => walk.faults.pop_front(),
            Half::Lost(fault) => fault.take(),
            Half::Unopened => None,
        })
    }

    pub fn walks(&mut self) -> impl Iterator<Item = &mut Walk> {
        self.readers.iter_mut().filter_map(|(_, half)| match half {
            Half::Open(walk) => Some(&mut **walk),
            Half::Unopened | Half::Lost(_) => None,
        })
    }

    /// Whether there is a value of a key that is not below the one before, and one that can be read.
    pub fn has(&mut self, url: &[u8], options: &OpenOptions) -> Result<bool> {
        let Some(walk) = self.find(url, options)? else { return Ok(false) };
        Ok(walk.value()?.is_some())
    }

    /// The datum of a URL's fetch. A redirect leaves a datum of its target beside that of the target's own fetch, in any
    /// order; of several fetches the latest counts.
    pub fn datum(&mut self, url: &[u8], options: &OpenOptions) -> Result<Option<&[u8]>> {
        if self.found.as_ref().is_none_or(|(known, _)| known != url) {
            let mut best: Option<(Rank, Vec<u8>)> = None;
            if let Some(walk) = self.find(url, options)? {
                while walk.key().is_some_and(|key| key.as_bytes() == url) {
                    if let Some(value) = walk.value()? {
                        let rank = Rank::of(value);
                        if best.as_ref().is_none_or(|(known, _)| rank > *known) {
                            best = Some((rank, value.to_vec()));
                        }
                    }
                    if !walk.step()? {
                        break;
                    }
                }
            }
            self.found = Some((url.to_vec(), best.map(|(_, value)| value)));
        }
        Ok(self.found.as_ref().and_then(|(_, value)| value.as_deref()))
    }

    /// The file that holds a key, on its first record of that key: the one of the same task, else the one that the hash of the
    /// key names. The hash alone would miss it in a segment that lost its last parts, or whose parts without records were
    /// never written, as a merge of segments leaves them: it is one over more parts than there are.
    fn find(&mut self, url: &[u8], options: &OpenOptions) -> Result<Option<&mut Walk>> {
        let count = u32::try_from(self.readers.len()).unwrap_or(u32::MAX);
        if count == 0 {
            return Ok(None);
        }
        let hashed = part_of_text(url, count) as usize;
        let first = self.same_task.unwrap_or(hashed);
        let found = if self.reach(first, url, options)? {
            first
        } else if hashed != first && self.reach(hashed, url, options)? {
            hashed
        } else {
            return Ok(None);
        };
        let Some((_, Half::Open(walk))) = self.readers.get_mut(found) else { return Ok(None) };
        Ok(Some(walk))
    }

    /// Moves in a file to the first record of a key; false if it has none.
    fn reach(&mut self, part: usize, url: &[u8], options: &OpenOptions) -> Result<bool> {
        let Some((file, slot)) = self.readers.get_mut(part) else { return Ok(false) };
        if matches!(slot, Half::Unopened) {
            *slot = match start_beside(file, url, options) {
                Ok(reader) => Half::Open(Box::new(Walk::new(reader))),
                Err(error) if is_lost(&error) => Half::Lost(Some(error)),
                Err(error) => return Err(error),
            };
        }
        let Half::Open(walk) = slot else { return Ok(false) };
        loop {
            match walk.key().map(|found| found.as_bytes().cmp(url)) {
                Some(Ordering::Less) | None => {}
                Some(Ordering::Greater) => return Ok(false),
                Some(Ordering::Equal) => return Ok(true),
            }
            if !walk.step()? {
                return Ok(false);
            }
        }
    }
}

/// Which of several datums of a URL a capture is made of: one of a fetch, then the latest, then the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    is_fetch: bool,
    time: i64,
}

impl Rank {
    /// If a datum cannot be read and there is no other, the code that makes the capture reports it.
    pub fn of(value: &[u8]) -> Self {
        match whole(value, CrawlDatum::decode) {
            Ok(datum) => Rank { is_fetch: datum.status().is_fetch(), time: datum.fetch_time },
            Err(_) => Rank { is_fetch: false, time: i64::MIN },
        }
    }
}

/// A reader that stands before or on the first record that is not below `url`. An index that cannot be used costs time only.
fn start_beside(file: &Path, url: &[u8], options: &OpenOptions) -> Result<Reader> {
    let by_index = file.parent().and_then(|dir| {
        let map = MapReader::open(dir, options).ok()?;
        let key = text_key(&map.header().key_class(), url);
        map.into_reader_at(&key).ok()
    });
    by_index.map_or_else(|| open_part(file, options), Ok)
}

/// Opens a file of a part that was listed: one that is not there is lost, and costs what it held.
pub(super) fn open_part(file: &Path, options: &OpenOptions) -> Result<Reader> {
    match options.open(file) {
        Err(Error::Io(error)) if error.is_not_found() => {
            Err(Error::corrupt(file, 0, "the records of a part", "no file: parts are missing"))
        }
        opened => opened,
    }
}
