//! Dataset commits: `datasets/N/commits/<n>.json` lists the files a dataset consists of.
//!
//! Files that no commit names do not exist for any reader. Each commit is complete: it can be read without its
//! predecessors.

use crate::commit_copy::{commit_copy, newest_commit, refill, write_copy};
use crate::manifest::{DatasetInfo, check_head, json_error, to_sealed_json};
use crate::series::{Known, Series, State};
use crate::{Error, Lake, Result, check_path, layout};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use trawl_model::{SourceIdentity, UnixMillis};

/// The format number this program writes, and the newest it reads.
pub const COMMIT_FORMAT: u32 = 1;

/// One state of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetCommit {
    /// Format number.
    pub format: u32,
    /// The dataset.
    pub dataset_id: u32,
    /// Its number in `commits/`.
    pub sequence: u64,
    /// When it was committed, RFC 3339.
    pub written: String,
    /// Who made it.
    pub writer: String,
    /// What it did to the state before.
    pub mode: CommitMode,
    /// Hash of the suffix list by which the rows were cut into domains.
    pub suffix_list: String,
    /// Rows in all live files.
    pub rows: u64,
    /// Bytes of all live files.
    pub bytes: u64,
    /// The live files: by prefix, then by age, then by range.
    pub files: Vec<DataFile>,
    /// Every source whose records are in the live files, sorted: the same one is not taken twice.
    pub sources: Vec<KnownSource>,
    /// Files of what ingests could not take, by path. One that was purged since is not there any more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejects: BTreeMap<String, RejectsFile>,
    /// Whether the dataset was dropped: no commit after that brings anything in again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
    /// Writers that a collector gave up: their commits are refused, since their files may be gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<String>,
    /// What the registry said of the dataset at that time: a lake whose `index/` is lost has it from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<DatasetInfo>,
}

/// What a commit did to the state before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitMode {
    /// Added files.
    Append,
    /// Put new files in place of all others, or of those of some sources.
    Replace,
    /// Rewrote files without changing what the dataset holds (compaction, another suffix list), or with less (a purge).
    Rewrite,
    /// Removed all files.
    Drop,
    /// Changed no file.
    Note,
}

/// What a file system says of a file besides its name and size. While it says the same, the bytes are taken to be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// When the bytes were last changed, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Which file it is.
    pub inode: u64,
}

/// A source whose records are in the live files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownSource {
    /// Which one.
    #[serde(flatten)]
    pub identity: SourceIdentity,
    /// What its file system said of it when it had these bytes: a hint, by which it need not be read to be known again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Stamp>,
    /// By what the URL of its last record is known again, as long as that record's row is in the live files: a source that
    /// was cut takes back what its last record was taken for, and may only take back what it brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    /// The commits whose files ([`DataFile::added`]) have rows of it, and perhaps of others: rising; empty if it brought no row.
    /// Filled in by the commit. `None` in commits of earlier programs: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<Vec<u64>>,
}

impl KnownSource {
    /// A source of which nothing else is known.
    pub fn new(identity: SourceIdentity) -> Self {
        Self { identity, stamp: None, tail: None, commits: None }
    }
}

/// A file of what an ingest could not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectsFile {
    /// Length in bytes.
    pub bytes: u64,
    /// xxh3_64 of its bytes, 16 hex digits.
    pub hash: String,
}

/// One live Parquet file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Path inside the lake.
    pub path: String,
    /// The value of `domain_prefix=`.
    pub prefix: String,
    /// The commit that added it.
    pub added: u64,
    /// Rows.
    pub rows: u64,
    /// Row groups.
    pub row_groups: u32,
    /// Length in bytes.
    pub bytes: u64,
    /// xxh3_64 of its bytes, 16 hex digits.
    pub hash: String,
    /// Number of the schema it was written with.
    pub schema: u32,
    /// Registrable domain of the first row.
    pub min_domain: String,
    /// Registrable domain of the last row.
    pub max_domain: String,
    /// SURT key of the first row.
    pub min_key: String,
    /// SURT key of the last row.
    pub max_key: String,
    /// Different raw URLs in it, exactly.
    pub distinct_urls: u64,
}

