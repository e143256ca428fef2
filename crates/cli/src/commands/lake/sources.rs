//! From what a person names to the files that are read.

use super::covered;
use super::ingest::base_uri;
use crate::commands::captures::is_part;
use crate::globs;
use crate::system;
use anyhow::{Context, bail};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::CapturesReader;
use trawl_archive::walk::{self, Item, Kind};
use trawl_ingest::source::{self, Format};
use trawl_io::{Fs, RealFs};
use trawl_lists::zipnum;
use trawl_maintain::temp::Spool;

/// A directory with files of this name stands for them.
const CAPTURES: &str = "captures";
/// The index of a ZipNum cluster, which stands for the files it names, ends so; usually it is `cluster.idx`.
const CLUSTER: &str = ".idx";
/// Bytes of a file that tell whether it is one.
const CLUSTER_HEAD: u64 = 4096;

/// What comes through pipes is called: it has no name of its own.
pub const STDIN: &str = "stdin";
/// Where a crawl keeps its state.
const CRAWL: &str = ".crawl";
/// What a crawl writes beside its archives: none is a list of URLs to be taken.
const CRAWLS_OWN: &[&str] = &["run.json", "rejects.jsonl", "hosts.jsonl", "crawl.log"];

/// What Spark, Dask and pyarrow write beside Parquet files: footers that speak of the rows of those.
const SUMMARIES: &[&str] = &["_metadata", "_common_metadata"];
/// Where jobs of Spark and Hadoop write what counts only when they end: attempts that failed left the same rows there once more.
const UNFINISHED: &str = "_temporary";

/// A file to read.
#[derive(Debug, PartialEq, Eq)]
pub struct SourcePath {
    /// Where it is. Links are resolved: whichever way it is reached, it is one source.
    pub path: PathBuf,
    /// The link that led to it.
    pub link: Option<PathBuf>,
    /// What it is called in commits and rejects, if not by its path.
    pub name: Option<String>,
    /// Its format, where the way it was named tells.
    pub format: Option<Format>,
    /// Found in a directory rather than named.
    pub found: bool,
}

impl SourcePath {
    fn new(path: PathBuf, found: bool) -> Self {
        Self { path, link: None, name: None, format: None, found }
    }

    /// A file that may be behind a link.
    fn resolved(path: &Path, found: bool) -> io::Result<Self> {
        let link = path.is_symlink().then(|| path.to_owned());
        Ok(Self { link, ..Self::new(path.canonicalize()?, found) })
    }

    /// For messages.
    pub fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.path.display().to_string())
    }

    /// The format, as far as the file or a link to it tells.
    pub fn detect(&self, fs: &Arc<dyn Fs>) -> trawl_ingest::Result<Option<Format>> {
        let found = source::detect(fs, &self.path)?;
        match &self.link {
            Some(link) if found.is_none() => source::detect(fs, link),
            _ => Ok(found),
        }
    }
}

/// Something in a directory that is not read.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct NotFile {
    /// Where it is.
    pub path: String,
    /// What it is.
    pub why: &'static str,
}

/// What the named sources come to.
#[derive(Debug, Default)]
pub struct Expanded {
    /// The files, in the order named; those of a directory by name.
    pub files: Vec<SourcePath>,
    /// What else is in directories.
    pub not_files: Vec<NotFile>,
    /// Where archives are found, for the dataset: directories that hold captures.
    pub bases: Vec<String>,
    /// Archives whose captures are read from an index.
    pub indexed: Vec<String>,
    /// What is not as its index says: some of it may be missing.
    pub incomplete: Vec<NotFile>,
    /// What came through pipes.
    pub spools: Vec<Spool>,
}

