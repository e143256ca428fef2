//! Which directories are containers of Nutch's or Hadoop's, and the files with records in them.

use crate::Result;
use crate::legacy::LegacySegment;
use crate::segment::Segment;
use std::path::{Path, PathBuf};
use trawl_hadoop::map::data_path;
use trawl_hadoop::parts::list_parts;
use trawl_hadoop::seq::Header;
use trawl_io::{Fs, Mode};

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A SequenceFile.
    File,
    /// A MapFile: a directory with `data`.
    Map,
    /// A directory of parts.
    Parts,
    /// A CrawlDb, LinkDb or host db: a directory with `current`.
    Database,
    /// A web graph: a directory with outlinks, inlinks and nodes.
    WebGraph,
    /// A segment of 0.8 and later.
    Segment,
    /// A segment of 0.4 to 0.7.
    LegacySegment,
    /// A web database of 0.4 to 0.7.
    WebDb,
}

impl Kind {
    /// What people are told.
    pub fn name(self) -> &'static str {
        match self {
            Kind::File => "SequenceFile",
            Kind::Map => "MapFile",
            Kind::Parts => "directory of parts",
            Kind::Database => "Nutch database",
            Kind::WebGraph => "Nutch web graph",
            Kind::Segment => "Nutch segment",
            Kind::LegacySegment => "Nutch 0.4 to 0.7 segment",
            Kind::WebDb => "Nutch 0.4 to 0.7 web database",
        }
    }
}

/// A file with records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// The file.
    pub path: PathBuf,
    /// Its MapFile's directory, if it is the data of one.
    pub map: Option<PathBuf>,
    /// Which part of how many, where keys are spread by their hash.
    pub part: Option<(u32, u32)>,
}

/// A container and its files.
#[derive(Debug, Clone)]
pub struct Layout {
    /// What it is.
    pub kind: Kind,
    /// Where.
    pub root: PathBuf,
    /// Files with records, those of the current generation first.
    pub files: Vec<DataFile>,
    /// How many of them are of the current generation.
    pub current: usize,
}

const WEBDB: [&str; 4] = ["pagesByURL", "pagesByMD5", "linksByURL", "linksByMD5"];
const LEGACY: [&str; 8] = [
    "fetchlist",
    "fetcher",
    "fetcher_output",
    "fetcher_content",
    "fetcher_text",
    "content",
    "parse_text",
    "parse_data",
];
const WEBGRAPH: [&str; 4] = ["outlinks", "inlinks", "nodes", "loops"];

impl Layout {
    /// What lies at `path`; `None` if it is nothing of Nutch's or Hadoop's.
    pub fn of(fs: &dyn Fs, path: &Path) -> Result<Option<Self>> {
        if !fs.metadata(path)?.is_dir {
            let file = DataFile { path: path.to_owned(), map: None, part: None };
            return Ok(is_sequence_file(fs, path)?.then(|| Layout::new(Kind::File, path, vec![file], 1)));
        }
        if let Some(data) = map_data(fs, path)? {
            return Ok(Some(Layout::new(Kind::Map, path, vec![data], 1)));
        }
        let parts = parts(fs, path)?;
        if !parts.is_empty() {
            let current = parts.len();
            return Ok(Some(Layout::new(Kind::Parts, path, parts, current)));
        }
        let mut files = parts_in(fs, &path.join("current"))?;
        if !files.is_empty() {
            let current = files.len();
            files.extend(parts_in(fs, &path.join("old"))?);
            return Ok(Some(Layout::new(Kind::Database, path, files, current)));
        }
        if Segment::is_segment(fs, path)? {
            let names = crate::segment::SegmentPart::ALL.map(|part| part.name());
            return gathered(fs, Kind::Segment, path, &names);
        }
        if LegacySegment::is_segment(fs, path)? {
            return gathered(fs, Kind::LegacySegment, path, &LEGACY);
        }
        if fs.exists(&path.join("nodes"))? || fs.exists(&path.join("outlinks"))? {
            return gathered(fs, Kind::WebGraph, path, &WEBGRAPH);
        }
        if fs.exists(&path.join("pagesByURL"))? {
            return gathered(fs, Kind::WebDb, path, &WEBDB);
        }
        Ok(None)
    }

