//! Lists behind the door `UrlSource`, and as streams.

use crate::cdx::Legend;
use crate::fields::one_url;
use crate::file::{ListFile, unpacked};
use crate::format::{Format, look};
use crate::lines::{BOM, BUFFER, Line, LineReader, first_lines};
use crate::oddity::{self, has_joined_url};
use crate::parquet::ParquetSource;
use crate::{BadItem, Options, Purpose, Result, csv, document, foreign, line, markup};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use trawl_io::{Compression, Fs};
use trawl_model::{Advice, Aside, Asides, DoorError, Items, Place, SourceIdentity, Split, UrlRecord, UrlSource};

/// Opens a file as a list. Its format is found by first bytes and name unless `format` says it.
pub fn open(fs: &Arc<dyn Fs>, path: &Path, format: Option<Format>, options: &Options) -> Result<Box<dyn UrlSource>> {
    let format = match format {
        Some(format) => format,
        None => look(fs, path)?.format_of(&path.display().to_string())?,
    };
    Ok(over(ListFile::open(fs, path)?, format, options)?)
}

/// A file, whose format is known, as a list.
pub fn over(file: ListFile, format: Format, options: &Options) -> Result<Box<dyn UrlSource>, DoorError> {
    let mut list = List::new(&file.identity.uri, format, options);
    if format == Format::Parquet {
        return Ok(Box::new(ParquetSource::open(file, options)?));
    }
    if format == Format::Lines {
        // What cannot be read is reported when the list is.
        let head = first_lines(BufReader::new(file.reader(0)?)).unwrap_or_default();
        list.table = csv::table_of_urls(&head);
    }
    if format == Format::Cdx && file.compression == Compression::None {
        // Every part of the file needs what its first line says.
        let mut first = LineReader::new(BufReader::new(file.reader(0)?), 0);
        if let Some(Line::Whole(line)) = first.next_line().map_err(|e| failed(&list.uri, 0, e))? {
            list.legend = Legend::of_header(line);
        }
    }
    Ok(Box::new(TextSource { list, file, changes_columns: OnceLock::new() }))
}

/// Reads a list that can be read only once, from its beginning. Its compression is recognised by the first bytes, and its format,
/// unless `format` says it. `uri` is what it is called in messages.
pub fn read_stream(
    uri: &str,
    format: Option<Format>,
    stream: impl Read,
    options: &Options,
    each: &mut Items<'_>,
) -> Result<(), DoorError> {
    let fail = |e: io::Error| failed(uri, 0, e);
    let mut stream = BufReader::with_capacity(BUFFER, unpacked(stream).map_err(fail)?);
    let first = first_lines(stream.fill_buf().map_err(fail)?).map_err(fail)?;
    let known = format.or_else(|| Format::of_head(&first).map(|(format, _)| format));
    let magic = foreign::by_magic(&first).filter(|_| format.is_none()).map(str::to_owned);
    let binary = || foreign::binary(&first).filter(|_| known.is_none());
    let html = || (known.is_none() && foreign::is_html(&first)).then(|| foreign::describe(&first));
    if let Some(found) = magic.or_else(binary).or_else(html) {
        let error = format!("expected a list of URLs, found {found}");
        return Err(DoorError::new(Advice::Stop, error).at(Place::new(uri, 0, 0)));
    }
    List::new(uri, known.unwrap_or(Format::Lines), options).read(stream, each, &mut |_, _| {})
}

/// How a list is read.
#[derive(Debug)]
struct List {
    uri: String,
    format: Format,
    options: Options,
    /// What the columns of a CDX file are, if its first line says so.
    legend: Option<Legend>,
    /// What separates the fields of a table that is called a list of lines, as far as its first lines tell.
    table: Option<u8>,
}

impl List {
    fn new(uri: &str, format: Format, options: &Options) -> Self {
        // Seeds of both kinds may be in one list.
        let mixed = options.purpose == Purpose::Crawl && format == Format::Jsonl;
        let format = if mixed { Format::Lines } else { format };
        Self { uri: uri.to_owned(), format, options: options.clone(), legend: None, table: None }
    }

    /// Reads a whole list.
    fn read(&self, stream: impl BufRead, each: &mut Items<'_>, aside: &mut Asides<'_>) -> Result<(), DoorError> {
        let Self { uri, options, .. } = self;
        if self.format.is_lines() {
            return self.lines(LineReader::new(stream, 0), u64::MAX, each, aside);
        }
        let each = &mut |at, item: Result<UrlRecord, DoorError>| {
            each(at, item.and_then(|record| one_url(record).map_err(|bad| bad.at(Place::new(&**uri, at, 0)))))
        };
        match self.format {
            Format::Csv => csv::read(uri, None, options, stream, each, aside),
            Format::Tsv => csv::read(uri, Some(b'\t'), options, stream, each, aside),
            Format::Json => document::read(uri, options, stream, each),
            Format::Har => document::read_har(uri, options, stream, each),
            Format::Bookmarks => markup::read_bookmarks(uri, options, stream, each),
            Format::Sitemap => markup::read_sitemap(uri, options, stream, each),
            _ => {
                let error = "expected a list that can be read as a stream, found Parquet: name its file";
                Err(DoorError::new(Advice::Stop, error))
            }
        }
    }

