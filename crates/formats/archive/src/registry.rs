//! Which formats there are, which one a file has, and the files of a path.

use crate::error::{Error, Result};
use crate::seqdb::SeqdbFormat;
use crate::walk::{self, Item, Kind};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_captures::CapturesFormat;
use trawl_io::format::{Candidate, Format, Opening, Role};
use trawl_io::{FileId, Fs, Mode};
use trawl_lists::Format as ListFormat;
use trawl_meguri::MeguriFormat;
use trawl_model::{Archive, DoorError};
use trawl_nutch::NutchFormat;
use trawl_warc::{WaczFormat, WarcFormat};

/// The formats that are known. A value, so that a program can add its own.
#[derive(Clone)]
pub struct Registry {
    /// Asked in this order, the cheap tests first.
    formats: Vec<Arc<dyn Format>>,
}

/// Every format there is. A new one is one line here.
impl Default for Registry {
    fn default() -> Self {
        let formats: Vec<Arc<dyn Format>> = vec![
            Arc::new(CapturesFormat),
            Arc::new(MeguriFormat),
            Arc::new(WaczFormat),
            Arc::new(SeqdbFormat),
            Arc::new(WarcFormat),
            Arc::new(NutchFormat),
        ];
        Registry { formats }
    }
}

/// An archive, found.
#[derive(Clone)]
pub struct Found {
    /// Its file, or directory.
    pub path: PathBuf,
    /// Its format.
    pub format: Arc<dyn Format>,
}

impl Found {
    /// Opens it.
    pub fn open(&self, fs: &Arc<dyn Fs>) -> Result<Box<dyn Archive>, DoorError> {
        self.format.open(&Opening::new(fs, &self.path))
    }

    /// Whether it only points at captures that are elsewhere.
    pub fn is_index(&self) -> bool {
        self.format.is_index()
    }
}

impl Registry {
    /// The same with one more format, which is asked first.
    #[must_use]
    pub fn with(mut self, format: impl Format + 'static) -> Self {
        self.formats.insert(0, Arc::new(format));
        self
    }

    /// The formats a crawl can write.
    pub fn crawlable(&self) -> impl Iterator<Item = &Arc<dyn Format>> {
        self.formats.iter().filter(|format| format.is_crawlable())
    }

    /// The format of this name.
    pub fn format(&self, name: &str) -> Result<Arc<dyn Format>> {
        let found = self.formats.iter().find(|format| format.name() == name);
        found.cloned().ok_or_else(|| Error::NoFormat { found: name.to_owned(), known: self.names() }.into())
    }

