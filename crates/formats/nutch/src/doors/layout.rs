//! Which directories are containers of Nutch's or Hadoop's, and the files with records in them.

use crate::legacy::LegacySegment;
use crate::segment::{Segment, SegmentPart};
use crate::{Error, Result};
use std::path::{Component, Path, PathBuf};
use trawl_hadoop::map::{data_path, index_path};
use trawl_hadoop::parts::{Part, list_numbered_parts, list_parts};
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
    /// What is printed for people.
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
    /// Directories of it that are there, and none of whose files is.
    emptied: Vec<PathBuf>,
}

/// Directories between a file and the segment that it is of, that one included: `20261115074402/content/part-r-00000/data`.
const AROUND: usize = 3;
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
        let parts = parts(fs, list_parts(fs, path)?)?;
        if !parts.is_empty() {
            let current = parts.len();
            return Ok(Some(Layout::new(Kind::Parts, path, parts, current)));
        }
        if let Some((mut files, old)) = generations(fs, path)? {
            let current = files.len();
            files.extend(old);
            return Ok(Some(Layout::new(Kind::Database, path, files, current)));
        }
        if Segment::is_segment(fs, path)? {
            let names = SegmentPart::ALL.map(|part| part.name());
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

    /// The same by its whole path, where the one that was given leaves out names that tell what it is: those of the directories
    /// around `data`, or what `.` is called. Contents would come without their fetches, and places without the name of a segment.
    pub fn by_whole_path(self, fs: &dyn Fs) -> Result<Self> {
        let is_part = matches!(self.kind, Kind::File | Kind::Map | Kind::Parts);
        let names = self.root.components().filter(|part| matches!(part, Component::Normal(_))).count();
        let is_short = is_part && self.root.is_relative() && names <= AROUND;
        let goes_up = self.root.components().any(|part| part == Component::ParentDir);
        let is_named = self.root.file_name().is_some() && !goes_up;
        if is_named && !is_short {
            return Ok(self);
        }
        let whole = fs.whole_path(&self.root)?;
        if whole == self.root || is_named && Self::segment_around(fs, &whole)?.is_none() {
            return Ok(self);
        }
        Ok(Self::of(fs, &whole)?.unwrap_or(self))
    }

    /// The segment that a file or directory of parts is in.
    pub fn segment_around(fs: &dyn Fs, path: &Path) -> Result<Option<Self>> {
        for dir in path.ancestors().skip(1).take(AROUND).take_while(|dir| !dir.as_os_str().is_empty()) {
            if Segment::is_segment(fs, dir)? {
                return Layout::of(fs, dir);
            }
        }
        Ok(None)
    }

    fn new(kind: Kind, root: &Path, files: Vec<DataFile>, current: usize) -> Self {
        Layout { kind, root: root.to_owned(), files, current, emptied: Vec::new() }
    }

    /// Files of the current generation.
    pub fn current_files(&self) -> &[DataFile] {
        self.files.get(..self.current).unwrap_or(&self.files)
    }

    /// What is wrong where a directory is there and none of its files is: what it held must not pass for what never was. Parts
    /// that are missing beside others are found when they are read.
    pub fn emptied(&self) -> impl Iterator<Item = Error> {
        self.emptied.iter().map(|dir| Error::corrupt(dir, 0, "parts", "none: parts are missing"))
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
    let (mut lists, mut old, mut emptied) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let dir = root.join(name);
        if !fs.exists(&dir)? {
            continue;
        }
        let mut files = Vec::new();
        let is_dir = fs.metadata(&dir)?.is_dir;
        match map_data(fs, &dir)? {
            Some(data) => files.push(data),
            None if is_dir => files.extend(named_parts(list_numbered_parts(fs, &dir)?)),
            None => {}
        }
        if let Some((current, before)) = generations(fs, &dir)? {
            files.extend(current);
            old.extend(before);
        }
        if files.is_empty() && is_dir {
            let path = data_path(&dir);
            // A map that lost its first bytes is listed all the same: its reader reports the damage.
            match fs.exists(&path)? {
                true => files.push(DataFile { path, map: Some(dir.clone()), part: None }),
                false => emptied.push(dir.clone()),
            }
        }
        lists.push((dir, files));
    }
    if kind == Kind::Segment {
        of_the_same_tasks(root, &mut lists);
    }
    let mut files: Vec<_> = lists.into_iter().flat_map(|(_, files)| files).collect();
    let current = files.len();
    files.extend(old);
    Ok((!files.is_empty()).then(|| Layout { emptied, ..Layout::new(kind, root, files, current) }))
}

