//! The output directory.
//!
//! ```text
//! OUT/trawl-RUN-00000.warc.gz      archive; `.open` while it is written; or the files of another format
//! OUT/captures.parquet             its index; captures-00000.parquet, … once the archive has several files
//! OUT/rejects.jsonl                items of the seeds that are not URLs, if any
//! OUT/run.json                     what the run did
//! OUT/hosts.jsonl                  what each host took, a line for each
//! OUT/crawl.log                    a line for each capture, in Heritrix's columns
//! OUT/.crawl/frontier/             the truth of the crawl's state: a frontier, with the crawl's own notes in its log
//! OUT/.crawl/rows-00000            rows for the index, one file for each archive file; they stay, so that seeds can be added
//! OUT/.crawl/rejects               lines for rejects.jsonl
//! OUT/.crawl/lock                  who is at work here
//! OUT/.crawl/spool/                large bodies under way (files without names)
//! ```

use crate::config::{Config, Start};
use crate::error::Error;
use crate::open::read_run;
use crate::report::Leg;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::{DigestStore, Registry};
use trawl_frontier::Frontier;
use trawl_io::{Fs, LockFile, create_dir_all_synced, describe_holder, remove_leftovers, remove_tree};
use trawl_model::{Advice, DoorError, UnixMillis};

const RUN_JSON: &str = "run.json";

/// Paths of a run.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub out: PathBuf,
    /// What is not for users.
    pub inner: PathBuf,
    pub frontier: PathBuf,
    pub spool: PathBuf,
    lock: PathBuf,
}

impl Layout {
    pub(crate) fn new(out: &Path) -> Self {
        let inner = out.join(".crawl");
        let (frontier, spool, lock) = (inner.join("frontier"), inner.join("spool"), inner.join("lock"));
        Self { out: out.into(), inner, frontier, spool, lock }
    }

    pub(crate) fn run_json(&self) -> PathBuf {
        self.out.join(RUN_JSON)
    }

    pub(crate) fn rejects(&self) -> PathBuf {
        self.out.join("rejects.jsonl")
    }

    /// What each host took.
    pub(crate) fn hosts(&self) -> PathBuf {
        self.out.join("hosts.jsonl")
    }

    /// A line for each capture.
    pub(crate) fn crawl_log(&self) -> PathBuf {
        self.out.join("crawl.log")
    }

    /// Where the rejects wait.
    pub(crate) fn reject_spool(&self) -> PathBuf {
        self.inner.join("rejects")
    }

    /// Where the rows of an archive file wait.
    pub(crate) fn rows(&self, number: u64) -> PathBuf {
        self.inner.join(format!("rows-{number:05}"))
    }

    /// Removes what only a run that goes on needs.
    pub(crate) fn remove_spools(&self, fs: &dyn Fs) -> Result<(), Error> {
        for entry in fs.list(&self.inner)? {
            let Some(name) = entry.name.to_str().filter(|_| !entry.is_dir) else { continue };
            if name.starts_with("rows-") || name == "rejects" {
                fs.remove_file(&self.inner.join(name))?;
            }
        }
        Ok(fs.sync_dir(&self.inner)?)
    }

