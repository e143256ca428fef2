//! The index anew, from the Parquet files and commits alone; also under another suffix list.

use crate::event::Event;
use crate::keeper::{datasets, parse_list};
use crate::loss::{LostCommits, accept_loss, lost_commits};
use crate::restore::{Remains, remains, restore, stored_list};
use crate::{Error, Keeper, Result};
use std::sync::Arc;
use trawl_index::Published;
use trawl_ingest::{Files, Rewrite};
use trawl_store::manifest::SuffixListRef;
use trawl_store::{Heartbeat, Lake, Manifest, Store, layout, suffix_list_hash};
use trawl_url::SuffixList;

/// Times a dataset is rewritten again because somebody added to it meanwhile, or all because the list was changed.
const MAX_ATTEMPTS: u32 = 5;

/// What to make of a lake.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rebuild<'a> {
    /// The public suffix list that becomes the lake's: all rows are written again under it.
    pub list: Option<&'a [u8]>,
    /// Goes on without commits that are served and gone: what they brought is lost.
    pub accept_loss: bool,
}

/// What became of it.
#[derive(Debug)]
pub struct Rebuilt {
    /// The lake.
    pub lake: Lake,
    /// The new version and its segment.
    pub published: Published,
    /// The suffix list its rows are cut by.
    pub list: SuffixListRef,
    /// Datasets that went on without commits that are lost.
    pub lost: usize,
}

impl Keeper<'_> {
    /// Builds the index anew. If the numbered manifests are lost, or the newest is damaged, the lake is made anew first, of
    /// what its commits and the youngest manifest tell.
    pub fn rebuild(&self, store: Arc<dyn Store>, what: &Rebuild<'_>) -> Result<Rebuilt> {
        if let Some(list) = what.list {
            parse_list(list)?;
        }
        let (lake, lost) = if is_lost(&*store)? || is_damaged(&store)? {
            self.restore(store, what)?
        } else {
            let lake = Lake::open(store)?;
            if let Some(deny) = lake.recover_deny((self.now)(), &self.writer())? {
                self.fact(Event::DenyRecovered { deny })?;
            }
            self.mend(&lake)?;
            let lost = losses(what, &**lake.store(), &*lake.current()?)?;
            (lake, lost)
        };
        for lost in &lost {
            self.go_on(&lake, lost)?;
        }
        let writer = self.writer();
        let mut attempts = 0;
        let (list, published) = loop {
            let list = match what.list {
                Some(bytes) => {
                    self.spare(&lake, layout::SUFFIX_LISTS, &writer)?;
                    lake.put_suffix_list(bytes)?
                }
                None => self.own_list(&lake)?,
            };
            attempts += 1;
            match self.build(&lake, &list, what, &writer) {
                // Somebody brought in rows cut by another list, or changed the lake's own.
                Err(error @ Error::Index(_)) if attempts < MAX_ATTEMPTS && error.is_overtaken() => {}
                built => break (list, built?),
            }
        };
        lake.end_beat(&writer)?;
        Ok(Rebuilt { lake, published, list, lost: lost.len() })
    }

    /// Goes on without commits that are lost, and tells what is left.
    fn go_on(&self, lake: &Lake, lost: &LostCommits) -> Result<()> {
        let went_on = accept_loss(lake, (self.now)(), &self.writer(), lost)?;
        let (dataset_id, commit) = (lost.dataset_id, &went_on.commit);
        let manifest = lake.current()?;
        self.fact(Event::Lost {
            dataset: manifest.dataset(dataset_id).map(|dataset| dataset.info.name.clone()).unwrap_or_default(),
            dataset_id,
            served: lost.served,
            left: lost.newest,
            commit: commit.sequence,
            rows: commit.rows,
            files_gone: went_on.files_gone,
        })
    }

    /// Writes what is cut by another list than `list`, and makes the index of all.
    fn build(&self, lake: &Lake, list: &SuffixListRef, what: &Rebuild<'_>, writer: &str) -> Result<Published> {
        // Datasets that were cut by another list: all of them with a new list, else those an interrupted change left.
        for (id, name) in datasets(&*lake.current()?, None) {
            self.recut(lake, id, &name, list)?;
            if what.list.is_some() {
                self.spare(lake, &list.path, writer)?;
            }
        }
        self.begins("index");
        let (options, builder, progress) = (self.build_options()?, self.writer(), |p| self.progress(p));
        let new = what.list.map(|_| list);
        Ok(trawl_index::rebuild(lake, new, self.now, &builder, &options, &progress)?)
    }

    /// Writes a dataset again under `list`, unless it is already.
    fn recut(&self, lake: &Lake, dataset_id: u32, dataset: &str, list: &SuffixListRef) -> Result<()> {
        let mut refused = Ok(());
        for _ in 0..MAX_ATTEMPTS {
            let Some(commit) = lake.dataset_newest(dataset_id)? else { return Ok(()) };
            if commit.suffix_list == list.hash || commit.files.is_empty() {
                return Ok(());
            }
            self.begins(format!("rewrite {dataset}"));
            let what = Rewrite { keep: &|_| true, files: Files::All, suffix_list: Some(list) };
            match self.rewrite(lake, dataset_id, &what) {
                // Somebody added to the dataset meanwhile: their rows too.
                Err(error) if error.is_overtaken() => {
                    refused = Err(Error::Refused(format!("dataset {dataset}: {error}")));
                }
                report => {
                    let (dataset, report) = (dataset.to_owned(), report?);
                    return self.fact(Event::Files { dataset, dataset_id, dry_run: false, report, recut: true });
                }
            }
        }
        refused
    }

    /// Makes the manifest of a lake anew.
    fn restore(&self, store: Arc<dyn Store>, what: &Rebuild<'_>) -> Result<(Lake, Vec<LostCommits>)> {
        let remains = remains(&*store)?;
        let lost_commits = match &remains.manifest {
            Some(manifest) => losses(what, &*store, manifest)?,
            None => Vec::new(),
        };
        let list = match what.list {
            Some(list) => list.to_vec(),
            None => list_of(&*store, &remains)?,
        };
        let lake = restore(store, (self.now)(), &self.writer(), &list, &remains)?;
        let (from, lost): (_, &[&str]) = match &remains.manifest {
            Some(_) => ("manifest", &[]),
            None => ("commits", &["versions"]),
        };
        let live = remains.datasets.iter().filter(|dataset| !dataset.dropped);
        self.fact(Event::Restored {
            from,
            written: remains.manifest.as_ref().map(|manifest| manifest.written.clone()),
            datasets: live.map(|dataset| (dataset.id, dataset.info.name.clone())).collect(),
            nameless: remains.nameless.clone(),
            younger: remains.younger.clone(),
            deny: lake.current()?.deny.len(),
            lost,
        })?;
        Ok((lake, lost_commits))
    }

    /// Keeps a collector from taking a list that is not the lake's yet.
    fn spare(&self, lake: &Lake, path: &str, writer: &str) -> Result<()> {
        let (writer, act) = (writer.to_owned(), "rebuild".to_owned());
        let prefixes = vec![path.to_owned(), format!("{}/suffix_lists/", layout::DATASETS)];
        Ok(lake.beat(&Heartbeat { writer, act, beat: (self.now)(), prefixes })?)
    }

    /// The lake's list, written anew if it is lost or damaged and the one compiled in.
    fn own_list(&self, lake: &Lake) -> Result<SuffixListRef> {
        let none = || Error::Refused("the lake has no suffix list: name one with --psl".into());
        let list = lake.current()?.suffix_list.clone().ok_or_else(none)?;
        let error = match lake.stored_suffix_list(&list) {
            // Written again where it is lost: this may have been its copy.
            Ok(bytes) => return Ok(lake.put_suffix_list(&bytes)?),
            Err(error) if error.is_not_found() || matches!(error, trawl_store::Error::Corrupt { .. }) => error,
            Err(error) => return Err(error.into()),
        };
        let builtin = SuffixList::builtin().text().as_bytes();
        if suffix_list_hash(builtin) != list.hash {
            return Err(Error::Refused(format!(
                "{error}; it is not the one compiled in: name it with --psl FILE (with another the rows are written again)"
            )));
        }
        (self.tell)(Event::Remark(format!("{error}: it is the one compiled in, and written anew")));
        Ok(lake.put_suffix_list(builtin)?)
    }
}

