//! Reading a directory of parts.

use crate::class::canonical;
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use trawl_hadoop::map::{MapReader, data_path};
use trawl_hadoop::parts::{Part, SpreadCheck, list_numbered_parts, list_parts, part_of_text};
use trawl_hadoop::seq::{At, OpenOptions, Reader, Record};
use trawl_hadoop::{Decoder, Encode, Text, ValueError, class, text};
use trawl_io::Fs;

/// The directory with the parts of a database: its `current`, or the directory itself where it has none.
pub fn current_of(fs: &dyn Fs, dir: &Path) -> Result<PathBuf> {
    let current = dir.join("current");
    Ok(if fs.exists(&current)? { current } else { dir.to_owned() })
}

/// A directory of MapFiles whose keys are spread by their hash.
#[derive(Debug)]
pub struct PartedMap {
    dir: PathBuf,
    parts: Vec<PathBuf>,
    /// Opened when first asked.
    readers: Vec<Option<MapReader>>,
    /// Whether parts are missing behind the last one; found out at the first lookup.
    is_cut: Option<bool>,
    options: OpenOptions,
}

/// Parts, and keys of each, that are read to find out whether all parts are there. Of a whole database some thirty keys tell.
const SAMPLED_PARTS: usize = 16;
const SAMPLED_KEYS: usize = 256;

impl PartedMap {
    /// Opens the parts in `dir`. A directory that is a MapFile itself is its own only part.
    pub fn open(dir: &Path, options: &OpenOptions) -> Result<Self> {
        let parts = if options.fs.exists(&data_path(dir))? {
            vec![dir.to_owned()]
        } else {
            let dirs = list_parts(&*options.fs, dir)?.into_iter().filter(|part| part.is_dir);
            dirs.map(|part| part.path).collect()
        };
        Ok(Self::of(dir, parts, options))
    }

    /// The MapFiles `parts` of `dir`, of which some may be missing.
    pub(crate) fn of(dir: &Path, parts: Vec<PathBuf>, options: &OpenOptions) -> Self {
        let readers = parts.iter().map(|_| None).collect();
        PartedMap { dir: dir.into(), parts, readers, is_cut: None, options: options.clone() }
    }

    /// What is wrong where parts are missing behind the last one, as after a copy that was interrupted: no name reveals them,
    /// and those that are there can all be read.
    pub fn cut(&self) -> Option<Error> {
        let expected =
            format!("{} parts or a multiple of them, where the keys of these belong", self.parts_at_least()?);
        Some(Error::corrupt(&self.dir, 0, expected, format!("{}: parts are missing", self.parts.len())))
    }

    /// The least number of parts that the keys of these were spread over, if that is more than there are.
    fn parts_at_least(&self) -> Option<u32> {
        // One part that is read alone.
        if self.parts.first().is_some_and(|part| *part == self.dir) {
            return None;
        }
        let mut spread = SpreadCheck::new(u32::try_from(self.parts.len()).ok()?);
        for (number, dir) in (0u32..).zip(&self.parts).take(SAMPLED_PARTS) {
            if spread.is_decided() {
                break;
            }
            // The readers of a part report that it is missing or damaged.
            let Ok(mut reader) = self.options.open(&data_path(dir)) else { continue };
            if reader.header().key_class() != class::TEXT {
                return None;
            }
            for _ in 0..SAMPLED_KEYS {
                if spread.is_decided() || !matches!(reader.advance(), Ok(true)) {
                    break;
                }
                if let Ok(content) = Decoder::new(reader.key()).text_bytes("key") {
                    spread.add(content, number);
                }
            }
        }
        spread.parts_at_least()
    }

