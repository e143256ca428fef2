//! The captures of a segment: its contents, each with how its fetch ended, then the fetches that left no content.

use super::beside::{Ascending, Beside, Rank, Walk, open_part};
use super::capture::capture;
use super::fetch_list::{FetchList, Listed};
use super::layout::{DataFile, Kind, Layout};
use crate::class::{CONTENT, CRAWL_DATUM, canonical};
use crate::db::{Entry as Record, PartedMap, entry};
use crate::segment::SegmentPart;
use crate::types::{Content, CrawlDatum, whole};
use crate::{Error, Result};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_hadoop::parts::part_of_text;
use trawl_hadoop::seq::{At, OpenOptions, Reader, Span};
use trawl_hadoop::{Text, class as hadoop};
use trawl_model::{Capture, CaptureSource, DoorError, Entry, Place, Split};

/// The files of a segment that captures are made of.
#[derive(Debug, Clone)]
pub(super) struct SegmentFiles {
    /// The segment, to which places are relative; a lone file's own directory.
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
            // One that is lost takes no room: who reads the split that it lies in finds out.
            let len = match options.fs.metadata(&stretch.file) {
                Err(error) if error.is_not_found() => 0,
                found => found?.len,
            };
            spans.push((stretch, Span { start, end: start + len }));
            start += len;
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

    /// What is wrong where parts are missing behind the last one.
    fn lost_parts(&self, options: &OpenOptions) -> Vec<Error> {
        lost_parts(self.layout.files.iter().filter(|file| self.wanted.contains(&file.path)), options)
    }

    /// Whether fetches are read for themselves, which finds what is wrong with them.
    fn wants_fetches(&self) -> bool {
        self.fetches.iter().any(|file| self.wanted.contains(file))
    }

    /// Where the other halves of the captures of a stretch are looked for.
    fn beside(&self, stretch: &Stretch) -> Beside {
        let (own, others) = match stretch.is_content {
            true => (&self.contents, &self.fetches),
            false => (&self.fetches, &self.contents),
        };
        let number = own.iter().position(|file| *file == stretch.file);
        Beside::new(others, number.filter(|_| own.len() == others.len()))
    }

    fn placing(&self, file: &Path, reader: &Reader) -> Option<Placing> {
        let (part, parts) = self.layout.files.iter().find(|known| known.path == *file)?.part?;
        let is_text = reader.header().key_class() == hadoop::TEXT;
        is_text.then_some(Placing { part, parts, told: false })
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

impl Stretch {
    fn reaches_end(&self, reader: &Reader) -> bool {
        !matches!(self.from, From::Span(span) if span.end < reader.file_len())
    }
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
    /// What is wrong beside the captures, to be reported before the next one.
    fault: Option<Error>,
    /// Whether it is still to be found out if parts are missing behind the last one.
    may_be_cut: bool,
    cut: Vec<Error>,
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
            may_be_cut: false,
            cut: Vec::new(),
        }
    }

    /// All captures.
    pub fn all(files: &Arc<SegmentFiles>, options: &OpenOptions) -> Self {
        let fault = files.layout.emptied().next();
        SegmentSource { fault, may_be_cut: true, ..Self::new(files, options, files.stretches().collect()) }
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
            // A file without a byte belongs to the split that ends behind or at it.
            let is_first = start == 0 && split.start == 0;
            let is_empty_here = start == end && (is_first || split.start < start && start <= split.end);
            if from < to || is_empty_here {
                let span = Span { start: from - start, end: to - start };
                left.push_back(Stretch { from: From::Span(span), ..stretch });
            }
        }
        let fault = files.layout.emptied().next().filter(|_| split.start == 0);
        Ok(SegmentSource { fault, may_be_cut: split.start == 0, ..Self::new(files, options, left) })
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
        if std::mem::take(&mut self.may_be_cut) {
            self.cut = self.files.lost_parts(&self.options);
        }
        loop {
            if let Some(fault) = self.fault.take().or_else(|| self.cut.pop()).or_else(|| self.beside.take_fault()) {
                return Err(fault);
            }
            let Some((stretch, reader)) = &mut self.now else {
                let Some(stretch) = self.left.pop_front() else { return Ok(None) };
                let reader = start(&stretch, &self.options)?;
                self.beside = self.files.beside(&stretch);
                self.order = Ascending::default();
                self.placing = self.files.placing(&stretch.file, &reader);
                self.now = Some((stretch, reader));
                continue;
            };
            let record = match advance(reader) {
                Ok(true) => entry(reader)?,
                Ok(false) => {
                    if stretch.is_content && stretch.reaches_end(reader) && !self.files.wants_fetches() {
                        self.beside.walks().try_for_each(Walk::rest)?;
                    }
                    self.passed += reader.file_len();
                    self.placing = None;
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
    let mut reader = open_part(&stretch.file, options)?;
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

/// The next record. What cannot be read is reported once: the reader then stands behind it.
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

/// A key lies in the part that its hash names. Where keys lie elsewhere, others are missing.
struct Placing {
    part: u32,
    parts: u32,
    told: bool,
}

impl Placing {
    /// An error for the first key of another part.
    fn check(&mut self, file: &Path, at: At, key: &[u8]) -> Option<Error> {
        let belongs = part_of_text(key, self.parts);
        if belongs == self.part || std::mem::replace(&mut self.told, true) {
            return None;
        }
        let expected = format!("keys of part {} of {}", self.part, self.parts);
        let found = format!("one of part {belongs}: parts are missing or have other names");
        Some(Error::corrupt(file, at.offset, expected, found))
    }
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
            (_, Kind::Segment) => Ok(Some(maps_of(&segment.root.join(part.name()), files, options))),
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

/// What is wrong with each directory of parts among `files` where parts are missing behind the last one, which no name reveals. The
/// keys of all its parts together do; those of one may look as if there were more parts where URLs are much alike.
pub(super) fn lost_parts<'a>(files: impl Iterator<Item = &'a DataFile>, options: &OpenOptions) -> Vec<Error> {
    let mut dirs: BTreeMap<&Path, (u32, Vec<PathBuf>)> = BTreeMap::new();
    for file in files {
        if let Some((map, (_, parts))) = file.map.as_ref().zip(file.part)
            && let Some(dir) = map.parent()
        {
            dirs.entry(dir).or_insert_with(|| (parts, Vec::new())).1.push(map.clone());
        }
    }
    let whole = dirs.into_iter().filter(|(_, (parts, maps))| maps.len() == *parts as usize);
    whole.filter_map(|(dir, (_, maps))| PartedMap::of(dir, maps, options).cut()).collect()
}

/// The maps with these files of data, also those that are missing: each is the part of its number.
pub(super) fn maps_of(dir: &Path, files: &[PathBuf], options: &OpenOptions) -> PartedMap {
    let parts = files.iter().filter_map(|file| file.parent().map(Path::to_owned)).collect();
    PartedMap::of(dir, parts, options)
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

/// No captures, and what tells that there were some.
pub(super) struct Nothing {
    pub faults: VecDeque<Error>,
}

impl CaptureSource for Nothing {
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError> {
        self.faults.pop_front().map_or(Ok(None), |fault| Err(fault.into()))
    }

    fn position(&self) -> u64 {
        0
    }
}
