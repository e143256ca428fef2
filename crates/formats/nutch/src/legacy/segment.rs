//! Segments of 0.4 to 0.7, as pages.

use super::{FetcherOutput, decode_fetcher_content, decode_fetcher_text, encode_fetcher_content};
use crate::types::{Content, LinkForm, Metadata, ParseData, ParseText, encoded, whole};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_hadoop::map::{MapWriter, MapWriterOptions, data_path};
use trawl_hadoop::seq::{At, OpenOptions, Reader, WriterOptions};
use trawl_hadoop::{Decoded, Decoder, ValueError};
use trawl_io::Fs;

/// Which layout a segment has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// fetchlist, fetcher, fetcher_content, fetcher_text; links and title in fetcher.
    V0_4,
    /// fetchlist, fetcher, content, parse_text, parse_data. 0.6 and 0.7 have the same directories.
    V0_5,
}

impl Era {
    /// Directories with contents, texts and parse data.
    fn directories(self) -> [Option<&'static str>; 3] {
        match self {
            Era::V0_4 => [Some("fetcher_content"), Some("fetcher_text"), None],
            Era::V0_5 => [Some("content"), Some("parse_text"), Some("parse_data")],
        }
    }

    /// The value class that the header of a directory names.
    fn class(self, directory: &str) -> &'static str {
        match (self, directory) {
            (Era::V0_4, "fetchlist") => "net.nutch.pagedb.FetchListEntry",
            (Era::V0_4, "fetcher") => "net.nutch.fetcher.FetcherOutput",
            (Era::V0_4, "fetcher_content") => "net.nutch.fetcher.FetcherContent",
            (Era::V0_4, _) => "net.nutch.fetcher.FetcherText",
            (Era::V0_5, "fetchlist") => "FetchListEntry",
            (Era::V0_5, "fetcher") => "FetcherOutput",
            (Era::V0_5, "content") => "Content",
            (Era::V0_5, "parse_text") => "ParseText",
            (Era::V0_5, _) => "ParseData",
        }
    }
}

/// Everything a segment has of one page.
#[derive(Debug, Clone, PartialEq)]
pub struct LegacyPage {
    /// What was to be fetched, and how that ended.
    pub output: FetcherOutput<'static>,
    /// What the server sent. 0.4 has bytes only: URL and base are those of the page, the content type is empty.
    pub content: Option<Content<'static>>,
    /// Text of the page.
    pub text: Option<ParseText<'static>>,
    /// Title, links and metadata; of 0.4 title and links.
    pub data: Option<ParseData<'static>>,
}

/// Reads the pages of a segment, in their order. Damage costs the page that it hit: the next call goes on behind it.
#[derive(Debug)]
pub struct LegacySegment {
    era: Era,
    fetcher: Elements,
    /// Contents, texts and parse data; absent if they were not stored.
    others: [Option<Elements>; 3],
    next: i64,
}

impl LegacySegment {
    /// Whether `dir` looks like a segment of 0.4 to 0.7.
    pub fn is_segment(fs: &dyn Fs, dir: &Path) -> Result<bool> {
        Ok(fs.exists(&data_path(&dir.join("fetchlist")))? || fetcher_dir(fs, dir)?.is_some())
    }

    /// Opens a segment.
    pub fn open(dir: &Path, options: &OpenOptions) -> Result<Self> {
        let fs = &*options.fs;
        let fetcher =
            fetcher_dir(fs, dir)?.ok_or_else(|| Error::refused(dir, "there is no directory fetcher in it"))?;
        let era = if fs.exists(&dir.join("fetcher_content"))? { Era::V0_4 } else { Era::V0_5 };
        let mut others = [None, None, None];
        for (reader, directory) in others.iter_mut().zip(era.directories()) {
            let Some(directory) = directory else { continue };
            let path = data_path(&dir.join(directory));
            if fs.exists(&path)? {
                *reader = Some(Elements::open(&path, options)?);
            }
        }
        Ok(LegacySegment { era, fetcher: Elements::open(&data_path(&fetcher), options)?, others, next: 0 })
    }

    /// The same without texts and parse data, whose damage then costs nothing.
    pub fn contents_only(self) -> Self {
        let [content, ..] = self.others;
        LegacySegment { others: [content, None, None], ..self }
    }

    /// The layout.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The file that says how fetches ended.
    pub fn path(&self) -> &Path {
        self.fetcher.reader.path()
    }