    /// The index of the `n`-th archive file, or of the only one.
    pub(crate) fn captures(&self, n: Option<u64>) -> PathBuf {
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

    /// Decides how to begin, and makes room for it. `begun` if a run was started here.
    pub(crate) fn begin(&self, fs: &Arc<dyn Fs>, registry: &Registry, start: Start, begun: bool) -> Result<(), Error> {
        let mut has_frontier = Frontier::exists(&**fs, &self.frontier)?;
        let mut is_crawl = has_frontier;
        if has_frontier && !begun {
            // Somebody was killed before the log said what was to be crawled: nothing was done, and nothing is lost.
            self.remove_frontier(&**fs)?;
            has_frontier = false;
        }
        let mut files = self.run_files(&**fs, registry)?;
        is_crawl |= files.iter().any(|name| name == RUN_JSON);
        match start {
            Start::Resume if has_frontier || files.is_empty() => Ok(()),
            Start::Resume => Err(Error::NothingToResume { dir: self.out.clone() }),
            Start::New if !has_frontier && files.is_empty() => Ok(()),
            // Archives beside no crawl are somebody else's, who wants to keep them.
            Start::New | Start::Overwrite if !is_crawl && !files.is_empty() => {
                let found = files.into_iter().next().unwrap_or_default();
                Err(Error::Foreign { dir: self.out.clone(), found })
            }
            Start::New => {
                let found = files.into_iter().next().unwrap_or_else(|| ".crawl/frontier".into());
                Err(Error::Occupied { dir: self.out.clone(), found })
            }
            Start::Overwrite => {
                // The frontier goes first: without it half of the old run does not look like something to resume. A crash may have left
                // some of it.
                if fs.exists(&self.frontier)? {
                    self.remove_frontier(&**fs)?;
                }
                self.remove_spools(&**fs)?;
                // Last: it says that what is still there after a crash is of a crawl.
                files.sort_by_key(|name| name == RUN_JSON);
                for name in files {
                    let path = self.out.join(name);
                    if fs.metadata(&path)?.is_dir { remove_tree(&**fs, &path)? } else { fs.remove_file(&path)? }
                }
                Ok(fs.sync_dir(&self.out)?)
            }
        }
    }

    /// Refuses what [`Start::Overwrite`] would break: seeds that it would remove before they are read, and a store of digests that may
    /// refer to captures that it removes. Their bodies would count as archived, and be nowhere.
    pub(crate) fn check_overwrite(&self, fs: &dyn Fs, config: &Config) -> Result<(), Error> {
        let Ok(out) = std::fs::canonicalize(&self.out) else { return Ok(()) };
        let files = self.run_files(fs, &config.registry)?;
        for seed in &config.seeds {
            let Some(path) = seed.path().and_then(|path| std::fs::canonicalize(path).ok()) else { continue };
            let Some(name) = path.strip_prefix(&out).ok().and_then(|inside| inside.components().next()) else {
                continue;
            };
            let name = name.as_os_str();
            if name == ".crawl" || files.iter().any(|file| name == file.as_str()) {
                let dir = self.out.display();
                let text =
                    format!("--overwrite would remove it with the crawl in {dir}: choose another directory with --out");
                return Err(Error::Seeds { input: seed.name(), source: DoorError::new(Advice::Stop, text) });
            }
        }
        if let Some(store) = &config.digests
            && !files.is_empty()
            && DigestStore::exists(fs, store)?
        {
            let without = |leg: &Leg| leg.settings.get("digests").is_some_and(Vec::is_empty);
            let run = read_run(fs, self).ok().flatten();
            if run.is_none_or(|run| !run.legs.iter().all(without)) {
                let expected = "a new store, because captures that --overwrite removes may be in the old one";
                let found = format!("{}: choose another name, or another directory with --out", store.display());
                return Err(Error::Setting { setting: "digests", expected: expected.to_owned(), found });
            }
        }
        Ok(())
    }

    fn remove_frontier(&self, fs: &dyn Fs) -> Result<(), Error> {
        let current = self.frontier.join("CURRENT");
        if fs.exists(&current)? {
            fs.remove_file(&current)?;
            fs.sync_dir(&self.frontier)?;
        }
        Ok(remove_tree(fs, &self.frontier)?)
    }

    /// Files in the directory, and directories that are containers, that a crawl wrote, this one or another.
    fn run_files(&self, fs: &dyn Fs, registry: &Registry) -> Result<Vec<String>, Error> {
        let entries = fs.list(&self.out)?.into_iter();
        let names: Vec<String> = entries.filter_map(|entry| entry.name.into_string().ok()).collect();
        let is_own = |name: &str| matches!(name, RUN_JSON | "rejects.jsonl" | "hosts.jsonl" | "crawl.log");
        let of_run = |name: &&String| is_own(name) || registry.role(name, &names).is_some();
        Ok(names.iter().filter(of_run).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::{Retry, SeedInput};
    use std::collections::BTreeSet;
    use trawl_io::RealFs;

    #[test]
    fn a_directory_in_use_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let (layout, registry) = (Layout::new(&dir.path().join("out")), Registry::default());
        let lock = layout.lock(&RealFs, "trawl/test", UnixMillis(0)).unwrap();
        let error = layout.lock(&RealFs, "trawl/other", UnixMillis(0)).unwrap_err().to_string();
        assert!(error.contains("trawl/test"), "{error}");
        layout.begin(&fs, &registry, Start::New, false).unwrap();
        // Nothing there yet: a resume is a start.
        layout.begin(&fs, &registry, Start::Resume, false).unwrap();
        for name in ["x.warc.gz", "x.warc.gz.open", "captures.parquet", "captures-00001.parquet", "run.json"] {
            let path = layout.out.join(name);
            std::fs::write(&path, "x").unwrap();
            if name != RUN_JSON {
                for start in [Start::New, Start::Overwrite] {
                    let found = layout.begin(&fs, &registry, start, false);
                    assert!(matches!(found, Err(Error::Foreign { .. })), "{name}: {found:?}");
                }
                assert!(path.exists(), "{name} is of no crawl, and was removed");
                std::fs::write(layout.run_json(), "x").unwrap();
            }
            assert!(matches!(layout.begin(&fs, &registry, Start::New, false), Err(Error::Occupied { .. })), "{name}");
            let resumed = layout.begin(&fs, &registry, Start::Resume, false);
            assert!(matches!(resumed, Err(Error::NothingToResume { .. })), "{name}");
            layout.begin(&fs, &registry, Start::Overwrite, false).unwrap();
            assert!(!path.exists() && !layout.run_json().exists());
        }
        std::fs::write(layout.out.join("notes.txt"), "x").unwrap();
        std::fs::create_dir(&layout.frontier).unwrap();
        std::fs::write(layout.frontier.join("CURRENT"), "x").unwrap();
        std::fs::write(layout.rows(7), "x").unwrap();
        assert!(layout.begin(&fs, &registry, Start::New, true).is_err());
        layout.begin(&fs, &registry, Start::Resume, true).unwrap();
        layout.begin(&fs, &registry, Start::Overwrite, true).unwrap();
        assert!(layout.out.join("notes.txt").exists() && !layout.frontier.exists() && !layout.rows(7).exists());
        // An overwrite that a crash ended leaves files that are not named anywhere.
        std::fs::create_dir(&layout.frontier).unwrap();
        std::fs::write(layout.frontier.join("base-00000001.meguri"), "x").unwrap();
        layout.begin(&fs, &registry, Start::Overwrite, false).unwrap();
        assert!(!layout.frontier.exists());
        drop(lock);
    }

    #[test]
    fn seeds_are_not_removed_before_they_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(&dir.path().join("out"));
        let check = |seed| layout.check_overwrite(&RealFs, &Config::new(&layout.out, vec![seed]));
        let checked = |name: &str| {
            let path = layout.out.join(name);
            let retry = SeedInput::Retry(Retry { path: path.clone(), classes: BTreeSet::new() });
            [SeedInput::File(path), retry].map(|seed| check(seed).map_err(|error| error.to_string()))
        };
        assert_eq!(checked("captures.parquet"), [Ok(()), Ok(())], "nothing is there yet");
        std::fs::create_dir_all(&layout.inner).unwrap();
        for (name, kept) in
            [("captures.parquet", false), ("x.warc.gz", false), (".crawl/rows-00000", false), ("seeds.txt", true)]
        {
            std::fs::write(layout.out.join(name), "x").unwrap();
            for found in checked(name) {
                assert_eq!(found.is_ok(), kept, "{name}: {found:?}");
            }
        }
        // What does not lie there stays, too.
        std::fs::write(dir.path().join("captures.parquet"), "x").unwrap();
        check(SeedInput::File(dir.path().join("captures.parquet"))).unwrap();
        check(SeedInput::Stdin).unwrap();
    }
}