    /// The format that a file of this name is to be made in.
    pub fn target(&self, path: &Path) -> Result<Arc<dyn Format>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let makes = |format: &&Arc<dyn Format>| format.targets().iter().any(|end| name.ends_with(end));
        self.formats.iter().find(makes).cloned().ok_or_else(|| {
            let endings: Vec<_> = self.formats.iter().flat_map(|format| format.targets()).copied().collect();
            Error::NoTarget { path: path.to_owned(), endings: endings.join(", ") }.into()
        })
    }

    /// What a file in a crawl's directory is to archives; `all` are the names of the files there.
    pub fn role(&self, name: &str, all: &[String]) -> Option<Role> {
        self.formats.iter().find_map(|format| format.role(name, all))
    }

    /// The format of a file, or of a directory that is one container; `None` when it is none of these.
    pub fn detect(&self, fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<Arc<dyn Format>>> {
        let mut head = [0; Candidate::HEAD_BYTES];
        let mut len = 0;
        let is_dir = fs.metadata(path)?.is_dir;
        if !is_dir {
            let file = fs.open(path, Mode::Read)?;
            while let Some(rest) = head.get_mut(len..).filter(|rest| !rest.is_empty()) {
                match file.read_at(len as u64, rest)? {
                    0 => break,
                    n => len += n,
                }
            }
        }
        let head = head.get(..len).filter(|_| !is_dir);
        let candidate = Candidate { fs, path, head };
        Ok(self.formats.iter().find(|format| format.detect(&candidate)).cloned())
    }

    /// The archives of a path: what it names itself, or else everything in the directory and below it that has one of the
    /// formats, by name. Of the files of one container one stands for the rest.
    pub fn files(&self, fs: &Arc<dyn Fs>, path: &Path) -> Result<Vec<Found>> {
        self.files_within(fs, path, true)
    }

    /// The same without the directories below: what lies beside each other.
    pub fn files_beside(&self, fs: &Arc<dyn Fs>, path: &Path) -> Result<Vec<Found>> {
        self.files_within(fs, path, false)
    }

    fn files_within(&self, fs: &Arc<dyn Fs>, path: &Path, below: bool) -> Result<Vec<Found>> {
        let resolved = match fs.exists(path)? {
            true => None,
            false => self.formats.iter().find_map(|format| format.resolve(&**fs, path)),
        };
        let path = resolved.as_deref().unwrap_or(path);
        let metadata = fs.metadata(path)?;
        match self.detect(fs, path)? {
            Some(format) => return Ok(vec![Found { path: path.to_owned(), format }]),
            None if !metadata.is_dir => {
                let found = match trawl_lists::look(fs, path) {
                    Ok(looks) if looks.head.is_empty() && looks.format.is_none() => "nothing".to_owned(),
                    // What a Parquet file holds is known only when it is opened: those of a lake hold the parts of URLs.
                    Ok(looks) if looks.format == Some(ListFormat::Parquet) && !is_list(fs, path) => {
                        "a Parquet file that is not a list of URLs".to_owned()
                    }
                    Ok(looks) if looks.format.is_some() => {
                        format!("{}, which `trawl crawl` and `trawl lake ingest` take", looks.describe())
                    }
                    Ok(looks) => looks.describe(),
                    Err(e) => e.to_string(),
                };
                return Err(Error::UnknownFile { path: path.to_owned(), known: self.names(), found }.into());
            }
            None if walk::is_lake(&**fs, path) => return Err(Error::IsLake { path: path.to_owned() }.into()),
            None => {}
        }
        let mut search = Search { registry: self, fs, below, entered: HashSet::from([metadata.id]), found: Vec::new() };
        search.directory(path, 0)?;
        match without_doubles(&**fs, search.found)? {
            found if found.is_empty() => Err(Error::NoFiles { path: path.to_owned(), known: self.names() }.into()),
            found => Ok(found),
        }
    }

    fn names(&self) -> String {
        self.formats.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a Parquet file is a list of URLs.
fn is_list(fs: &Arc<dyn Fs>, path: &Path) -> bool {
    trawl_lists::open(fs, path, Some(ListFormat::Parquet), &trawl_lists::Options::default()).is_ok()
}

/// Leaves out further names of what was found, links and hard links: `latest.warc.gz` is the archive that it leads to, not a further one.
/// A name that is not a link is better than one that is.
fn without_doubles(fs: &dyn Fs, found: Vec<Found>) -> Result<Vec<Found>> {
    let mut best: HashMap<FileId, (bool, usize)> = HashMap::new();
    for (number, archive) in found.iter().enumerate() {
        let this = (fs.is_link(&archive.path)?, number);
        let known = best.entry(fs.metadata(&archive.path)?.id).or_insert(this);
        *known = this.min(*known);
    }
    let kept: HashSet<usize> = best.into_values().map(|(_, number)| number).collect();
    let numbered = found.into_iter().enumerate().filter(|(number, _)| kept.contains(number));
    Ok(numbered.map(|(_, archive)| archive).collect())
}

/// A walk that looks for archives.
struct Search<'a> {
    registry: &'a Registry,
    fs: &'a Arc<dyn Fs>,
    /// Whether directories inside are entered.
    below: bool,
    /// Directories that were entered, by identity: links may lead to one again, or in a circle.
    entered: HashSet<FileId>,
    found: Vec<Found>,
}

impl Search<'_> {
    fn directory(&mut self, dir: &Path, depth: usize) -> Result<()> {
        let fs = self.fs;
        for Item { path, kind } in walk::items(&**fs, dir, depth)? {
            match kind {
                Kind::File => {
                    let format = self.registry.detect(fs, &path)?.filter(|format| !format.is_part(&**fs, &path));
                    self.found.extend(format.map(|format| Found { path, format }));
                }
                Kind::Dir | Kind::LinkedDir => {
                    if let Some(format) = self.registry.detect(fs, &path)? {
                        self.found.push(Found { path, format });
                    } else if self.below && !walk::is_lake(&**fs, &path) && self.entered.insert(fs.metadata(&path)?.id)
                    {
                        self.directory(&path, depth + 1)?;
                    }
                }
                Kind::BrokenLink | Kind::Other => {}
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry({})", self.names())
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.format.name())
    }
}