/// Finds all files that `paths` stand for. What comes through pipes is kept in `temp`; without that it is not looked at.
pub fn expand(paths: &[PathBuf], temp: Option<&Path>) -> anyhow::Result<Expanded> {
    let mut out = Expanded::default();
    if paths.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        bail!("standard input can be read only once: name - once");
    }
    for path in paths {
        if path.as_os_str() == "-" {
            out.add_stream(&mut io::stdin().lock(), temp)?;
            continue;
        }
        let remote = path.to_str().is_some_and(trawl_store::is_remote);
        let matched = if !remote && globs::is_pattern(path) && !path.exists() {
            globs::expand(path)?
        } else {
            vec![path.clone()]
        };
        if matched.is_empty() {
            bail!("nothing matches {}", path.display());
        }
        for path in matched {
            out.add(&path, temp)?;
        }
    }
    covered::settle(&mut out);
    Ok(out)
}

impl Expanded {
    fn add(&mut self, path: &Path, temp: Option<&Path>) -> anyhow::Result<()> {
        if path.to_str().is_some_and(trawl_store::is_remote) {
            self.add_base_of(path);
            self.files.push(SourcePath::new(path.to_owned(), false));
            return Ok(());
        }
        if path.to_str().is_some_and(trawl_store::is_address) && !path.exists() {
            bail!("{}: expected a file, or an address that begins with s3:// or https://", path.display());
        }
        let cannot = || format!("cannot read {}", path.display());
        let kind = fs::metadata(path).with_context(cannot)?.file_type();
        if is_pipe(path) {
            if temp.is_some() {
                self.add_stream(&mut fs::File::open(path).with_context(cannot)?, temp)?;
            }
            return Ok(());
        }
        // One spelling: the same file named another way is the same source.
        let file = SourcePath::resolved(path, false).with_context(cannot)?;
        if kind.is_dir() {
            if walk::is_lake(&RealFs, &file.path) {
                bail!("{} is a lake, which cannot be a source: `trawl lake copy` copies one", path.display());
            }
            let (files, others) = (self.files.len(), self.not_files.len());
            self.add_dir(&file.path, 0)?;
            if self.files.len() == files {
                let only = self.not_files.get(others).map(|other| format!("; {} is {}", other.path, other.why));
                bail!("{} holds no files{}", file.path.display(), only.unwrap_or_default());
            }
        } else if !kind.is_file() {
            bail!("{} is not a regular file, directory or pipe; pipe its contents to `-` instead", path.display());
        } else if is_cluster(path) {
            self.add_cluster(path, false)?;
        } else if is_cluster(&file.path) {
            self.add_cluster(&file.path, false)?;
        } else {
            self.add_base_of(&file.path);
            self.files.push(file);
        }
        Ok(())
    }

    /// The archives that an index of captures names lie beside it.
    fn add_base_of(&mut self, file: &Path) {
        self.bases.extend(file.parent().filter(|_| has_captures_name(file)).map(base_uri));
    }

    /// What can be read only once, and is known by its bytes.
    fn add_stream(&mut self, input: &mut dyn io::Read, temp: Option<&Path>) -> anyhow::Result<()> {
        let Some(temp) = temp else { return Ok(()) };
        let spool = Spool::read(temp, &system::nonce()?, input)?;
        let named = SourcePath { name: Some(STDIN.into()), ..SourcePath::new(spool.path().to_owned(), false) };
        self.files.push(named);
        self.spools.push(spool);
        Ok(())
    }

