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

/// Reads the pages of a segment, in their order.
#[derive(Debug)]
pub struct LegacySegment {
    era: Era,
    fetcher: Reader,
    /// Contents, texts and parse data; absent if they were not stored.
    others: [Option<Reader>; 3],
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
                *reader = Some(options.open(&path)?);
            }
        }
        Ok(LegacySegment { era, fetcher: options.open(&data_path(&fetcher))?, others, next: 0 })
    }

    /// The layout.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The file that says how fetches ended.
    pub fn path(&self) -> &Path {
        self.fetcher.path()
    }

    /// Where the last page lies in that file.
    pub fn at(&self) -> At {
        self.fetcher.at()
    }

    /// The next page; `None` at the end.
    pub fn next_page(&mut self) -> Result<Option<LegacyPage>> {
        let number = self.next;
        let Some(output) =
            element(&mut self.fetcher, number, |d| FetcherOutput::decode(d).map(FetcherOutput::into_owned))?
        else {
            return Ok(None);
        };
        self.next += 1;
        let [content, text, data] = &mut self.others;
        let era = self.era;
        let url = output.entry.page.url.clone();
        let content = of(content, number, |d| match era {
            Era::V0_4 => Ok(Content {
                url: url.clone(),
                base: url.clone(),
                content: decode_fetcher_content(d)?,
                ..Content::default()
            }),
            Era::V0_5 => Content::decode(d).map(Content::into_owned),
        })?;
        let text = of(text, number, |d| match era {
            Era::V0_4 => decode_fetcher_text(d).map(ParseText),
            Era::V0_5 => ParseText::decode(d).map(|t| ParseText(t.0.into_owned())),
        })?;
        let mut data = of(data, number, |d| ParseData::decode(d, LinkForm::Utf8).map(ParseData::into_owned))?;
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

fn of<T>(
    reader: &mut Option<Reader>,
    number: i64,
    decode: impl FnOnce(&mut Decoder<'_>) -> Decoded<T>,
) -> Result<Option<T>> {
    reader.as_mut().map_or(Ok(None), |reader| element(reader, number, decode))
}

/// Element `number` of an ArrayFile, which must be the next one.
fn element<T>(
    reader: &mut Reader,
    number: i64,
    decode: impl FnOnce(&mut Decoder<'_>) -> Decoded<T>,
) -> Result<Option<T>> {
    let (path, class) = (reader.path().to_owned(), reader.header().stored_value_class.clone());
    let Some(record) = reader.next_record()? else { return Ok(None) };
    let value_error = |class: String, source: ValueError| Error::Value {
        file: path.clone(),
        offset: record.at.offset,
        index: 0,
        class,
        source,
    };
    let key = whole(record.key, |d| d.i64("number of a page")).map_err(|e| value_error("key ".into(), e))?;
    if key != number {
        return Err(Error::corrupt(&path, record.at.offset, format!("page {number}"), format!("page {key}")));
    }
    whole(record.value, decode).map(Some).map_err(|e| value_error(class, e))
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