impl DatasetCommit {
    /// The state before the first commit.
    pub fn empty(dataset_id: u32) -> Self {
        Self {
            format: COMMIT_FORMAT,
            dataset_id,
            sequence: 0,
            written: String::new(),
            writer: String::new(),
            mode: CommitMode::Note,
            suffix_list: String::new(),
            rows: 0,
            bytes: 0,
            files: Vec::new(),
            sources: Vec::new(),
            rejects: BTreeMap::new(),
            dropped: false,
            revoked: Vec::new(),
            about: None,
        }
    }

    /// Reads the JSON text of `path` and checks what readers rely on.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<Self> {
        check_head(path, bytes, COMMIT_FORMAT)?;
        let commit: Self = serde_json::from_slice(bytes).map_err(|e| json_error(path, bytes, &e))?;
        let corrupt = |expected, found: &dyn ToString| {
            Err(Error::Corrupt { path: path.to_owned(), offset: 0, expected, found: found.to_string() })
        };
        let home = format!("{}/", layout::dataset_dir(commit.dataset_id));
        let mut seen = BTreeSet::new();
        for file in &commit.files {
            if check_path(&file.path).is_err() || !file.path.starts_with(&home) {
                return corrupt("paths inside the dataset", &file.path);
            }
            if !seen.insert(&file.path) {
                return corrupt("each file once", &file.path);
            }
        }
        if Some(commit.rows) != checked_sum(commit.files.iter().map(|f| f.rows)) {
            return corrupt("rows that are the sum of the files' rows", &commit.rows);
        }
        if Some(commit.bytes) != checked_sum(commit.files.iter().map(|f| f.bytes)) {
            return corrupt("bytes that are the sum of the files' bytes", &commit.bytes);
        }
        Ok(commit)
    }

    /// Whether the dataset was dropped, by this commit or an earlier one.
    pub fn is_dropped(&self) -> bool {
        // Earlier programs said it by the mode alone.
        self.dropped || self.mode == CommitMode::Drop
    }

    /// Removes all files, for good; what [`CommitMode::Drop`] means.
    pub fn clear(&mut self) {
        self.files.clear();
        self.sources.clear();
        self.rejects.clear();
        self.dropped = true;
        self.mode = CommitMode::Drop;
    }

    /// Whether the records of `source` are in the live files.
    pub fn has_source(&self, source: &SourceIdentity) -> bool {
        self.known_source(source).is_some()
    }

    /// What is known of `source`, if its records are in the live files.
    pub fn known_source(&self, source: &SourceIdentity) -> Option<&KnownSource> {
        self.source_at(source).ok().and_then(|at| self.sources.get(at))
    }

    /// Adds a source, or puts it in the place of what was known of it.
    pub fn add_source(&mut self, source: KnownSource) {
        match self.source_at(&source.identity) {
            Err(at) => self.sources.insert(at, source),
            Ok(at) => self.sources.get_mut(at).into_iter().for_each(|known| known.clone_from(&source)),
        }
    }

    /// Takes a source out; tells what was known of it.
    pub fn remove_source(&mut self, source: &SourceIdentity) -> Option<KnownSource> {
        self.source_at(source).ok().map(|at| self.sources.remove(at))
    }

    fn source_at(&self, source: &SourceIdentity) -> Result<usize, usize> {
        self.sources.binary_search_by(|known| known.identity.cmp(source))
    }

    /// As it is stored.
    pub fn to_json(&self) -> Vec<u8> {
        to_sealed_json(self)
    }

    /// Puts files, sources and sums into the order and state that [`DatasetCommit::parse`] demands.
    pub fn settle(&mut self) {
        self.files.sort_by(|a, b| {
            (&a.prefix, a.added, &a.min_domain, &a.min_key, &a.path).cmp(&(
                &b.prefix,
                b.added,
                &b.min_domain,
                &b.min_key,
                &b.path,
            ))
        });
        self.sources.sort_by(|a, b| a.identity.cmp(&b.identity));
        self.sources.dedup_by(|a, b| a.identity == b.identity);
        self.rows = self.files.iter().fold(0, |sum, f| sum.saturating_add(f.rows));
        self.bytes = self.files.iter().fold(0, |sum, f| sum.saturating_add(f.bytes));
    }
}