    /// Where the last page lies in that file.
    pub fn at(&self) -> At {
        self.fetcher.reader.at()
    }

    /// The next page; `None` at the end.
    pub fn next_page(&mut self) -> Result<Option<LegacyPage>> {
        if let Some(fault) = self.others.iter_mut().flatten().find_map(|of| of.fault.take()) {
            return Err(fault);
        }
        let number = self.next;
        let Some(found) = self.fetcher.stand()? else { return self.end(number) };
        if found != number {
            // Told once: the next call goes on with the page that is there.
            self.next = found.max(number);
            self.fetcher.taken = found < number;
            return Err(self.fetcher.other_page(number, found));
        }
        self.next += 1;
        self.fetcher.taken = true;
        // All of them move on before any of them is read: what is wrong with this page must not cost the next one.
        let moved = self.others.each_mut().map(|of| of.as_mut().map_or(Ok(false), |of| of.move_to(number)));
        let [has_content, has_text, has_data] = moved;
        let (has_content, has_text, has_data) = (has_content?, has_text?, has_data?);
        let output = self.fetcher.value(|d| FetcherOutput::decode(d).map(FetcherOutput::into_owned))?;
        let [content, text, data] = &mut self.others;
        let era = self.era;
        let url = output.entry.page.url.clone();
        let content = value_of(content, has_content, |d| match era {
            Era::V0_4 => Ok(Content {
                url: url.clone(),
                base: url.clone(),
                content: decode_fetcher_content(d)?,
                ..Content::default()
            }),
            Era::V0_5 => Content::decode(d).map(Content::into_owned),
        })?;
        let text = value_of(text, has_text, |d| match era {
            Era::V0_4 => decode_fetcher_text(d).map(ParseText),
            Era::V0_5 => ParseText::decode(d).map(|t| ParseText(t.0.into_owned())),
        })?;
        let mut data = value_of(data, has_data, |d| ParseData::decode(d, LinkForm::Utf8).map(ParseData::into_owned))?;
        if era == Era::V0_4 {
            let outlinks = output.outlinks.clone();
            data = Some(ParseData {
                version: 1,
                status: None,
                ..ParseData::new(output.title.clone(), outlinks, Metadata::default())
            });
        }
        Ok(Some(LegacyPage { output, content, text, data }))
    }
}

impl LegacySegment {
    /// The end of the fetcher's file, which must be that of the others too: without it their pages have no URL.
    fn end(&mut self, number: i64) -> Result<Option<LegacyPage>> {
        for elements in self.others.iter_mut().flatten() {
            if let Some(found) = elements.stand()?
                && !std::mem::replace(&mut elements.told, true)
            {
                let (path, at) = (elements.reader.path(), elements.reader.at().offset);
                let expected = format!("{number} pages, as many as the fetcher has");
                return Err(Error::corrupt(path, at, expected, format!("page {found}")));
            }
        }
        Ok(None)
    }
}