    /// The segment that a file or directory of parts is in.
    pub fn segment_around(fs: &dyn Fs, path: &Path) -> Result<Option<Self>> {
        // content/part-r-00000/data: three levels at most.
        for dir in path.ancestors().skip(1).take(3) {
            if Segment::is_segment(fs, dir)? {
                return Layout::of(fs, dir);
            }
        }
        Ok(None)
    }

    fn new(kind: Kind, root: &Path, files: Vec<DataFile>, current: usize) -> Self {
        Layout { kind, root: root.to_owned(), files, current }
    }

    /// Files of the current generation.
    pub fn current_files(&self) -> &[DataFile] {
        self.files.get(..self.current).unwrap_or(&self.files)
    }

    /// The name of a file as places have it: from the container's own name on, so that it is found from beside the container.
    pub fn named(&self, file: &Path) -> String {
        let own = self.root.file_name().unwrap_or_default().to_string_lossy();
        match file.strip_prefix(&self.root) {
            Ok(inside) if !inside.as_os_str().is_empty() => format!("{own}/{}", inside.to_string_lossy()),
            _ => own.into_owned(),
        }
    }

    /// The name of a file inside the container; that of the container itself where it is one file.
    pub fn inside(&self, file: &Path) -> String {
        match file.strip_prefix(&self.root) {
            Ok(inside) if !inside.as_os_str().is_empty() => inside.to_string_lossy().into_owned(),
            _ => self.root.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }
}

/// The files of several directories of parts, MapFiles, or databases.
fn gathered(fs: &dyn Fs, kind: Kind, root: &Path, names: &[&str]) -> Result<Option<Layout>> {
    let (mut files, mut old) = (Vec::new(), Vec::new());
    for name in names {
        let dir = root.join(name);
        if !fs.exists(&dir)? {
            continue;
        }
        match map_data(fs, &dir)? {
            Some(data) => files.push(data),
            None if fs.metadata(&dir)?.is_dir => files.extend(named_parts(fs, &dir)?),
            None => {}
        }
        files.extend(parts_in(fs, &dir.join("current"))?);
        old.extend(parts_in(fs, &dir.join("old"))?);
    }
    let current = files.len();
    files.extend(old);
    Ok((!files.is_empty()).then(|| Layout::new(kind, root, files, current)))
}

fn map_data(fs: &dyn Fs, dir: &Path) -> Result<Option<DataFile>> {
    let path = data_path(dir);
    let is_map = fs.exists(&path)? && is_sequence_file(fs, &path)?;
    Ok(is_map.then(|| DataFile { path, map: Some(dir.to_owned()), part: None }))
}

fn parts_in(fs: &dyn Fs, dir: &Path) -> Result<Vec<DataFile>> {
    if fs.exists(dir)? && fs.metadata(dir)?.is_dir { parts(fs, dir) } else { Ok(Vec::new()) }
}

/// The parts of a directory, if any of them is what Hadoop writes; text files have such names as well.
fn parts(fs: &dyn Fs, dir: &Path) -> Result<Vec<DataFile>> {
    let files = named_parts(fs, dir)?;
    for file in &files {
        if fs.exists(&file.path)? && is_sequence_file(fs, &file.path)? {
            return Ok(files);
        }
    }
    Ok(Vec::new())
}

/// Every part of a directory by its name, also one that lost its `data` or its first bytes: its records must not vanish
/// without a word, so whoever reads the parts finds the fault. MapFiles are spread by hash.
fn named_parts(fs: &dyn Fs, dir: &Path) -> Result<Vec<DataFile>> {
    let is_part = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"part-"));
    let parts = list_parts(fs, dir)?.into_iter().filter(|part| is_part(&part.path));
    let mut files: Vec<_> = parts
        .map(|part| match part.is_dir {
            true => DataFile { path: data_path(&part.path), map: Some(part.path), part: None },
            false => DataFile { path: part.path, map: None, part: None },
        })
        .collect();
    let count = u32::try_from(files.len()).unwrap_or(u32::MAX);
    for (n, file) in (0u32..).zip(&mut files) {
        file.part = file.map.is_some().then_some((n, count));
    }
    Ok(files)
}

/// Whether a file begins as a SequenceFile does.
fn is_sequence_file(fs: &dyn Fs, path: &Path) -> Result<bool> {
    let mut head = [0; 4];
    let file = fs.open(path, Mode::Read)?;
    let n = file.read_at(0, &mut head)?;
    Ok(n == 4 && Header::is_magic(&head))
}
