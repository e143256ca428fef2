//! The captures of a segment: its contents, each with how its fetch ended, then the fetches that left no content.

use super::capture::capture;
use super::fetch_list::{FetchList, Listed};
use super::layout::{Kind, Layout};
use crate::class::{CONTENT, CRAWL_DATUM, canonical};
use crate::db::{Entry as Record, PartedMap, entry, text_key};
use crate::segment::SegmentPart;
use crate::types::{Content, CrawlDatum, whole};
use crate::{Error, Result};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_hadoop::map::MapReader;
use trawl_hadoop::parts::{SpreadCheck, part_of_text};
use trawl_hadoop::seq::{At, OpenOptions, Reader, Span};
use trawl_hadoop::{Text, class as hadoop};
use trawl_model::{Capture, CaptureSource, DoorError, Entry, Place, Split};

/// The files of a segment that captures are made of.
#[derive(Debug, Clone)]
pub(super) struct SegmentFiles {
    /// The segment, which places are told from; a lone file's own directory.
    layout: Layout,
    contents: Vec<PathBuf>,
    fetches: Vec<PathBuf>,
    /// Those of them that were asked for: all, or one file of a segment.
    wanted: Vec<PathBuf>,
}

impl SegmentFiles {
    /// What holds captures at `layout`: a segment, or files of one. `None` if nothing there does.
    pub fn of(layout: &Layout, options: &OpenOptions) -> Result<Option<Self>> {
        let own = || layout.current_files().iter().map(|file| file.path.clone());
        let around = match layout.kind {
            Kind::Segment => Some(layout.clone()),
            Kind::File | Kind::Map | Kind::Parts => Layout::segment_around(&*options.fs, &layout.root)?,
            _ => return Ok(None),
        };
        let Some(segment) = around else {
            for file in own() {
                if canonical(&options.open(&file)?.header().stored_value_class) != CONTENT {
                    return Ok(None);
                }
            }
            let contents: Vec<_> = own().collect();
            return Ok(Some(SegmentFiles {
                layout: layout.clone(),
                wanted: contents.clone(),
                contents,
                fetches: vec![],
            }));
        };
        let of = |part: SegmentPart| {
            let dir = segment.root.join(part.name());
            segment.files.iter().map(|file| file.path.clone()).filter(|path| path.starts_with(&dir)).collect::<Vec<_>>()
        };
        let (contents, fetches) = (of(SegmentPart::Content), of(SegmentPart::CrawlFetch));
        let wanted: Vec<_> = own().filter(|file| contents.contains(file) || fetches.contains(file)).collect();
        Ok((!wanted.is_empty()).then_some(SegmentFiles { layout: segment, contents, fetches, wanted }))
    }

    fn stretches(&self) -> impl Iterator<Item = Stretch> {
        let all = self.contents.iter().map(|file| (true, file)).chain(self.fetches.iter().map(|file| (false, file)));
        let wanted = all.filter(|(_, file)| self.wanted.contains(file));
        wanted.map(|(is_content, file)| Stretch { is_content, file: file.clone(), from: From::Start })
    }

    /// All files in their order, each with where it begins and ends in the whole.
    fn spans(&self, options: &OpenOptions) -> Result<Vec<(Stretch, Span)>> {
        let mut start = 0;
        let mut spans = Vec::new();
        for stretch in self.stretches() {
            let end = start + options.fs.metadata(&stretch.file)?.len;
            spans.push((stretch, Span { start, end }));
            start = end;
        }
        Ok(spans)
    }

    /// Parts of about `target_bytes`.
    pub fn splits(&self, options: &OpenOptions, target_bytes: u64) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        for (_, span) in self.spans(options)? {
            super::cut(span, target_bytes, &mut splits);
        }
        Ok(splits)
    }

    /// Contents and fetches are written by the same tasks: of which there are fewer parts, some are lost.
    pub fn unequal_parts(&self) -> Option<Error> {
        let (contents, fetches) = (self.contents.len(), self.fetches.len());
        if contents == 0 || fetches == 0 || contents == fetches {
            return None;
        }
        let (part, more, fewer) = match contents < fetches {
            true => (SegmentPart::Content, fetches, contents),
            false => (SegmentPart::CrawlFetch, contents, fetches),
        };
        let found = format!("{fewer}: parts are missing");
        Some(Error::corrupt(&self.layout.root.join(part.name()), 0, format!("{more} parts"), found))
    }

    fn placing(&self, file: &Path, reader: &Reader) -> Option<Placing> {
        let (part, parts) = self.layout.files.iter().find(|known| known.path == *file)?.part?;
        let is_text = reader.header().key_class() == hadoop::TEXT;
        is_text.then(|| Placing { part, parts, spread: SpreadCheck::new(parts), told: false })
    }

    fn place(&self, file: &Path, at: At) -> Place {
        let mut place = Place::new(self.layout.named(file), at.offset, 0);
        place.index = at.index;
        place
    }
}