fn fetcher_dir(fs: &dyn Fs, dir: &Path) -> Result<Option<PathBuf>> {
    // Without parsing the directory had another name.
    for name in ["fetcher", "fetcher_output"] {
        let path = dir.join(name);
        if fs.exists(&data_path(&path))? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn value_of<T>(
    elements: &mut Option<Elements>,
    has: bool,
    decode: impl FnOnce(&mut Decoder<'_>) -> Decoded<T>,
) -> Result<Option<T>> {
    elements.as_mut().filter(|_| has).map(|elements| elements.value(decode)).transpose()
}

/// The elements of an ArrayFile, each with the number of its page.
#[derive(Debug)]
struct Elements {
    reader: Reader,
    /// The number of the element that the reader stands on.
    number: i64,
    /// That element was given out; at first there is none.
    taken: bool,
    /// The first element that is missing, to be reported beside its page.
    fault: Option<Error>,
    told: bool,
}

impl Elements {
    fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        Ok(Elements { reader: options.open(path)?, number: -1, taken: true, fault: None, told: false })
    }

    /// The number of the next element that was not taken; `None` at the end. Behind damage it goes on at the next marker;
    /// version 1 has none.
    fn stand(&mut self) -> Result<Option<i64>> {
        if !self.taken {
            return Ok(Some(self.number));
        }
        match self.reader.advance() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                if error.is_damage() {
                    self.reader.resync()?;
                }
                return Err(error);
            }
        }
        let key = whole(self.reader.key(), |d| d.i64("number of a page"));
        self.number = key.map_err(|source| self.value_error("key ", source))?;
        self.taken = false;
        Ok(Some(self.number))
    }

    /// Whether there is an element of this number, on which the reader then stands. The first that is missing is a fault,
    /// further ones are not: where a file ends early, that is the rest of it.
    fn move_to(&mut self, number: i64) -> Result<bool> {
        let mut found = self.stand()?;
        // Behind damage in the fetcher's file, elements of pages that are lost come first.
        while found.is_some_and(|found| found < number) {
            self.taken = true;
            found = self.stand()?;
        }
        self.taken |= found == Some(number);
        if found != Some(number) && !std::mem::replace(&mut self.told, true) {
            self.fault = Some(match found {
                Some(found) => self.other_page(number, found),
                None => {
                    let (path, end) = (self.reader.path(), self.reader.file_len());
                    Error::corrupt(path, end, format!("page {number}"), "the end of the file")
                }
            });
        }
        Ok(found == Some(number))
    }

    fn other_page(&self, number: i64, found: i64) -> Error {
        let (path, at) = (self.reader.path(), self.reader.at().offset);
        Error::corrupt(path, at, format!("page {number}"), format!("page {found}"))
    }

    fn value<T>(&mut self, decode: impl FnOnce(&mut Decoder<'_>) -> Decoded<T>) -> Result<T> {
        let value = whole(self.reader.value()?, decode);
        let class = self.reader.header().stored_value_class.clone();
        value.map_err(|source| self.value_error(&class, source))
    }

    fn value_error(&self, class: &str, source: ValueError) -> Error {
        let (file, class) = (self.reader.path().to_owned(), class.to_owned());
        Error::Value { file, offset: self.reader.at().offset, index: 0, class, source }
    }
}

/// Writes a segment of 0.4 or 0.5.
#[derive(Debug)]
pub struct LegacySegmentWriter {
    era: Era,
    fetchlist: MapWriter,
    fetcher: MapWriter,
    others: [Option<MapWriter>; 3],
    next: i64,
}

impl LegacySegmentWriter {
    /// Starts a segment in `dir`.
    pub fn create(fs: &Arc<dyn Fs>, dir: &Path, era: Era) -> Result<Self> {
        let array = |directory: &'static str| {
            // Version 1 has no marker and no checksums.
            let options = WriterOptions::new("long", era.class(directory), [0; 16]);
            let options = WriterOptions { version: 1, checksums: false, fs: fs.clone(), ..options };
            MapWriter::create(&dir.join(directory), MapWriterOptions::new(options, [0; 16]))
        };
        let [content, text, data] = era.directories().map(|d| d.map(array).transpose());
        Ok(LegacySegmentWriter {
            era,
            fetchlist: array("fetchlist")?,
            fetcher: array("fetcher")?,
            others: [content?, text?, data?],
            next: 0,
        })
    }

    /// Appends a page. What it does not have is empty.
    pub fn append(&mut self, page: &LegacyPage) -> Result<()> {
        let key = self.next.to_be_bytes();
        self.next += 1;
        self.fetchlist.append(&key, &encoded(|out| page.output.entry.encode(out)))?;
        self.fetcher.append(&key, &encoded(|out| page.output.encode(self.era, out)))?;
        let (no_content, no_text) = (Content::default(), ParseText::default());
        let content = page.content.as_ref().unwrap_or(&no_content);
        let text = page.text.as_ref().unwrap_or(&no_text);
        let values = match self.era {
            Era::V0_4 => [
                encoded(|out| encode_fetcher_content(&content.content, out)),
                encoded(|out| text.encode_version_1(out)),
                Vec::new(),
            ],
            Era::V0_5 => {
                let no_data = ParseData::new("", Vec::new(), Metadata::default());
                let data = page.data.as_ref().unwrap_or(&no_data);
                [
                    encoded(|out| content.encode_version_1(out)),
                    encoded(|out| text.encode_version_1(out)),
                    encoded(|out| data.encode_version_1(out)),
                ]
            }
        };
        for (writer, value) in self.others.iter_mut().zip(values) {
            if let Some(writer) = writer {
                writer.append(&key, &value)?;
            }
        }
        Ok(())
    }

    /// Puts all files in place; returns the number of pages.
    pub fn finish(self) -> Result<u64> {
        let pages = self.next.cast_unsigned();
        self.fetchlist.finish()?;
        self.fetcher.finish()?;
        for writer in self.others.into_iter().flatten() {
            writer.finish()?;
        }
        Ok(pages)
    }
}
