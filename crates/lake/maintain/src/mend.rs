//! Records of a lake that are lost or damaged, written again from others that tell the same.
//!
//! ```text
//! manifest, checkpoint, deny list   from each other                                      trawl_store::Lake::mend_states
//! newest commit of a dataset        from its copy; else from the index, as those below
//! a commit that a version serves    from the file tables of that version's segments
//! copy of a commit                  from the commit
//! ```
//! The index knows which files a commit names, and what rows, lengths and hashes these have. It does not know from which
//! sources they came: that is only in the commit and its copy.

use crate::event::Event;
use crate::keeper::suffixes;
use crate::{Keeper, Result};
use std::collections::{BTreeMap, BTreeSet};
use trawl_rows::{SCHEMA, describe};
use trawl_store::{
    CommitMode, DataFile, Dataset, DatasetCommit, Error, Lake, Manifest, RejectsFile, Series, Version, commit_copy,
    layout, newest_commit, object_hash,
};

impl Keeper<'_> {
    /// Writes again what is lost or damaged of the lake's own records. What cannot be found again stays as it is.
    pub fn mend(&self, lake: &Lake) -> Result<()> {
        for path in lake.mend_states((self.now)(), &self.writer())? {
            self.fact(Event::Mended { path, from: "manifest", sources_forgotten: false })?;
        }
        let manifest = lake.current()?;
        for dataset in &manifest.datasets {
            let mend = Mend { keeper: self, lake, manifest: &manifest, dataset };
            mend.served()?;
            mend.newest()?;
        }
        Ok(())
    }
}

/// A dataset whose records are looked through.
struct Mend<'a> {
    keeper: &'a Keeper<'a>,
    lake: &'a Lake,
    manifest: &'a Manifest,
    dataset: &'a Dataset,
}