    /// Fails where there are no parts, or parts of another kind of database: a lookup in it would say "not found". A part
    /// that cannot be opened is reported when it is read.
    pub fn expect(&self, value_class: &str, name: &str) -> Result<()> {
        if self.parts.is_empty() {
            return Err(Error::refused(&self.dir, format!("there is no part of a {name} in it")));
        }
        for reader in self.parts.iter().filter_map(|dir| self.options.open(&data_path(dir)).ok()) {
            let found = canonical(&reader.header().stored_value_class);
            if found != value_class {
                return Err(Error::refused(
                    reader.path(),
                    format!("values of class {found}: it is not part of a {name}"),
                ));
            }
        }
        Ok(())
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Directories of the parts, in Hadoop's order.
    pub fn parts(&self) -> &[PathBuf] {
        &self.parts
    }

    /// The value of a URL, in the part that its hash names; in whichever it lies, if parts are missing.
    pub fn get(&mut self, url: &[u8]) -> Result<Option<&[u8]>> {
        let Some((map, _)) = self.part_of(url)? else { return Ok(None) };
        let key = text_key(&map.header().key_class(), url);
        map.get(&key)
    }

    /// The record of a URL, with the file that it lies in.
    pub fn get_record(&mut self, url: &[u8]) -> Result<Option<(PathBuf, Record<'_>)>> {
        let Some((map, dir)) = self.part_of(url)? else { return Ok(None) };
        let key = text_key(&map.header().key_class(), url);
        Ok(map.get_record(&key)?.map(|record| (data_path(dir), record)))
    }

    /// Hands over every record of a URL, with the file that it lies in: a map may have several of one key.
    pub fn each_record(&mut self, url: &[u8], each: &mut dyn FnMut(&Path, Record<'_>)) -> Result<()> {
        let Some((map, dir)) = self.part_of(url)? else { return Ok(()) };
        let key = text_key(&map.header().key_class(), url);
        let mut range = map.range(&key, None)?;
        while let Some(record) = range.next_record()?.filter(|record| record.key == key) {
            each(&data_path(dir), record);
        }
        Ok(())
    }

    /// The values of a URL in whichever part they lie: the one that its hash names, else any other. A merge of segments
    /// writes only parts that have records, so that those that are there need not be numbered as the hash has it, and one that
    /// is not there need not be lost.
    pub fn values_anywhere(&mut self, url: &[u8]) -> Result<Vec<Vec<u8>>> {
        let count = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let first = part_of_text(url, count) as usize;
        let others = (0..self.parts.len()).filter(|part| *part != first);
        for part in std::iter::once(first).chain(others) {
            let mut values = Vec::new();
            let opened = match self.part(part) {
                Err(Error::Io(error)) if error.is_not_found() => continue,
                opened => opened?,
            };
            if let Some((map, _)) = opened {
                let key = text_key(&map.header().key_class(), url);
                let mut range = map.range(&key, None)?;
                while let Some(record) = range.next_record()?.filter(|record| record.key == key) {
                    values.push(record.value.to_vec());
                }
            }
            if !values.is_empty() {
                return Ok(values);
            }
        }
        Ok(Vec::new())
    }

    fn part_of(&mut self, url: &[u8]) -> Result<Option<(&mut MapReader, &Path)>> {
        let count = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        if count == 0 {
            return Ok(None);
        }
        let mut place = part_of_text(url, count) as usize;
        let is_cut = match self.is_cut {
            Some(known) => known,
            None => {
                let found = self.parts_at_least().is_some();
                self.is_cut = Some(found);
                found
            }
        };
        if is_cut {
            // The hash is one over more parts than there are.
            for part in 0..self.parts.len() {
                if self.has(part, url)? {
                    place = part;
                    break;
                }
            }
        }
        self.part(place)
    }

    /// Whether a part is there and holds a URL.
    fn has(&mut self, part: usize, url: &[u8]) -> Result<bool> {
        let opened = match self.part(part) {
            Err(Error::Io(error)) if error.is_not_found() => return Ok(false),
            opened => opened?,
        };
        let Some((map, _)) = opened else { return Ok(false) };
        let key = text_key(&map.header().key_class(), url);
        Ok(map.get_record(&key)?.is_some())
    }

    fn part(&mut self, part: usize) -> Result<Option<(&mut MapReader, &Path)>> {
        let (Some(dir), Some(reader)) = (self.parts.get(part), self.readers.get_mut(part)) else { return Ok(None) };
        if reader.is_none() {
            *reader = Some(MapReader::open(dir, &self.options)?);
        }
        Ok(reader.as_mut().map(|map| (map, dir.as_path())))
    }

    /// All records, part after part.
    pub fn scan(&self) -> Scan {
        Scan::new(self.parts.iter().map(|dir| data_path(dir)).collect(), &self.options)
    }
}

/// The files with the records of a directory of parts, of a MapFile, or of a SequenceFile.
pub fn data_files(path: &Path, options: &OpenOptions) -> Result<Vec<PathBuf>> {
    files_by(path, options, list_parts)
}

/// The same for a directory of a segment, with those that are missing between others by their numbers.
pub(crate) fn segment_files(path: &Path, options: &OpenOptions) -> Result<Vec<PathBuf>> {
    files_by(path, options, list_numbered_parts)
}

fn files_by(path: &Path, options: &OpenOptions, list: fn(&dyn Fs, &Path) -> Result<Vec<Part>>) -> Result<Vec<PathBuf>> {
    if !options.fs.metadata(path)?.is_dir {
        return Ok(vec![path.to_owned()]);
    }
    if options.fs.exists(&data_path(path))? {
        return Ok(vec![data_path(path)]);
    }
    let parts = list(&*options.fs, path)?.into_iter();
    Ok(parts.map(|part| if part.is_dir { data_path(&part.path) } else { part.path }).collect())
}

/// A URL as a key of this class.
pub fn text_key(class: &str, url: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(url.len() + 2);
    match class {
        class::UTF8 => key.put_utf8(url),
        _ => key.put_text(url),
    }
    key
}

/// A record of a scan.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The file.
    pub file: &'a Path,
    /// Where in the file.
    pub at: At,
    /// The key: a URL or a host.
    pub key: Text<'a>,
    /// The value, serialised.
    pub value: &'a [u8],
    /// The value class as stored.
    pub class: &'a str,
}

impl Entry<'_> {
    /// An error of this entry's value.
    pub fn error(&self, source: ValueError) -> Error {
        let (file, class) = (self.file.into(), self.class.to_owned());
        Error::Value { file, offset: self.at.offset, index: self.at.index, class, source }
    }
}

