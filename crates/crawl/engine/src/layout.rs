//! The output directory.
//!
//! ```text
//! OUT/trawl-RUN-00000.warc.gz      archive; `.open` while it is written; or the files of another format
//! OUT/captures.parquet             its index; captures-00000.parquet, … once the archive has several files
//! OUT/rejects.jsonl                items of the seeds that are not URLs, if any
//! OUT/run.json                     what the run did
//! OUT/.crawl/journal               the truth of the crawl's state
//! OUT/.crawl/lock                  who is at work here
//! OUT/.crawl/spool/                large bodies under way (files without names)
//! ```

use crate::config::Start;
use crate::error::Error;
use std::path::{Path, PathBuf};
use trawl_archive::Registry;
use trawl_io::{Fs, LockFile, create_dir_all_synced, describe_holder, remove_leftovers, remove_tree};
use trawl_model::UnixMillis;

/// Paths of a run.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub out: PathBuf,
    pub journal: PathBuf,
    pub spool: PathBuf,
    lock: PathBuf,
}

impl Layout {
    pub(crate) fn new(out: &Path) -> Self {
        let inner = out.join(".crawl");
        Self { out: out.into(), journal: inner.join("journal"), spool: inner.join("spool"), lock: inner.join("lock") }
    }

    pub(crate) fn run_json(&self) -> PathBuf {
        self.out.join("run.json")
    }

    pub(crate) fn rejects(&self) -> PathBuf {
        self.out.join("rejects.jsonl")
    }

    /// The index of the `n`-th archive file, or of the only one.
    pub(crate) fn captures(&self, n: Option<usize>) -> PathBuf {
        self.out.join(n.map_or("captures.parquet".into(), |n| format!("captures-{n:05}.parquet")))
    }

    /// Makes the directories and locks them for this process.
    pub(crate) fn lock(&self, fs: &dyn Fs, software: &str, now: UnixMillis) -> Result<LockFile, Error> {
        create_dir_all_synced(fs, &self.spool)?;
        let lock = LockFile::acquire_in(fs, &self.lock, &describe_holder(software, &now.rfc3339_seconds()))?;
        for dir in [&self.out, &self.out.join(".crawl"), &self.spool] {
            remove_leftovers(fs, dir)?;
        }
        Ok(lock)
    }

    /// Decides how to begin: `true` to go on with the journal that is there.
    pub(crate) fn begin(&self, fs: &dyn Fs, registry: &Registry, start: Start) -> Result<bool, Error> {
        let has_journal = fs.exists(&self.journal)?;
        let files = self.run_files(fs, registry)?;
        match start {
            Start::Resume if has_journal => Ok(true),
            Start::Resume if files.is_empty() => Ok(false),
            Start::Resume => Err(Error::NothingToResume { dir: self.out.clone() }),
            Start::New if !has_journal && files.is_empty() => Ok(false),
            Start::New => {
                let found = files.into_iter().next().unwrap_or_else(|| ".crawl/journal".into());
                Err(Error::Occupied { dir: self.out.clone(), found })
            }
            Start::Overwrite => {
                // The journal goes first: without it nobody takes half of the old run for something to resume.
                if has_journal {
                    fs.remove_file(&self.journal)?;
                    fs.sync_dir(self.journal.parent().unwrap_or(&self.out))?;
                }
                for name in files {
                    let path = self.out.join(name);
                    if fs.metadata(&path)?.is_dir { remove_tree(fs, &path)? } else { fs.remove_file(&path)? }
                }
                fs.sync_dir(&self.out)?;
                Ok(false)
            }
        }
    }

    /// Files in the directory, and directories that are containers, that a crawl wrote, this one or another.
    fn run_files(&self, fs: &dyn Fs, registry: &Registry) -> Result<Vec<String>, Error> {
        let entries = fs.list(&self.out)?.into_iter();
        let names: Vec<String> = entries.filter_map(|entry| entry.name.into_string().ok()).collect();
        let is_own = |name: &str| matches!(name, "run.json" | "rejects.jsonl");
        let of_run = |name: &&String| is_own(name) || registry.role(name, &names).is_some();
        Ok(names.iter().filter(of_run).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_io::RealFs;

    #[test]
    fn a_directory_in_use_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (layout, registry) = (Layout::new(&dir.path().join("out")), Registry::default());
        let lock = layout.lock(&RealFs, "trawl/test", UnixMillis(0)).unwrap();
        let error = layout.lock(&RealFs, "trawl/other", UnixMillis(0)).unwrap_err().to_string();
        assert!(error.contains("trawl/test"), "{error}");
        assert!(!layout.begin(&RealFs, &registry, Start::New).unwrap());
        assert!(!layout.begin(&RealFs, &registry, Start::Resume).unwrap(), "nothing there yet: a resume is a start");
        for name in ["x.warc.gz", "x.warc.gz.open", "captures.parquet", "captures-00001.parquet", "run.json"] {
            let path = layout.out.join(name);
            std::fs::write(&path, "x").unwrap();
            assert!(matches!(layout.begin(&RealFs, &registry, Start::New), Err(Error::Occupied { .. })), "{name}");
            assert!(
                matches!(layout.begin(&RealFs, &registry, Start::Resume), Err(Error::NothingToResume { .. })),
                "{name}"
            );
            assert!(!layout.begin(&RealFs, &registry, Start::Overwrite).unwrap());
            assert!(!path.exists());
        }
        std::fs::write(layout.out.join("notes.txt"), "x").unwrap();
        std::fs::write(&layout.journal, "x").unwrap();
        assert!(layout.begin(&RealFs, &registry, Start::New).is_err());
        assert!(layout.begin(&RealFs, &registry, Start::Resume).unwrap());
        assert!(!layout.begin(&RealFs, &registry, Start::Overwrite).unwrap());
        assert!(layout.out.join("notes.txt").exists() && !layout.journal.exists());
        drop(lock);
    }
}