/// Records of one file that are read in one go.
#[derive(Debug)]
struct Stretch {
    is_content: bool,
    file: PathBuf,
    from: From,
}

#[derive(Debug, Clone, Copy)]
enum From {
    Start,
    Span(Span),
    At(At),
}

/// Reads captures in the order of their files.
pub(super) struct SegmentSource {
    files: Arc<SegmentFiles>,
    options: OpenOptions,
    left: VecDeque<Stretch>,
    now: Option<(Stretch, Reader)>,
    order: Ascending,
    beside: Beside,
    /// The list of URLs to fetch, where it is wanted.
    list: Option<FetchList>,
    /// Bytes of files that were read to their end.
    passed: u64,
    /// Whether the keys of the file that is read belong to its part.
    placing: Option<Placing>,
    /// What is wrong beside the captures, to be told before the next one.
    fault: Option<Error>,
}

impl SegmentSource {
    fn new(files: &Arc<SegmentFiles>, options: &OpenOptions, left: VecDeque<Stretch>) -> Self {
        let (files, options) = (files.clone(), options.clone());
        SegmentSource {
            files,
            options,
            left,
            now: None,
            order: Ascending::default(),
            beside: Beside::default(),
            list: None,
            passed: 0,
            placing: None,
            fault: None,
        }
    }

    /// All captures.
    pub fn all(files: &Arc<SegmentFiles>, options: &OpenOptions) -> Self {
        let fault = files.unequal_parts();
        SegmentSource { fault, ..Self::new(files, options, files.stretches().collect()) }
    }

    /// The same with what the list of URLs to fetch says of each.
    pub fn all_listed(files: &Arc<SegmentFiles>, options: &OpenOptions) -> Result<Self> {
        let list = match files.layout.kind {
            Kind::Segment => FetchList::read(&files.layout, options)?,
            _ => None,
        };
        Ok(SegmentSource { list, ..Self::all(files, options) })
    }

    /// Those of a split.
    pub fn split(files: &Arc<SegmentFiles>, options: &OpenOptions, split: Split) -> Result<Self> {
        let mut left = VecDeque::new();
        for (stretch, Span { start, end }) in files.spans(options)? {
            let (from, to) = (split.start.max(start), split.end.min(end));
            if from < to {
                let span = Span { start: from - start, end: to - start };
                left.push_back(Stretch { from: From::Span(span), ..stretch });
            }
        }
        let fault = files.unequal_parts().filter(|_| split.start == 0);
        Ok(SegmentSource { fault, ..Self::new(files, options, left) })
    }

    /// From the record at a place on; `None` if no file is called so.
    pub fn at(files: &Arc<SegmentFiles>, options: &OpenOptions, place: &Place) -> Option<Self> {
        let mut left: VecDeque<_> = files.stretches().collect();
        let is_named = |file: &Path| {
            let alone = place.file.is_empty() && files.wanted.len() == 1;
            alone || files.layout.named(file) == *place.file || files.layout.inside(file) == *place.file
        };
        while !is_named(&left.front()?.file) {
            left.pop_front();
        }
        left.front_mut()?.from = From::At(At { offset: place.offset, index: place.index });
        Some(Self::new(files, options, left))
    }