/// Notes with each source which commits' files have its rows: where files were written again as others, those of the commit
/// at hand have the rows of all sources that these had.
fn note_commits(before: &DatasetCommit, after: &mut DatasetCommit) {
    let sequence = after.sequence;
    let live: BTreeSet<u64> = after.files.iter().map(|file| file.added).collect();
    let gone: BTreeSet<u64> = {
        let stay: BTreeSet<&str> = after.files.iter().map(|file| file.path.as_str()).collect();
        let went = before.files.iter().filter(|file| !stay.contains(file.path.as_str()));
        went.map(|file| file.added).collect()
    };
    let others: Vec<SourceIdentity> = after.sources.iter().map(|source| source.identity.clone()).collect();
    for source in &mut after.sources {
        // Read again by this commit: its rows are in the files of it, also if it had brought none, all of them being denied then.
        let again = source.commits.is_none().then_some(sequence);
        let known = match before.known_source(&source.identity) {
            Some(known) => {
                known.commits.as_ref().map(|commits| commits.iter().copied().chain(again).collect::<Vec<_>>())
            }
            // Rows of one that has grown are in the files of what it was, too.
            None => {
                let was = |known: &&KnownSource| {
                    known.identity.uri == source.identity.uri && others.binary_search(&known.identity).is_err()
                };
                let shorter: Option<Vec<_>> =
                    before.sources.iter().filter(was).map(|known| known.commits.clone()).collect();
                shorter.map(|commits| commits.into_iter().flatten().chain([sequence]).collect())
            }
        };
        // Where all files are of this commit, it has the rows of all sources.
        let mut commits = known.or_else(|| live.iter().all(|added| *added == sequence).then(|| vec![sequence]));
        if let Some(commits) = &mut commits {
            if commits.iter().any(|number| gone.contains(number)) {
                commits.push(sequence);
            }
            commits.retain(|number| live.contains(number));
            commits.sort_unstable();
            commits.dedup();
        }
        source.commits = commits;
    }
}

fn checked_sum(mut numbers: impl Iterator<Item = u64>) -> Option<u64> {
    numbers.try_fold(0u64, u64::checked_add)
}

impl Lake {
    /// The newest commit of a dataset, whether or not a version serves it yet. `None`: it has none. [`Error::Lost`] if the
    /// commit that is served is gone with all that came after it: a process that took an older one for the newest would use
    /// its number again.
    pub fn dataset_newest(&self, dataset_id: u32) -> Result<Option<DatasetCommit>> {
        let series = Series::of_dataset(&**self.store(), dataset_id);
        let served = self.served(dataset_id)?;
        let state = newest_commit(&**self.store(), dataset_id)?;
        check_served(&series, dataset_id, state.as_ref(), served)?;
        state.map(|state| DatasetCommit::parse(&series.path(state.number), &state.bytes)).transpose()
    }

    /// Commit `sequence` of a dataset. `None`: it never was or has been collected.
    pub fn dataset_commit(&self, dataset_id: u32, sequence: u64) -> Result<Option<DatasetCommit>> {
        let series = Series::of_dataset(&**self.store(), dataset_id);
        let read = series.get(sequence)?.map(|state| DatasetCommit::parse(&series.path(sequence), &state.bytes));
        match read.transpose() {
            Ok(Some(commit)) => Ok(Some(commit)),
            lost @ (Ok(None) | Err(Error::Corrupt { .. })) => {
                let copy = commit_copy(&**self.store(), dataset_id)?.filter(|copy| copy.number == sequence);
                match copy {
                    Some(copy) => DatasetCommit::parse(&layout::commit_copy(dataset_id), &copy.bytes).map(Some),
                    None => lost,
                }
            }
            error => error,
        }
    }

    /// Commits a change to a dataset. `change` gets the newest state and answers whether there is anything to commit; it
    /// runs again on a newer state whenever another writer was faster. Files it adds get the new commit's number where
    /// their `added` is 0. A dataset that was dropped gets notes only: a caller that brings files is refused, since no one
    /// would ever see them. Returns the newest state and whether this call made it. `writer` must be new for each operation;
    /// errors are as those of [`Lake::commit`].
    pub fn commit_dataset(
        &self,
        dataset_id: u32,
        now: UnixMillis,
        writer: &str,
        change: impl FnMut(&mut DatasetCommit) -> Result<bool>,
    ) -> Result<(DatasetCommit, bool)> {
        self.commit_over(dataset_id, now, writer, self.served(dataset_id)?, Err, change)
    }