    /// What may not be meant so in the URL of a line.
    fn oddity(&self, url: &str) -> Option<&'static str> {
        match self.table {
            _ if self.format != Format::Lines => None,
            _ if has_joined_url(url) => Some(oddity::JOINED),
            Some(separator) if url.contains(char::from(separator)) => Some(oddity::ROWS),
            _ => None,
        }
    }

    /// Reads the lines that begin before `end`.
    fn lines(
        &self,
        mut lines: LineReader<impl BufRead>,
        end: u64,
        each: &mut Items<'_>,
        aside: &mut Asides<'_>,
    ) -> Result<(), DoorError> {
        let mut legend = self.legend.clone();
        // Which line it is, is known of those that are read from the beginning on.
        let (from_start, mut number) = (lines.offset == 0, 0u64);
        while lines.offset < end {
            let mut at = lines.offset;
            number += 1;
            let (parsed, len) = match lines.next_line().map_err(|e| failed(&self.uri, at, e))? {
                None => break,
                Some(Line::TooLong(head)) => {
                    (Err(BadItem::new("line_too_long", "expected a line of at most 4 MiB", head)), 0)
                }
                Some(Line::Whole(line)) => {
                    // Also in the middle: where lists were put together with `cat`.
                    let bare = line.strip_prefix(BOM).unwrap_or(line);
                    at += (line.len() - bare.len()) as u64;
                    (line::parse(self.format, &self.options, &mut legend, bare), bare.len())
                }
            };
            match parsed {
                Ok(None) => {}
                Ok(Some(record)) => {
                    let item = one_url(record).map_err(|bad| bad.at(Place::new(&*self.uri, at, len as u64)));
                    let odd = item.as_ref().ok().and_then(|record| self.oddity(&record.url));
                    each(at, item)?;
                    if let Some(odd) = odd {
                        aside(at, Aside::Oddity(odd, from_start.then_some(number)));
                    }
                }
                Err(bad) => each(at, Err(bad.at(Place::new(&*self.uri, at, len as u64))))?,
            }
        }
        Ok(())
    }
}

/// A file that holds a text.
#[derive(Debug)]
struct TextSource {
    list: List,
    file: ListFile,
    /// Whether a line of a CDX file names other columns than the first line; asked only of a file that is to be split.
    changes_columns: OnceLock<bool>,
}

impl TextSource {
    /// Whether parts of the file cannot be read alone, since a line in front of them says what their columns are: where indexes of several
    /// programs were joined by `cat`.
    fn changes_columns(&self) -> Result<bool, DoorError> {
        if let Some(known) = self.changes_columns.get() {
            return Ok(*known);
        }
        let mut lines = LineReader::new(BufReader::with_capacity(BUFFER, self.file.reader(0)?), 0);
        let mut found = false;
        while let Some(line) = lines.next_line().map_err(|e| failed(&self.list.uri, 0, e))? {
            let Line::Whole(line) = line else { continue };
            let other = line.trim_ascii_start().starts_with(b"CDX").then(|| Legend::of_header(line)).flatten();
            if other.is_some() && other != self.list.legend {
                found = true;
                break;
            }
        }
        Ok(*self.changes_columns.get_or_init(|| found))
    }
}

impl UrlSource for TextSource {
    fn identity(&self) -> SourceIdentity {
        self.file.identity.clone()
    }

    /// Parts of a plain file of lines. A compressed file is one, and so is a separated one: a line end may be inside a field.
    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        let size = self.file.identity.size;
        if self.file.compression != Compression::None || !self.list.format.is_lines() {
            return Ok(vec![Split { start: 0, end: size }]);
        }
        let target = target_bytes.max(1);
        if self.list.format == Format::Cdx && size > target && self.changes_columns()? {
            return Ok(vec![Split { start: 0, end: size }]);
        }
        let starts = (0..size.div_ceil(target)).map(|i| i * target);
        Ok(starts.map(|start| Split { start, end: size.min(start.saturating_add(target)) }).collect())
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        self.read_all(split, each, &mut |_, _| {})
    }

    fn read_all(&self, split: Split, each: &mut Items<'_>, aside: &mut Asides<'_>) -> Result<(), DoorError> {
        if self.file.compression != Compression::None || !self.list.format.is_lines() {
            return self.list.read(BufReader::with_capacity(BUFFER, self.file.reader(0)?), each, aside);
        }
        // One byte before the split tells whether a line begins right at it.
        let start = split.start.saturating_sub(1);
        let stream = BufReader::with_capacity(BUFFER, self.file.reader(start)?);
        let mut lines = LineReader::new(stream, start);
        if split.start > 0 {
            lines.next_line().map_err(|e| failed(&self.list.uri, start, e))?;
        }
        self.list.lines(lines, split.end, each, aside)
    }
}

