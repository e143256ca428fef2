//! From what a person names to the files that are read.

use super::ingest::base_uri;
use super::temp::Spool;
use crate::glob;
use anyhow::{Context, bail};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use trawl_ingest::source::Format;

/// A directory with files of this name stands for them.
const CAPTURES: &str = "captures";
/// The index of a ZipNum cluster stands for the files it names.
const CLUSTER: &str = "cluster.idx";

/// What standard input is called.
pub const STDIN: &str = "stdin";
/// What only a lake has.
const MANIFESTS: &str = "index/manifests";

/// A file to read.
#[derive(Debug, PartialEq, Eq)]
pub struct SourcePath {
    /// Where it is.
    pub path: PathBuf,
    /// What it is called in commits and rejects, if not by its path.
    pub name: Option<String>,
    /// Its format, where the way it was named tells.
    pub format: Option<Format>,
    /// Found in a directory rather than named.
    pub found: bool,
}

impl SourcePath {
    fn new(path: PathBuf, found: bool) -> Self {
        Self { path, name: None, format: None, found }
    }

    /// For messages.
    pub fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.path.display().to_string())
    }
}

/// What the named sources come to.
#[derive(Debug, Default)]
pub struct Expanded {
    /// The files, in the order named; those of a directory by name.
    pub files: Vec<SourcePath>,
    /// Where archives are found, for the dataset: directories that hold captures.
    pub bases: Vec<String>,
    /// What came from standard input.
    pub spool: Option<Spool>,
}

/// Finds all files that `paths` stand for. Standard input is kept in `temp`; without that it may not be named.
pub fn expand(paths: &[PathBuf], temp: Option<&Path>) -> anyhow::Result<Expanded> {
    let mut out = Expanded::default();
    for path in paths {
        if path.as_os_str() == "-" {
            let Some(temp) = temp else { bail!("standard input can be read only once") };
            if out.spool.is_some() {
                bail!("standard input can be read only once: name - once");
            }
            let spool = Spool::read(temp)?;
            let named = SourcePath { name: Some(STDIN.into()), ..SourcePath::new(spool.path().to_owned(), false) };
            out.files.push(named);
            out.spool = Some(spool);
            continue;
        }
        let matched = if glob::is_pattern(path) && !path.exists() { glob::expand(path)? } else { vec![path.clone()] };
        if matched.is_empty() {
            bail!("nothing matches {}", path.display());
        }
        for path in matched {
            out.add(&path)?;
        }
    }
    Ok(out)
}

impl Expanded {
    fn add(&mut self, path: &Path) -> anyhow::Result<()> {
        // One spelling: the same file named another way is the same source.
        let path = path.canonicalize().with_context(|| format!("cannot read {}", path.display()))?;
        if path.is_dir() {
            let before = self.files.len();
            self.add_dir(&path)?;
            if self.files.len() == before {
                bail!("{} holds no files", path.display());
            }
        } else if is_cluster(&path) {
            self.add_cluster(&path, false)?;
        } else {
            self.files.push(SourcePath::new(path, false));
        }
        Ok(())
    }

    fn add_dir(&mut self, dir: &Path) -> anyhow::Result<()> {
        // A lake that lies among the sources is none of them: its own texts look like lists.
        if dir.join(MANIFESTS).is_dir() {
            return Ok(());
        }
        let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
        let mut inside = entries.map(|e| Ok(e?.path())).collect::<io::Result<Vec<_>>>()?;
        inside.retain(|path| !path.file_name().unwrap_or_default().to_string_lossy().starts_with('.'));
        inside.sort();
        let captures: Vec<_> = inside.iter().filter(|path| is_captures(path)).cloned().collect();
        if !captures.is_empty() {
            self.bases.push(base_uri(dir));
            self.files.extend(captures.into_iter().map(|path| SourcePath::new(path, true)));
            return Ok(());
        }
        if let Some(cluster) = inside.iter().find(|path| is_cluster(path)) {
            return self.add_cluster(cluster, true);
        }
        for path in inside {
            // Links to directories are not followed: they may lead in a circle.
            if path.is_dir() && !path.is_symlink() {
                self.add_dir(&path)?;
            } else if path.is_file() {
                self.files.push(SourcePath::new(path, true));
            }
        }
        Ok(())
    }

    /// The files a ZipNum index names: each is a series of gzip members, which together are all lines.
    fn add_cluster(&mut self, index: &Path, found: bool) -> anyhow::Result<()> {
        let text = fs::read_to_string(index).with_context(|| format!("cannot read {}", index.display()))?;
        let dir = index.parent().unwrap_or(Path::new(""));
        let mut names: Vec<&str> = Vec::new();
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let name = line.split('\t').nth(1).filter(|name| !name.is_empty() && !name.contains(['/', '\\']));
            let Some(name) = name else {
                bail!("{} line {}: expected a key, a tab and a file name, found {line:?}", index.display(), n + 1);
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let parts = names.into_iter().map(|name| dir.join(name));
        let part = |path| SourcePath { format: Some(Format::Cdxj), ..SourcePath::new(path, found) };
        self.files.extend(parts.map(part));
        Ok(())
    }
}

fn is_captures(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.is_file() && name.starts_with(CAPTURES) && name.ends_with(".parquet")
}

fn is_cluster(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == CLUSTER) && path.is_file()
}
