//! Reading a segment.

use super::SegmentPart;
use crate::db::{PartedMap, Scan, segment_files};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use trawl_hadoop::seq::OpenOptions;
use trawl_io::Fs;

/// A segment that is open for reading.
#[derive(Debug)]
pub struct Segment {
    dir: PathBuf,
    options: OpenOptions,
    present: Vec<SegmentPart>,
    /// MapFile directories, opened when first asked.
    maps: Vec<(SegmentPart, PartedMap)>,
}

impl Segment {
    /// Whether `dir` has at least one directory of a segment.
    pub fn is_segment(fs: &dyn Fs, dir: &Path) -> Result<bool> {
        for part in SegmentPart::ALL {
            let path = dir.join(part.name());
            // `content` alone is a name that anything may have; its parts tell.
            if fs.exists(&path)? && fs.metadata(&path)?.is_dir && fs.list(&path)?.iter().any(is_part) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Opens a segment.
    pub fn open(dir: &Path, options: &OpenOptions) -> Result<Self> {
        let mut present = Vec::new();
        for part in SegmentPart::ALL {
            if options.fs.exists(&dir.join(part.name()))? {
                present.push(part);
            }
        }
        if present.is_empty() {
            options.fs.metadata(dir)?;
            return Err(Error::refused(dir, "it holds no directory of a segment"));
        }
        Ok(Segment { dir: dir.into(), options: options.clone(), present, maps: Vec::new() })
    }

    /// The same as if it had none of these directories.
    #[must_use]
    pub fn without(mut self, parts: &[SegmentPart]) -> Self {
        self.present.retain(|part| !parts.contains(part));
        self
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Its name: the time it was generated at, in digits.
    pub fn name(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Directories it has.
    pub fn parts(&self) -> &[SegmentPart] {
        &self.present
    }

    /// Whether it has a directory.
    pub fn has(&self, part: SegmentPart) -> bool {
        self.present.contains(&part)
    }

    /// All records of a directory; none where it is missing. Files that are missing between others are passed over: see
    /// [`Segment::missing`].
    pub fn scan(&self, part: SegmentPart) -> Result<Scan> {
        let (files, _) = self.files(part)?;
        Ok(Scan::new(files, &self.options))
    }

    /// The files of a directory, and those that are missing between them by their numbers.
    fn files(&self, part: SegmentPart) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let (mut files, mut missing) = (Vec::new(), Vec::new());
        if self.has(part) {
            for file in segment_files(&self.dir.join(part.name()), &self.options)? {
                match self.options.fs.exists(&file)? {
                    true => files.push(file),
                    false => missing.push(file),
                }
            }
        }
        Ok((files, missing))
    }

    /// Faults that tell of parts that are not there, one for each directory at most. A reader must tell of them, as it may say
    /// that a URL is not there which is in one of these. They need not be losses: a merge of segments writes no part for a
    /// task without records.
    pub fn missing(&self, without: &[SegmentPart]) -> Result<Vec<Error>> {
        let mut faults = Vec::new();
        for part in self.present.iter().filter(|part| !without.contains(part)) {
            let dir = self.dir.join(part.name());
            let (files, missing) = self.files(*part)?;
            if let Some(first) = missing.first() {
                let expected = format!("{} files", files.len() + missing.len());
                let found = format!("{}, without {}: parts are missing", files.len(), first.display());
                faults.push(Error::corrupt(&dir, 0, expected, found));
            } else if files.is_empty() {
                faults.push(Error::corrupt(&dir, 0, "parts", "none: parts are missing"));
            } else if part.is_map() {
                faults.extend(PartedMap::open(&dir, &self.options)?.cut());
            }
        }
        Ok(faults)
    }

    /// All values of a URL in a directory: looked up where that can be done, else found by reading it all. A redirect leaves a
    /// datum of its target beside that of the target's own fetch.
    pub fn get(&mut self, part: SegmentPart, url: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        if !self.has(part) {
            return Ok(found);
        }
        if part.is_map() {
            if !self.maps.iter().any(|(known, _)| *known == part) {
                let map = PartedMap::open(&self.dir.join(part.name()), &self.options)?;
                self.maps.push((part, map));
            }
            for (known, map) in &mut self.maps {
                if *known == part {
                    found.extend(map.values_anywhere(url)?);
                }
            }
            return Ok(found);
        }
        let mut scan = self.scan(part)?;
        while let Some(entry) = scan.next_entry()? {
            if entry.key.as_bytes() == url {
                found.push(entry.value.to_vec());
            }
        }
        Ok(found)
    }
}

fn is_part(entry: &trawl_io::Entry) -> bool {
    entry.name.as_encoded_bytes().starts_with(b"part-")
}