    fn next(&mut self) -> Result<Option<(Capture<'static>, Place)>> {
        loop {
            if let Some(fault) = self.fault.take().or_else(|| self.beside.take_fault()) {
                return Err(fault);
            }
            let Some((stretch, reader)) = &mut self.now else {
                let Some(stretch) = self.left.pop_front() else { return Ok(None) };
                let reader = start(&stretch, &self.options)?;
                let others = if stretch.is_content { &self.files.fetches } else { &self.files.contents };
                self.beside = Beside::new(others);
                self.order = Ascending::default();
                self.placing = self.files.placing(&stretch.file, &reader);
                self.now = Some((stretch, reader));
                continue;
            };
            let record = match advance(reader) {
                Ok(true) => entry(reader)?,
                Ok(false) => {
                    self.passed += reader.file_len();
                    self.fault = self.placing.take().and_then(|placing| placing.end(reader));
                    self.now = None;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let url = record.key.as_bytes();
            self.order.check(record.file, record.at, url)?;
            self.fault = self.placing.as_mut().and_then(|placing| placing.check(record.file, record.at, url));
            let listed = self.list.as_ref().map_or(Listed::Unknown, |list| list.get(url));
            let made = match stretch.is_content {
                true => with_content(&record, self.beside.datum(url, &self.options)?, &listed)?,
                false => without(&record, self.beside.has(url, &self.options)?, &listed)?,
            };
            if let Some(capture) = made {
                return Ok(Some((capture, self.files.place(&stretch.file, record.at))));
            }
        }
    }
}

fn start(stretch: &Stretch, options: &OpenOptions) -> Result<Reader> {
    let mut reader = options.open(&stretch.file)?;
    match stretch.from {
        From::Start => {}
        From::Span(span) => reader.split(span)?,
        From::At(at) => {
            reader.seek(at.offset);
            for _ in 0..at.index {
                reader.advance()?;
            }
        }
    }
    Ok(reader)
}

/// The next record. What cannot be read is told once: the reader then stands behind it.
fn advance(reader: &mut Reader) -> Result<bool> {
    let read = reader.advance().and_then(|found| if found { reader.value().map(|_| true) } else { Ok(false) });
    if let Err(error) = &read
        && error.is_damage()
    {
        reader.resync()?;
    }
    read
}

impl CaptureSource for SegmentSource {
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError> {
        Ok(self.next()?.map(|(capture, place)| (Entry::Capture(Box::new(capture)), place)))
    }

    fn position(&self) -> u64 {
        self.passed + self.now.as_ref().map_or(0, |(_, reader)| reader.at().offset)
    }
}

/// Keys must ascend: halves of captures are found by walking over both files side by side, so that one out of its place would
/// become a capture without its other half.
#[derive(Debug, Default)]
struct Ascending {
    last: Vec<u8>,
}

impl Ascending {
    /// An error for a key below the one before, which stays the mark for those that follow.
    fn check(&mut self, file: &Path, at: At, key: &[u8]) -> Result<()> {
        if key < self.last.as_slice() {
            let found = format!("{} behind {}", Text::new(key), Text::new(&self.last));
            return Err(Error::corrupt(file, at.offset, "keys that ascend", format!("{found}: sort the file first")));
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }
}

/// Halves of captures are looked for in the part that the hash of their key names: keys that lie elsewhere would become
/// captures without their other half.
struct Placing {
    part: u32,
    parts: u32,
    spread: SpreadCheck,
    told: bool,
}

impl Placing {
    /// An error for the first key of another part.
    fn check(&mut self, file: &Path, at: At, key: &[u8]) -> Option<Error> {
        self.spread.add(key, self.part);
        let belongs = part_of_text(key, self.parts);
        if belongs == self.part || std::mem::replace(&mut self.told, true) {
            return None;
        }
        let expected = format!("keys of part {} of {}", self.part, self.parts);
        let found = format!("one of part {belongs}: parts are missing or have other names, and fetches are not found");
        Some(Error::corrupt(file, at.offset, expected, found))
    }

    /// An error where all keys are those of one of more parts.
    fn end(self, reader: &Reader) -> Option<Error> {
        let parts = self.spread.parts_at_least()?;
        let found = format!("{}: parts are missing", self.parts);
        Some(Error::corrupt(reader.path(), reader.file_len(), format!("one of {parts} parts, by its keys"), found))
    }
}

/// The files that hold the other half of captures. Keys ascend, so that each file is read forwards from where the first key
/// led its index; a lookup for each would unpack a block again and again.
#[derive(Default)]
struct Beside {
    readers: Vec<(PathBuf, Half)>,
    /// The URL that was asked for last, and the datum of its fetch: contents of one URL may follow each other.
    found: Option<(Vec<u8>, Option<Vec<u8>>)>,
}

/// One of those files.
enum Half {
    Unopened,
    Open(Box<Walk>),
    /// It cannot be opened, which was told once: captures are made of the half that can be read.
    Lost,
}

/// A file that is read forwards.
struct Walk {
    reader: Reader,
    is_utf8: bool,
    /// Nothing after keys that did not ascend, which is told once, and beside the captures: those whose other half was passed
    /// by cannot be told from those that never had one.
    order: Option<Ascending>,
    fault: Option<Error>,
}

impl Walk {
    fn new(reader: Reader) -> Self {
        let is_utf8 = reader.header().key_class() == hadoop::UTF8;
        // It may stand on a record, where an index has led: that one counts for the order too.
        let last = key_of(&reader, is_utf8).map(|key| key.as_bytes().to_vec()).unwrap_or_default();
        Walk { reader, is_utf8, order: Some(Ascending { last }), fault: None }
    }

    fn key(&self) -> Option<Text<'_>> {
        key_of(&self.reader, self.is_utf8)
    }

    /// Moves to the next record. Damage is told once; the records behind it are found again.
    fn step(&mut self) -> Result<bool> {
        match self.reader.advance() {
            Ok(found) => {
                if let Some(order) = &mut self.order
                    && let Some(key) = key_of(&self.reader, self.is_utf8)
                    && let Err(fault) = order.check(self.reader.path(), self.reader.at(), key.as_bytes())
                {
                    (self.order, self.fault) = (None, Some(fault));
                }
                Ok(found)
            }
            Err(error) => {
                self.reader.resync()?;
                Err(error)
            }
        }
    }
}

/// The key that a reader stands on; `None` before the first record, behind the last, and for what is not a key.
fn key_of(reader: &Reader, is_utf8: bool) -> Option<Text<'_>> {
    let key = reader.has_record().then(|| reader.key())?;
    whole(key, |d| if is_utf8 { d.utf8("key") } else { d.text("key") }).ok()
}

impl Beside {
    fn new(files: &[PathBuf]) -> Self {
        Beside { readers: files.iter().map(|file| (file.clone(), Half::Unopened)).collect(), found: None }
    }