impl Mend<'_> {
    fn series(&self) -> Series<'_> {
        Series::of_dataset(&**self.lake.store(), self.dataset.id)
    }

    /// A commit as its own file has it.
    fn stored(&self, number: u64) -> Result<Option<DatasetCommit>> {
        let (series, path) = (self.series(), self.series().path(number));
        let Some(state) = series.get(number)? else { return Ok(None) };
        let read = DatasetCommit::parse(&path, &state.bytes).ok();
        Ok(read.filter(|commit| (commit.dataset_id, commit.sequence) == (self.dataset.id, number)))
    }

    fn wrote(&self, path: String, from: &'static str, sources_forgotten: bool) -> Result<()> {
        self.keeper.fact(Event::Mended { path, from, sources_forgotten })
    }

    /// The newest commit and its copy, each from the other.
    fn newest(&self) -> Result<()> {
        let (store, id) = (&**self.lake.store(), self.dataset.id);
        let copy = commit_copy(store, id)?;
        let Some(newest) = newest_commit(store, id)? else { return Ok(()) };
        // Later ones are lost, and nothing continues without them unless `--accept-loss` is given.
        if !self.dataset.dropped && newest.number < self.manifest.live_commit(id) {
            return Ok(());
        }
        let path = self.series().path(newest.number);
        if self.stored(newest.number)?.is_none() {
            let Some(copy) = copy.filter(|copy| copy.number == newest.number) else { return Ok(()) };
            store.put(&path, &copy.bytes)?;
            self.wrote(path, "copy", false)?;
        } else if let Some(own) = self.series().get(newest.number)?
            && copy.is_none_or(|copy| copy.bytes != own.bytes)
        {
            store.put(&layout::commit_copy(id), &own.bytes)?;
            self.wrote(layout::commit_copy(id), "commit", false)?;
        }
        // Damaged ones that no version serves are useless.
        let served: BTreeSet<u64> =
            self.manifest.versions.iter().filter_map(|version| version.commits.get(&id).copied()).collect();
        for (path, number) in self.series().listed()? {
            if number < newest.number && !served.contains(&number) && self.stored(number)?.is_none() {
                store.delete(&path)?;
                self.wrote(path, "commit", false)?;
            }
        }
        Ok(())
    }

    /// Commits that versions serve, the newest version first.
    fn served(&self) -> Result<()> {
        let (store, id) = (&**self.lake.store(), self.dataset.id);
        let mut looked = BTreeSet::new();
        for version in self.manifest.versions.iter().rev() {
            let Some(number) = version.commits.get(&id).copied().filter(|number| looked.insert(*number)) else {
                continue;
            };
            let copied = commit_copy(store, id)?.is_some_and(|copy| copy.number == number);
            if copied || self.stored(number)?.is_some() {
                continue;
            }
            // A collector may have forgotten those versions meanwhile, and taken it.
            let is_served = |version: &Version| version.commits.get(&id) == Some(&number);
            if !self.lake.current()?.versions.iter().any(is_served) {
                continue;
            }
            match self.indexed(version, number) {
                Ok((commit, forgotten)) => {
                    let path = self.series().path(number);
                    store.put(&path, &commit.to_json())?;
                    self.wrote(path, "index", forgotten)?;
                }
                // Then it is reported as lost, unless it is not needed.
                Err(error @ crate::Error::Store(Error::Cancelled)) => return Err(error),
                Err(error) => {
                    let path = self.series().path(number);
                    let text = format!("{path}: cannot be found again from the index: {error}");
                    (self.keeper.tell)(Event::Remark(text));
                }
            }
        }
        Ok(())
    }

    /// The commit that a version serves, and whether its sources are not known.
    fn indexed(&self, version: &Version, number: u64) -> Result<(DatasetCommit, bool)> {
        let (store, id) = (self.lake.store(), self.dataset.id);
        let mut entries = Vec::new();
        for segment in version.segments.iter().filter(|segment| segment.datasets.contains(&id)) {
            let table = trawl_index::file_table(store, segment)?;
            entries.extend(table.into_iter().filter(|file| file.dataset_id == id));
        }
        // Other commits describe most of the files.
        let mut others = BTreeMap::new();
        for (_, other) in self.series().listed()? {
            if let Some(commit) = self.stored(other)? {
                others.insert(other, commit);
            }
        }
        let known: BTreeMap<&str, &DataFile> =
            others.values().flat_map(|commit| &commit.files).map(|file| (file.path.as_str(), file)).collect();
        let list = suffixes(self.lake, self.manifest)?;
        let mut files = Vec::with_capacity(entries.len());
        for entry in entries {
            self.keeper.cancel.check()?;
            let told = DataFile {
                path: entry.path,
                prefix: entry.prefix,
                added: entry.added,
                rows: entry.rows,
                row_groups: entry.row_groups,
                bytes: entry.bytes,
                hash: entry.hash,
                schema: SCHEMA,
                min_domain: String::new(),
                max_domain: String::new(),
                min_key: String::new(),
                max_key: String::new(),
                distinct_urls: 0,
            };
            files.push(match known.get(told.path.as_str()).filter(|file| file.hash == told.hash) {
                Some(file) => (*file).clone(),
                None => describe(&**store, &told, id, &list)?,
            });
        }
        let before = others.range(..number).next_back().map(|(_, commit)| commit);
        let near = before.or_else(|| others.values().next());
        // A source of the commit before is known while all that came with it is there.
        let there: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let same = before.filter(|before| before.files.iter().all(|file| there.contains(file.path.as_str())));
        let forgotten = same.is_none_or(|before| before.files.len() < files.len()) && !files.is_empty();
        let own_list = self.manifest.suffix_list.as_ref().map(|list| list.hash.clone());
        let mut commit = DatasetCommit {
            sequence: number,
            written: version.version.clone(),
            writer: self.keeper.writer(),
            mode: CommitMode::Rewrite,
            suffix_list: near.map(|near| near.suffix_list.clone()).or(own_list).unwrap_or_default(),
            sources: same.map(|before| before.sources.clone()).unwrap_or_default(),
            revoked: near.map(|near| near.revoked.clone()).unwrap_or_default(),
            rejects: self.rejects()?,
            about: Some(self.dataset.info.clone()),
            files,
            ..DatasetCommit::empty(id)
        };
        commit.settle();
        Ok((commit, forgotten))
    }

    /// What rejects files there are: from now on they are known by these hashes.
    fn rejects(&self) -> Result<BTreeMap<String, RejectsFile>> {
        let store = &**self.lake.store();
        let mut found = BTreeMap::new();
        for object in store.list(&layout::rejects_dir(self.dataset.id))? {
            let hash = object_hash(store, &object.path, object.len)?;
            found.insert(object.path, RejectsFile { bytes: object.len, hash });
        }
        Ok(found)
    }
}