/// Reads SequenceFiles one after another.
#[derive(Debug)]
pub struct Scan {
    files: std::vec::IntoIter<PathBuf>,
    options: OpenOptions,
    reader: Option<Reader>,
}

impl Scan {
    /// Reads `files` in this order.
    pub fn new(files: Vec<PathBuf>, options: &OpenOptions) -> Self {
        Scan { files: files.into_iter(), options: options.clone(), reader: None }
    }

    /// Reads the parts of a directory, MapFiles or SequenceFiles; or one MapFile; or one SequenceFile.
    pub fn of(path: &Path, options: &OpenOptions) -> Result<Self> {
        Ok(Scan::new(data_files(path, options)?, options))
    }

    /// The reader of the current file.
    pub fn reader(&mut self) -> Option<&mut Reader> {
        self.reader.as_mut()
    }

    /// Moves to the next record; false behind the last one of the last file. Whether a file begins is returned by
    /// [`Scan::reader`]'s path.
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(reader) = &mut self.reader
                && reader.advance()?
            {
                return Ok(true);
            }
            let Some(file) = self.files.next() else {
                self.reader = None;
                return Ok(false);
            };
            self.reader = Some(self.options.open(&file)?);
        }
    }

    /// The next record; `None` behind the last one of the last file.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>> {
        if !self.advance()? {
            return Ok(None);
        }
        self.reader.as_mut().map(entry).transpose()
    }
}

/// The record that a reader stands on.
pub fn entry(reader: &mut Reader) -> Result<Entry<'_>> {
    reader.value()?;
    // From here on it is only looked at: the entry borrows key, value, path and class together.
    let reader: &Reader = reader;
    let record = reader.loaded_record();
    let class = reader.header().stored_value_class.as_str();
    Ok(Entry { file: reader.path(), at: record.at, key: key(reader)?, value: record.value, class })
}

/// The key of the record that a reader stands on, without the cost of its value.
pub(crate) fn key(reader: &Reader) -> Result<Text<'_>> {
    let mut d = Decoder::new(reader.key());
    let stored = reader.header().stored_key_class.as_str();
    let utf8 = class::canonical(stored) == class::UTF8;
    let key = if utf8 { d.utf8_bytes("a key").map(text::from_cesu) } else { d.text("a key") };
    key.and_then(|key| d.end().map(|()| key)).map_err(|source| {
        let at = reader.at();
        let file = reader.path().into();
        Error::Value { file, offset: at.offset, index: at.index, class: "key ".into(), source }
    })
}