    /// As [`Lake::commit_dataset`], where `damaged` tells what to begin with if the newest state cannot be read, or is older
    /// than number `served`.
    pub fn commit_over(
        &self,
        dataset_id: u32,
        now: UnixMillis,
        writer: &str,
        served: u64,
        damaged: impl Fn(Error) -> Result<DatasetCommit>,
        mut change: impl FnMut(&mut DatasetCommit) -> Result<bool>,
    ) -> Result<(DatasetCommit, bool)> {
        crate::check_name(writer)?;
        let store = &**self.store();
        let series = Series::of_dataset(store, dataset_id);
        let copy = commit_copy(store, dataset_id)?;
        if let Some(copy) = &copy {
            refill(&series, store, copy)?;
        }
        let copied = copy.as_ref().map_or(0, |copy| copy.number);
        let known = copy.map_or(Known::Nothing, Known::State);
        let (state, made) = series.append(known, served, |newest| {
            let read = match newest {
                Some(state) => DatasetCommit::parse(&series.path(state.number), &state.bytes),
                None => Ok(DatasetCommit::empty(dataset_id)),
            };
            let mut commit = check_served(&series, dataset_id, newest, served).and(read).or_else(&damaged)?;
            if commit.revoked.iter().any(|revoked| revoked == writer) {
                return Err(Error::Revoked { writer: writer.to_owned() });
            }
            commit.dropped = commit.is_dropped();
            let gone = commit.dropped;
            commit.mode = CommitMode::Note;
            let before = commit.clone();
            if !change(&mut commit)? {
                return Ok(None);
            }
            if gone && (commit.mode != CommitMode::Note || !commit.files.is_empty()) {
                return Err(Error::Dropped { dataset_id });
            }
            commit.format = COMMIT_FORMAT;
            commit.sequence = newest.map_or(0, |state| state.number).max(served).saturating_add(1);
            commit.written = now.to_string();
            writer.clone_into(&mut commit.writer);
            // Asked for after the newest commit was read: a process that changes the registry commits a note after that, and then
            // either this sees the change or its number is taken.
            if let Some(dataset) = self.current()?.dataset(dataset_id) {
                commit.about = Some(dataset.info.clone());
            }
            let sequence = commit.sequence;
            commit.files.iter_mut().filter(|f| f.added == 0).for_each(|f| f.added = sequence);
            commit.settle();
            note_commits(&before, &mut commit);
            let bytes = commit.to_json();
            crate::series::check_size(&series.path(commit.sequence), bytes.len())?;
            DatasetCommit::parse(&series.path(commit.sequence), &bytes)?;
            Ok(Some(bytes))
        })?;
        let commit = match &state {
            Some(state) => DatasetCommit::parse(&series.path(state.number), &state.bytes)?,
            None => DatasetCommit::empty(dataset_id),
        };
        if let Some(state) = state.filter(|state| state.number != copied) {
            // The commit stands, whatever becomes of this: a copy that is behind is told by `verify`, and the next commit
            // writes it.
            let _ = write_copy(&series, store, dataset_id, state);
        }
        Ok((commit, made))
    }

    /// Writes the copy of a dataset's newest commit, if the process that made the commit died before that.
    pub fn renew_commit_copy(&self, dataset_id: u32, newest: u64) -> Result<()> {
        let store = &**self.store();
        if commit_copy(store, dataset_id)?.is_none_or(|copy| copy.number < newest) {
            let series = Series::of_dataset(store, dataset_id);
            if let Some(state) = series.get(newest)? {
                write_copy(&series, store, dataset_id, state)?;
            }
        }
        Ok(())
    }

    /// The commit of a dataset that is served, or 0. Asked for before its commits are looked at, none of them is older than
    /// this: a collector leaves the newest.
    pub(crate) fn served(&self, dataset_id: u32) -> Result<u64> {
        let manifest = self.current()?;
        // A dropped one is served nowhere, whatever the version says that is to be replaced.
        let lives = manifest.dataset(dataset_id).is_some_and(|dataset| !dataset.dropped);
        Ok(if lives { manifest.live_commit(dataset_id) } else { 0 })
    }
}

/// Refuses a series whose newest state is older than the one that is served.
fn check_served(series: &Series<'_>, dataset_id: u32, newest: Option<&State>, served: u64) -> Result<()> {
    let newest = newest.map_or(0, |state| state.number);
    if newest < served {
        return Err(Error::Lost { dataset_id, newest, path: series.path(served) });
    }
    Ok(())
}