/// Whether there are datasets in a store but no manifest of the lake they are of.
pub fn is_lost(store: &dyn Store) -> Result<bool> {
    let has_state = |dir: &str| Ok::<_, Error>(store.list(dir)?.iter().any(|o| layout::number_of(&o.path).is_some()));
    let is_commit = |path: &str| layout::dataset_of(path).is_some() && layout::number_of(path).is_some();
    // In this order: somebody may be making the lake just now.
    Ok(store.list(layout::DATASETS)?.iter().any(|object| is_commit(&object.path)) && !has_state(layout::MANIFESTS)?)
}

/// Whether the newest manifest of a lake is there but cannot be read.
fn is_damaged(store: &Arc<dyn Store>) -> Result<bool> {
    match Lake::open(store.clone()) {
        Err(trawl_store::Error::Corrupt { path, .. }) => Ok(path.starts_with(layout::MANIFESTS)),
        _ => Ok(false),
    }
}

/// Datasets that have lost commits which `manifest` serves, if that is to be accepted.
fn losses(what: &Rebuild<'_>, store: &dyn Store, manifest: &Manifest) -> Result<Vec<LostCommits>> {
    let lost = lost_commits(store, manifest)?;
    match lost.first().filter(|_| !what.accept_loss) {
        Some(first) => Err(first.error().into()),
        None => Ok(lost),
    }
}

/// The suffix list the rows were cut by: as it still lies in the lake, or the one compiled in.
fn list_of(store: &dyn Store, remains: &Remains) -> Result<Vec<u8>> {
    let builtin = SuffixList::builtin().text().as_bytes();
    let (wanted, own) = (remains.wanted_lists(), suffix_list_hash(builtin));
    for hash in &wanted {
        if let Some(bytes) = stored_list(store, hash)? {
            return Ok(bytes);
        }
    }
    if !wanted.is_empty() && !wanted.contains(&own.as_str()) {
        return Err(Error::Refused(format!(
            "the rows were cut into domains by suffix list {}, which was lost with index/ and is not the one compiled in \
             ({own}): name it with --psl FILE (with another list the rows are written again)",
            wanted.join(", ")
        )));
    }
    Ok(builtin.to_vec())
}