/// Contents and fetches are written by the same tasks, a part each. Where one of them has fewer parts, the last ones are
/// listed as missing: a hash over those that are left would name another part, and halves of captures would not meet.
fn of_the_same_tasks(root: &Path, lists: &mut [(PathBuf, Vec<DataFile>)]) {
    let halves = [SegmentPart::Content, SegmentPart::CrawlFetch].map(|part| root.join(part.name()));
    let is_half = |(dir, files): &&(PathBuf, Vec<DataFile>)| {
        halves.contains(dir) && !files.is_empty() && files.iter().all(|file| file.part.is_some())
    };
    let Some((_, most)) = lists.iter().filter(is_half).max_by_key(|(_, files)| files.len()) else { return };
    let names: Vec<_> = most.iter().filter_map(|file| Some(file.map.as_ref()?.file_name()?.to_owned())).collect();
    let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
    for (dir, files) in lists.iter_mut().filter(|list| is_half(&&**list)) {
        for name in names.iter().skip(files.len()) {
            let map = dir.join(name);
            files.push(DataFile { path: data_path(&map), map: Some(map), part: None });
        }
        for (n, file) in (0u32..).zip(files) {
            file.part = Some((n, count));
        }
    }
}

fn map_data(fs: &dyn Fs, dir: &Path) -> Result<Option<DataFile>> {
    let path = data_path(dir);
    let is_map = fs.exists(&path)? && is_sequence_file(fs, &path)?;
    Ok(is_map.then(|| DataFile { path, map: Some(dir.to_owned()), part: None }))
}

/// The files of a database's current generation and of the one before; `None` where there is neither. One without a current
/// generation is a database all the same: its current parts are listed as missing, so that their readers find out.
fn generations(fs: &dyn Fs, dir: &Path) -> Result<Option<(Vec<DataFile>, Vec<DataFile>)>> {
    let parts_in = |name: &str| {
        let dir = dir.join(name);
        if fs.exists(&dir)? && fs.metadata(&dir)?.is_dir {
            parts(fs, list_numbered_parts(fs, &dir)?)
        } else {
            Ok(Vec::new())
        }
    };
    let (mut current, old) = (parts_in("current")?, parts_in("old")?);
    if current.is_empty() && old.is_empty() {
        return Ok(None);
    }
    if current.is_empty() {
        let (from, to) = (dir.join("old"), dir.join("current"));
        let moved = |path: &Path| path.strip_prefix(&from).map_or_else(|_| to.clone(), |inside| to.join(inside));
        for DataFile { path, map, part } in &old {
            current.push(DataFile { path: moved(path), map: map.as_deref().map(moved), part: *part });
        }
    }
    Ok(Some((current, old)))
}

/// The parts of a directory, if they are what Hadoop writes. Text files have such names as well, so that a file must begin as
/// a SequenceFile; MapFiles are known by their directories, so that damage cannot hide them.
fn parts(fs: &dyn Fs, listed: Vec<Part>) -> Result<Vec<DataFile>> {
    let files = named_parts(listed);
    for file in &files {
        if is_map_dir(fs, file)? || fs.exists(&file.path)? && is_sequence_file(fs, &file.path)? {
            return Ok(files);
        }
    }
    Ok(Vec::new())
}

fn is_map_dir(fs: &dyn Fs, file: &DataFile) -> Result<bool> {
    let Some(dir) = &file.map else { return Ok(false) };
    Ok(fs.exists(&data_path(dir))? || fs.exists(&index_path(dir))?)
}

/// Every part of a directory by its name, also one that lost its `data` or its first bytes: its records must not vanish
/// without a word, so the readers of the parts find the fault. MapFiles are spread by hash.
fn named_parts(listed: Vec<Part>) -> Vec<DataFile> {
    let is_part = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"part-"));
    let parts = listed.into_iter().filter(|part| is_part(&part.path));
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
    files
}

/// Whether a file begins as a SequenceFile does.
fn is_sequence_file(fs: &dyn Fs, path: &Path) -> Result<bool> {
    let mut head = [0; 4];
    let file = fs.open(path, Mode::Read)?;
    let n = file.read_at(0, &mut head)?;
    Ok(n == 4 && Header::is_of_any_version(&head))
}