pub(crate) fn failed(uri: &str, at: u64, error: io::Error) -> DoorError {
    DoorError::new(Advice::Stop, error).at(Place::new(uri, at, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{file_of, gzip, read_all};
    use proptest::prelude::*;

    fn read_splits(file: &ListFile, target: u64) -> Vec<(u64, String)> {
        let source = over(file.clone(), Format::Lines, &Options::default()).unwrap();
        read_all(&*source, target).unwrap().into_iter().map(|(at, item)| (at, item.unwrap().url)).collect()
    }

    proptest! {
        #[test]
        fn splits_together_are_the_whole(text in "[ab\n]{0,40}", target in 1u64..50) {
            let file = file_of("f", text.as_bytes());
            prop_assert_eq!(read_splits(&file, target), read_splits(&file, u64::MAX));
        }
    }

    /// Parts of the file were read by the columns of its first line: an offset became the name of an archive.
    #[test]
    fn every_part_of_a_cdx_file_is_read_by_its_own_columns() {
        let one = " CDX N b a S V g\ncom,a)/ 20080430204825 http://a.com/ 10 5 x.warc.gz\n";
        let other = " CDX a b V g u\nhttp://b.com/ 20080430204825 7 y.warc.gz z\n";
        for (text, splits) in [(format!("{one}{other}{one}"), 1), (one.repeat(3), one.len() * 3)] {
            let source = over(file_of("f", text.as_bytes()), Format::Cdx, &Options::default()).unwrap();
            assert_eq!(source.splits(1).unwrap().len(), splits);
            let found = read_all(&*source, 1).unwrap();
            let files: Vec<_> = found.into_iter().map(|(_, item)| item.unwrap().place.unwrap().file).collect();
            let expected = if splits == 1 { ["x.warc.gz", "y.warc.gz", "x.warc.gz"] } else { ["x.warc.gz"; 3] };
            assert!(files.iter().map(|file| &**file).eq(expected), "{files:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_line() {
        let text = b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n";
        let expected = [(3, "a".to_owned()), (8, "b".to_owned())];
        for target in [1, 2, 3, 4, 100] {
            assert_eq!(read_splits(&file_of("f", text), target), expected, "{target}");
        }
        assert_eq!(read_splits(&file_of("f", &zstd::encode_all(&text[..], 1).unwrap()), 100), expected);
        assert_eq!(read_splits(&file_of("f", b"\xef\xbb"), 100), [(0, "%EF%BB".to_owned())]);
    }

    #[test]
    fn compressed_files_read_alike_and_cut_ones_fail() {
        let text = "http://a.com/\n".repeat(50_000);
        let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
        let gz = gzip(text.as_bytes());
        let gz = [&gz[..]; 2].concat();
        let plain = read_splits(&file_of("f", text.as_bytes()), 1000);
        assert_eq!(plain.len(), 50_000);
        assert_eq!(read_splits(&file_of("f", &zst), 1000), plain);
        assert_eq!(read_splits(&file_of("f", &gz), 1000).len(), 100_000, "every gzip member counts");
        for bytes in [zst, gz] {
            let cut = over(file_of("f", &bytes[..bytes.len() - 5]), Format::Lines, &Options::default()).unwrap();
            assert!(read_all(&*cut, 1).is_err());
            let mut each = |_, _| Ok(());
            assert!(read_stream("f", None, &bytes[..bytes.len() - 5], &Options::default(), &mut each).is_err());
        }
    }

    #[test]
    fn streams_are_read_as_files_are() {
        let cdxj = "com,a)/ 20260624010203 {\"url\":\"http://a.com/\"}\n".repeat(3);
        for text in ["\u{feff}http://a.com/\n# x\nb.com\t2026\n{\"url\":\"http://c.com/\"}", &cdxj, "", "\n#\n"] {
            for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
                let mut streamed = Vec::new();
                let mut each = |at, item: Result<_, DoorError>| {
                    streamed.push((at, item.map_err(|e| e.to_string())));
                    Ok(())
                };
                read_stream("f", None, &bytes[..], &Options::default(), &mut each).unwrap();
                let file = file_of("f", &bytes);
                let source = open(&file.fs, &file.path, None, &Options::default()).unwrap();
                assert_eq!(streamed, read_all(&*source, 7).unwrap(), "{text:?}");
            }
        }
        let mut each = |_, _| Ok(());
        let error = read_stream("-", None, &b"PAR1"[..], &Options::crawl(), &mut each).unwrap_err();
        assert!(error.to_string().contains("Parquet"), "{error}");
        let error = read_stream("-", None, &b"\x04\x22\x4d\x18x"[..], &Options::crawl(), &mut each).unwrap_err();
        assert!(error.to_string().contains("expected a list of URLs, found an lz4 file"), "{error}");
    }
}
