//! The captures of a segment: its contents, each with how its fetch ended, then the fetches that left no content.

use super::capture::capture;
use super::fetch_list::{FetchList, Listed};
use super::layout::{Kind, Layout};
use crate::Result;
use crate::class::{CONTENT, CRAWL_DATUM, canonical};
use crate::db::{Entry as Record, PartedMap, entry, text_key};
use crate::segment::SegmentPart;
use crate::types::{Content, CrawlDatum, whole};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_hadoop::map::MapReader;
use trawl_hadoop::parts::part_of_text;
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
    beside: Beside,
    /// The list of URLs to fetch, where it is wanted.
    list: Option<FetchList>,
    /// Bytes of files that were read to their end.
    passed: u64,
}

impl SegmentSource {
    fn new(files: &Arc<SegmentFiles>, options: &OpenOptions, left: VecDeque<Stretch>) -> Self {
        let (files, options) = (files.clone(), options.clone());
        SegmentSource { files, options, left, now: None, beside: Beside::default(), list: None, passed: 0 }
    }

    /// All captures.
    pub fn all(files: &Arc<SegmentFiles>, options: &OpenOptions) -> Self {
        Self::new(files, options, files.stretches().collect())
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
        Ok(Self::new(files, options, left))
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
            let Some((stretch, reader)) = &mut self.now else {
                let Some(stretch) = self.left.pop_front() else { return Ok(None) };
                let reader = start(&stretch, &self.options)?;
                let others = if stretch.is_content { &self.files.fetches } else { &self.files.contents };
                self.beside = Beside::new(others);
                self.now = Some((stretch, reader));
                continue;
            };
            let record = match advance(reader) {
                Ok(true) => entry(reader)?,
                Ok(false) => {
                    self.passed += reader.file_len();
                    self.now = None;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let other = self.beside.find(record.key.as_bytes(), &self.options)?;
            let listed = self.list.as_ref().map_or(Listed::Unknown, |list| list.get(record.key.as_bytes()));
            let made = match stretch.is_content {
                true => with_content(&record, other, &listed)?,
                false => without(&record, other.is_some(), &listed)?,
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

/// The files that hold the other half of captures. Keys ascend, so that each file is read forwards from where the first key
/// led its index; a lookup for each would unpack a block again and again.
#[derive(Default)]
struct Beside {
    readers: Vec<(PathBuf, Half)>,
}

/// One of those files.
enum Half {
    Unopened,
    Open(Box<Reader>),
    /// It cannot be opened, which was told once: captures are made of the half that can be read.
    Lost,
}

impl Beside {
    fn new(files: &[PathBuf]) -> Self {
        Beside { readers: files.iter().map(|file| (file.clone(), Half::Unopened)).collect() }
    }

    /// The value of a key that is not below the one before.
    fn find(&mut self, url: &[u8], options: &OpenOptions) -> Result<Option<&[u8]>> {
        let count = u32::try_from(self.readers.len()).unwrap_or(u32::MAX);
        if count == 0 {
            return Ok(None);
        }
        let Some((file, slot)) = self.readers.get_mut(part_of_text(url, count) as usize) else { return Ok(None) };
        if matches!(slot, Half::Unopened) {
            *slot = match start_beside(file, url, options) {
                Ok(reader) => Half::Open(Box::new(reader)),
                Err(error) => {
                    *slot = Half::Lost;
                    return Err(error);
                }
            };
        }
        let Half::Open(reader) = slot else { return Ok(None) };
        let utf8 = reader.header().key_class() == hadoop::UTF8;
        loop {
            if reader.has_record() {
                let found = whole(reader.key(), |d| if utf8 { d.utf8("key") } else { d.text("key") });
                match found.map(|found| found.as_bytes().cmp(url)) {
                    Ok(Ordering::Less) | Err(_) => {}
                    Ok(Ordering::Greater) => return Ok(None),
                    Ok(Ordering::Equal) => return reader.value().map(Some),
                }
            }
            match reader.advance() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => {
                    // Told once; the records behind it are found again.
                    reader.resync()?;
                    return Err(error);
                }
            }
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
    Ok(capture(&record.key.to_string(), datum.as_ref(), Some(content), listed))
}

fn without(record: &Record<'_>, has_content: bool, listed: &Listed<'_>) -> Result<Option<Capture<'static>>> {
    if has_content {
        return Ok(None);
    }
    let datum = whole(record.value, CrawlDatum::decode).map_err(|e| record.error(e))?;
    Ok(capture(&record.key.to_string(), Some(&datum), None, listed))
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
        let fetch = self.fetches.as_mut().map(|map| map.get_record(key)).transpose()?.flatten();
        let fetch = fetch.map(|(file, record)| (file, record.at, record.value.to_vec()));
        let found = self.contents.as_mut().map(|map| map.get_record(key)).transpose()?.flatten();
        let datum = fetch.as_ref().map(|(.., value)| value.as_slice());
        let (made, place) = if let Some((file, record)) = &found {
            let place = self.files.place(file, record.at);
            let entry = Record { file, at: record.at, key: Text::new(key), value: record.value, class: CONTENT };
            (with_content(&entry, datum, &Listed::Unknown)?, place)
        } else if let Some((file, at, value)) = &fetch {
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