    fn add_dir(&mut self, dir: &Path, depth: usize) -> anyhow::Result<()> {
        // A lake that lies among the sources is none of them: its own texts look like lists.
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        if walk::is_lake(&*fs, dir) {
            return Ok(());
        }
        if let Some(table) = table_with_log(dir) {
            bail!(
                "{} is {table}: only its log tells which of its files count, and others hold rows that were replaced or deleted; write its \
                 rows to plain Parquet files, or name the files that count",
                dir.display()
            );
        }
        // Nor is what a container is made of.
        if system::archives().1.detect(&fs, dir)?.is_some() {
            return self.add_found(dir);
        }
        let inside = walk::items(&*fs, dir, depth)?;
        let mut captures: Vec<_> =
            inside.iter().map(|item| &item.path).filter(|path| is_captures(path)).cloned().collect();
        let is_crawl = !captures.is_empty() || dir.join(CRAWL).is_dir();
        if !captures.is_empty() {
            self.bases.push(base_uri(dir));
        }
        let superseded = take_once(&mut captures);
        let mut of_clusters = BTreeSet::new();
        for cluster in inside.iter().map(|item| &item.path).filter(|path| is_cluster(path)) {
            let files = self.files.len();
            self.add_cluster(cluster, true)?;
            of_clusters.insert(cluster.canonicalize()?);
            of_clusters.extend(self.files.iter().skip(files).map(|file| file.path.clone()));
        }
        for Item { path, kind } in inside {
            let mut leave = |why| self.not_files.push(NotFile { path: path.display().to_string(), why });
            if superseded.contains(&path) {
                leave("another index of the captures that are read");
            } else if kind == Kind::File
                && SUMMARIES.iter().any(|own| path.file_name().is_some_and(|name| name == *own))
            {
                leave("a summary of Parquet files, without rows of its own");
            } else if kind == Kind::Dir && path.file_name().is_some_and(|name| name == UNFINISHED) {
                leave("what a job of Spark or Hadoop has not finished");
            } else if is_crawl && CRAWLS_OWN.iter().any(|own| path.file_name().is_some_and(|name| name == *own)) {
                leave("a report of the crawl, not a source");
            } else if path.canonicalize().is_ok_and(|path| of_clusters.contains(&path)) {
                // It has been taken with its cluster.
            } else {
                match kind {
                    Kind::File => self.add_found(&path)?,
                    Kind::Dir => self.add_dir(&path, depth + 1)?,
                    // It may lead in a circle.
                    Kind::LinkedDir => leave("a link to a directory"),
                    Kind::BrokenLink => leave("a link that cannot be followed"),
                    Kind::Other => leave("no file"),
                }
            }
        }
        Ok(())
    }

    fn add_found(&mut self, path: &Path) -> anyhow::Result<()> {
        let file = SourcePath::resolved(path, true).with_context(|| format!("cannot read {}", path.display()))?;
        self.files.push(file);
        Ok(())
    }

    /// The files a ZipNum index names: each is a series of gzip members, which together are all lines.
    fn add_cluster(&mut self, index: &Path, found: bool) -> anyhow::Result<()> {
        let cannot = |path: &Path| format!("cannot read {}", path.display());
        let text = fs::read_to_string(index).with_context(|| cannot(index))?;
        let real = index.canonicalize().with_context(|| cannot(index))?;
        let parts = zipnum::parts(&text).map_err(|(n, e)| anyhow::anyhow!("{} line {n}: {e}", index.display()))?;
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        for zipnum::Part { name, end } in parts {
            // Beside a link to the index, or beside the index itself.
            let linked = index.with_file_name(&name);
            let part = if linked.exists() { linked } else { real.with_file_name(&name) };
            let file = SourcePath::resolved(&part, found).with_context(|| cannot(&part))?;
            if fs::metadata(&file.path).with_context(|| cannot(&part))?.len() < end {
                let why = "shorter than its index says: lines are missing";
                self.incomplete.push(NotFile { path: file.path.display().to_string(), why });
            }
            // What the index names is an index of captures, whatever it is called and however it begins.
            let format = file.detect(&fs)?.filter(|format| *format == Format::List(trawl_lists::Format::Cdx));
            let format = format.or(Some(Format::List(trawl_lists::Format::Cdxj)));
            self.files.push(SourcePath { format, ..file });
        }
        Ok(())
    }
}

/// What a directory is, if it is a table whose Parquet files do not all count.
fn table_with_log(dir: &Path) -> Option<&'static str> {
    let is_iceberg = |entry: fs::DirEntry| entry.file_name().as_encoded_bytes().ends_with(b".metadata.json");
    if dir.join("_delta_log").is_dir() {
        return Some("a Delta table");
    }
    if dir.join(".hoodie").is_dir() {
        return Some("a Hudi table");
    }
    // A directory that cannot be read is named when it is walked.
    let is_table = fs::read_dir(dir.join("metadata")).is_ok_and(|found| found.flatten().any(is_iceberg));
    is_table.then_some("an Iceberg table")
}