    /// What was found out of order since the last call.
    fn take_fault(&mut self) -> Option<Error> {
        self.readers.iter_mut().find_map(|(_, half)| match half {
            Half::Open(walk) => walk.fault.take(),
            Half::Unopened | Half::Lost => None,
        })
    }

    /// Whether there is a value of a key that is not below the one before, and one that can be read.
    fn has(&mut self, url: &[u8], options: &OpenOptions) -> Result<bool> {
        let Some(walk) = self.find(url, options)? else { return Ok(false) };
        walk.reader.value().map(|_| true)
    }

    /// The datum of a URL's fetch. A redirect leaves a datum of its target beside that of the target's own fetch, in any
    /// order; of several fetches the latest counts.
    fn datum(&mut self, url: &[u8], options: &OpenOptions) -> Result<Option<&[u8]>> {
        if self.found.as_ref().is_none_or(|(known, _)| known != url) {
            let mut best: Option<(Rank, Vec<u8>)> = None;
            if let Some(walk) = self.find(url, options)? {
                while walk.key().is_some_and(|key| key.as_bytes() == url) {
                    let value = walk.reader.value()?;
                    let rank = Rank::of(value);
                    if best.as_ref().is_none_or(|(known, _)| rank > *known) {
                        best = Some((rank, value.to_vec()));
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

    /// The file that may hold a key, on its first record of that key.
    fn find(&mut self, url: &[u8], options: &OpenOptions) -> Result<Option<&mut Walk>> {
        let count = u32::try_from(self.readers.len()).unwrap_or(u32::MAX);
        if count == 0 {
            return Ok(None);
        }
        let Some((file, slot)) = self.readers.get_mut(part_of_text(url, count) as usize) else { return Ok(None) };
        if matches!(slot, Half::Unopened) {
            *slot = match start_beside(file, url, options) {
                Ok(reader) => Half::Open(Box::new(Walk::new(reader))),
                Err(error) => {
                    *slot = Half::Lost;
                    return Err(error);
                }
            };
        }
        let Half::Open(walk) = slot else { return Ok(None) };
        loop {
            match walk.key().map(|found| found.as_bytes().cmp(url)) {
                Some(Ordering::Less) | None => {}
                Some(Ordering::Greater) => return Ok(None),
                Some(Ordering::Equal) => return Ok(Some(walk)),
            }
            if !walk.step()? {
                return Ok(None);
            }
        }
    }
}

/// Which of several datums of a URL a capture is made of: one of a fetch, then the latest, then the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_fetch: bool,
    time: i64,
}

impl Rank {
    /// A datum that cannot be read is told by those who make the capture, if there is no other.
    fn of(value: &[u8]) -> Self {
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
    by_index.map_or_else(|| options.open(file), Ok)
}

fn with_content(record: &Record<'_>, datum: Option<&[u8]>, listed: &Listed<'_>) -> Result<Option<Capture<'static>>> {
    let content = whole(record.value, Content::decode).map_err(|e| record.error(e))?;
    let datum = datum.map(|bytes| whole(bytes, CrawlDatum::decode)).transpose().map_err(|e| record.error(e))?;
    Ok(capture(url_of(record)?, datum.as_ref(), Some(content), listed))
}

fn without(record: &Record<'_>, has_content: bool, listed: &Listed<'_>) -> Result<Option<Capture<'static>>> {
    if has_content {
        return Ok(None);
    }
    let datum = whole(record.value, CrawlDatum::decode).map_err(|e| record.error(e))?;
    Ok(capture(url_of(record)?, Some(&datum), None, listed))
}

/// The URL of a record. Other bytes would become a character that stands for them, and two URLs one.
fn url_of<'a>(record: &'a Record<'_>) -> Result<&'a str> {
    std::str::from_utf8(record.key.as_bytes()).map_err(|e| {
        let found = format!("{:?}: {e}", record.key.to_str());
        Error::corrupt(record.file, record.at.offset, "a URL in UTF-8", found)
    })
}

/// Finds captures by URL, in two lookups.
pub(super) struct Lookup {
    files: Arc<SegmentFiles>,
    contents: Option<PartedMap>,
    fetches: Option<PartedMap>,
}

impl Lookup {
    pub fn open(files: &Arc<SegmentFiles>, options: &OpenOptions) -> Result<Self> {
        let map = |part: SegmentPart, files: &[PathBuf], segment: &Layout| match (files, segment.kind) {
            ([], _) => Ok(None),
            (_, Kind::Segment) => PartedMap::open(&segment.root.join(part.name()), options).map(Some),
            _ => PartedMap::open(&segment.root, options).map(Some),
        };
        let contents = map(SegmentPart::Content, &files.contents, &files.layout)?;
        let fetches = map(SegmentPart::CrawlFetch, &files.fetches, &files.layout)?;
        Ok(Lookup { files: files.clone(), contents, fetches })
    }

    /// The capture of a URL.
    pub fn get(&mut self, url: &str) -> Result<Option<(Capture<'static>, Place)>> {
        let key = url.as_bytes();
        let mut fetch: Option<(Rank, PathBuf, At, Vec<u8>)> = None;
        if let Some(map) = &mut self.fetches {
            map.each_record(key, &mut |file, record| {
                let rank = Rank::of(record.value);
                if fetch.as_ref().is_none_or(|(known, ..)| rank > *known) {
                    fetch = Some((rank, file.to_owned(), record.at, record.value.to_vec()));
                }
            })?;
        }
        let found = self.contents.as_mut().map(|map| map.get_record(key)).transpose()?.flatten();
        let datum = fetch.as_ref().map(|(.., value)| value.as_slice());
        let (made, place) = if let Some((file, record)) = &found {
            let place = self.files.place(file, record.at);
            let entry = Record { file, at: record.at, key: Text::new(key), value: record.value, class: CONTENT };
            (with_content(&entry, datum, &Listed::Unknown)?, place)
        } else if let Some((_, file, at, value)) = &fetch {
            let entry = Record { file, at: *at, key: Text::new(key), value, class: CRAWL_DATUM };
            (without(&entry, false, &Listed::Unknown)?, self.files.place(file, *at))
        } else {
            return Ok(None);
        };
        Ok(made.map(|capture| (capture, place)))
    }
}

/// One capture.
pub(super) struct One(pub Option<(Capture<'static>, Place)>);

impl CaptureSource for One {
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError> {
        Ok(self.0.take().map(|(capture, place)| (Entry::Capture(Box::new(capture)), place)))
    }

    fn position(&self) -> u64 {
        0
    }
}