/// Whether a path leads to bytes without a name of their own: `<(…)`, /dev/stdin, a fifo; also a file without a name any more, which
/// a shell may make of `<<<`.
pub(super) fn is_pipe(path: &Path) -> bool {
    let Ok(kind) = fs::metadata(path).map(|found| found.file_type()) else { return false };
    kind.is_fifo() || kind.is_char_device() || kind.is_file() && SourcePath::resolved(path, false).is_err()
}

pub(super) fn is_captures(path: &Path) -> bool {
    path.is_file() && has_captures_name(path)
}

fn has_captures_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(CAPTURES) && name.ends_with(".parquet")
}

/// An index of all archives, or one of each: a crawl that was stopped while it replaced one by the other has both. Leaves
/// those that hold more, and gives the others.
fn take_once(captures: &mut Vec<PathBuf>) -> Vec<PathBuf> {
    let name = |path: &&PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parts: Vec<_> = captures.iter().filter(|path| is_part(&name(path))).cloned().collect();
    let whole: Vec<_> = captures.iter().filter(|path| name(path) == "captures.parquet").cloned().collect();
    if parts.is_empty() || whole.is_empty() {
        return Vec::new();
    }
    // One that cannot be opened holds nothing that could be taken twice.
    let rows = |paths: &[PathBuf]| -> u64 {
        paths.iter().map(|path| CapturesReader::open(path).map_or(0, |index| index.row_count())).sum()
    };
    let others = if rows(&whole) >= rows(&parts) { parts } else { whole };
    captures.retain(|path| !others.contains(path));
    others
}

fn is_cluster(path: &Path) -> bool {
    if !path.to_string_lossy().ends_with(CLUSTER) || !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(CLUSTER_HEAD).read_to_end(&mut head));
    // An index that is called what they usually are is one, so that a damaged one is reported and not passed over.
    let is_named = path.file_name().is_some_and(|name| name == "cluster.idx");
    is_named || read.is_ok() && zipnum::is_index(&String::from_utf8_lossy(&head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn paths_fit_patterns() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["runs/a/x.txt", "runs/b/x.txt", "runs/b/deep/y.txt", "runs/x.txt", "other/x.txt"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let all = globs::expand(&dir.path().join(pattern)).unwrap();
            all.iter().map(|p| p.strip_prefix(dir.path()).unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(found("runs/*/"), ["runs/a", "runs/b"]);
        assert_eq!(found("*/x.txt"), ["other/x.txt", "runs/x.txt"]);
        assert_eq!(found("runs/**/*.txt"), ["runs/a/x.txt", "runs/b/deep/y.txt", "runs/b/x.txt", "runs/x.txt"]);
        assert_eq!(found("runs/[a]/?.txt"), ["runs/a/x.txt"]);
        assert!(found("none/*").is_empty());
        for name in [".hidden", "ü.txt", "a]", "ab"] {
            std::fs::write(dir.path().join("other").join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("..", dir.path().join("other/up")).unwrap();
        std::fs::write(dir.path().join("other").join(std::ffi::OsStr::from_bytes(b"\xff.txt")), "").unwrap();
        assert_eq!(found("other/*.txt"), ["other/x.txt", "other/ü.txt", "other/\u{fffd}.txt"]);
        assert_eq!(found("other/.*"), ["other/.hidden"]);
        assert_eq!(found("other/[!b-z]?"), ["other/a]", "other/ab"]);
        assert_eq!(found("other/a[]]"), ["other/a]"]);
        assert_eq!(found("other/?.txt").len(), 3);
        assert_eq!(found("other/**/x.txt"), ["other/x.txt"]);
        assert!(globs::expand(Path::new("a[")).is_err());
    }
}
