//! `trawl lake verify`.

use super::LakeArg;
use crate::exit::Status;
use crate::lake_dir;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{show_bytes, show_count};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use trawl_index::Verified;
use trawl_store::manifest::SuffixListRef;
use trawl_store::{Dataset, DatasetCommit, DatasetVerified, Error, Lake, Manifest, SegmentRef, Version, layout};
use trawl_url::SuffixList;

/// How long to wait, and how often, before a fault of manifests and their like is taken for one.
const A_MOMENT: Duration = Duration::from_millis(500);
const LOOKS: u32 = 4;

/// Checks a lake: every file against its checksum, every row against what is said of it
///
/// Manifests, their copy and dataset commits: checksums and numbers; the suffix lists they name. The Parquet files of each
/// dataset's newest and served commit: hashes, order, domains under the list the commit names, counts; those of older kept
/// versions: hashes. The index segments of all kept versions: checksums, order, counts, that postings point at rows
/// there are, and that the current version answers from the files its commits name. Also the deny list beside the datasets.
/// All faults are listed; exit code 1 when there are any. `trawl lake rebuild` makes a damaged index anew; the version
/// before it is kept, damaged, until `trawl lake gc` takes it, and is named so. Others may write and collect meanwhile:
/// what no version needs any more is no fault.
///
/// Example: trawl lake verify --lake lake
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Check the index alone, not the Parquet files: faster
    #[arg(long)]
    index_only: bool,
}

pub(super) fn run(args: &VerifyArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = match lake_dir::open(&args.lake.lake) {
        Ok(lake) => lake,
        // The newest manifest is damaged: nothing else can be looked at, but that much was found.
        Err(error) => match error.downcast_ref::<Error>() {
            Some(fault @ Error::Corrupt { .. }) => {
                tell_faults("lake", &args.lake.lake.to_string_lossy(), &[fault.to_string()], out)?;
                return Ok(Status::Findings);
            }
            _ => return Err(error),
        },
    };
    let manifest = lake.current()?;
    verify(&lake, &manifest, args, out)
}

/// Looks at the lake as `manifest` has it, which need not be the newest one any more.
fn verify(lake: &Lake, manifest: &Manifest, args: &VerifyArgs, out: &mut Output) -> anyhow::Result<Status> {
    let bar = Progress::start("verify", None, out.quiet());
    let states = |manifest: &Manifest| {
        let mut found = Vec::new();
        trawl_store::verify_states(lake, manifest, &mut |fault| found.push(fault.to_string())).map(|_| found)
    };
    let mut found = states(manifest)?;
    let lists = BTreeMap::new();
    let mut check = Check { lake, manifest, bar: &bar, faults: 0, damaged: BTreeSet::new(), lists, out };
    if !args.index_only {
        for dataset in manifest.datasets.iter().filter(|d| !d.dropped) {
            check.dataset(dataset)?;
        }
    }
    check.segments()?;
    check.served(args.index_only)?;
    for _ in 0..LOOKS {
        if found.is_empty() {
            break;
        }
        // Somebody who is at work may have been between a manifest and the record of its deny list: asked for the same
        // manifest, the record has come by then, or a later one.
        std::thread::sleep(A_MOMENT);
        found = states(manifest)?;
    }
    check.tell("lake", &args.lake.lake.to_string_lossy(), &found)?;
    let Check { faults, damaged, .. } = check;
    drop(bar);
    tell_damaged(&args.lake.lake, manifest, &damaged, out)?;
    Ok(Status::from_findings(faults > 0))
}

/// Tells which kept versions are damaged while the one that is served is not, and how to be rid of them.
fn tell_damaged(dir: &Path, manifest: &Manifest, damaged: &BTreeSet<String>, out: &mut Output) -> anyhow::Result<()> {
    let current = &manifest.current_version;
    if damaged.is_empty() || damaged.contains(current) {
        return Ok(());
    }
    // Versions after the last damaged one may stay.
    let sound = manifest.versions.iter().rev().take_while(|version| !damaged.contains(&version.version)).count();
    let command = format!("trawl lake gc --lake {} --keep-versions {sound} --grace 0s --yes", dir.display());
    let names = damaged.iter().map(String::as_str).collect::<Vec<_>>();
    let json = serde_json::json!({ "type": "damaged", "versions": names, "served": current, "command": command });
    out.fact(&json, |w| {
        let (what, they) = if names.len() == 1 { ("version", "it") } else { ("versions", "them") };
        writeln!(w, "damaged: {what} {}, kept for readers that began with {they}", names.join(", "))?;
        writeln!(w, "no fault was found in version {current}, which is served; while nothing else writes,")?;
        writeln!(w, "`{command}` takes the damaged away")
    })?;
    Ok(())
}

/// The versions that serve a commit.
fn versions_of(manifest: &Manifest, id: u32, commit: u64) -> impl Iterator<Item = String> {
    let serves = move |version: &&Version| version.commits.get(&id) == Some(&commit);
    manifest.versions.iter().filter(serves).map(|version| version.version.clone())
}

fn path_of(id: u32, commit: u64) -> String {
    layout::numbered(&layout::commits_dir(id), commit)
}

/// What was found in the files of a commit.
#[derive(Default)]
struct Looked {
    faults: Vec<String>,
    checked: Option<DatasetVerified>,
}

/// A walk through a lake.
struct Check<'a> {
    lake: &'a Lake,
    manifest: &'a Manifest,
    bar: &'a Progress,
    faults: u64,
    /// Versions in which something is wrong.
    damaged: BTreeSet<String>,
    /// Suffix lists by their hashes, or what is wrong with them: most datasets have the same.
    lists: BTreeMap<String, Result<SuffixList, String>>,
    out: &'a mut Output,
}

impl Check<'_> {
    fn tell(&mut self, kind: &str, name: &str, faults: &[String]) -> anyhow::Result<()> {
        self.faults += faults.len() as u64;
        tell_faults(kind, name, faults, self.out)
    }

    /// Whether somebody may still need a commit, now: a version that is kept, or the dataset as its newest. A collector
    /// that took its files first saw to it that nobody does.
    fn is_needed(&self, id: u32, commit: u64) -> anyhow::Result<bool> {
        let now = self.lake.current()?;
        if now.dataset(id).is_none_or(|dataset| dataset.dropped) {
            return Ok(false);
        }
        let serves = now.versions.iter().any(|version| version.commits.get(&id) == Some(&commit));
        Ok(serves
            || match self.lake.dataset_newest(id) {
                Err(Error::Lost { newest, .. }) => newest == commit,
                newest => newest?.is_some_and(|newest| newest.sequence == commit),
            })
    }

    /// Whether a commit brings what no version shows yet: a note does not.
    fn waits(&self, newest: &DatasetCommit) -> anyhow::Result<bool> {
        let id = newest.dataset_id;
        let live = self.lake.current()?.live_commit(id);
        if live == newest.sequence {
            return Ok(false);
        }
        let shown = self.lake.dataset_commit(id, live).ok().flatten();
        Ok(shown.map_or(!newest.files.is_empty(), |shown| shown.files != newest.files))
    }

    fn dataset(&mut self, dataset: &Dataset) -> anyhow::Result<()> {
        let (id, name) = (dataset.id, &dataset.info.name);
        self.bar.report(0, || format!("dataset {name}"));
        // What was looked at, and by which list: a file that two commits share is read once.
        let mut seen = BTreeSet::new();
        let served = self.manifest.live_commit(id);
        let mut before = None;
        let last = loop {
            let newest = match self.lake.dataset_newest(id) {
                Ok(Some(newest)) => newest,
                // Older versions may serve what it had.
                Ok(None) => break 0,
                Err(error) => {
                    // Nothing is known of what it serves.
                    self.damaged.insert(self.manifest.current_version.clone());
                    return self.tell("dataset", name, &[error.to_string()]);
                }
            };
            let last = newest.sequence;
            if before == Some(last) {
                // Nobody needs it, and nothing came after it: the dataset was dropped meanwhile.
                return Ok(());
            }
            let looked = self.rows(&newest, &mut seen);
            if !looked.faults.is_empty() && !self.is_needed(id, last)? {
                // Replaced while it was read: its successor counts, with the files that it kept.
                seen.clear();
                before = Some(last);
                continue;
            }
            if !looked.faults.is_empty() {
                // Files that it shares with commits before are not looked at again.
                self.damaged.extend(versions_of(self.manifest, id, last));
                self.damaged.insert(self.manifest.current_version.clone());
            }
            let waits = served != last && self.waits(&newest)?;
            self.tell_dataset(name, &newest, waits, &looked)?;
            break last;
        };
        self.older(dataset, last, served, &mut seen)
    }

    /// The commits that kept versions serve, but for `last`.
    fn older(
        &mut self,
        dataset: &Dataset,
        last: u64,
        served: u64,
        seen: &mut BTreeSet<(String, String)>,
    ) -> anyhow::Result<()> {
        let (id, name) = (dataset.id, &dataset.info.name);
        let mut bad = BTreeSet::new();
        let kept: BTreeSet<u64> = self.manifest.versions.iter().filter_map(|v| v.commits.get(&id).copied()).collect();
        for number in kept.into_iter().rev().filter(|number| *number != last) {
            let mut found = Looked::default();
            let commit = self.lake.dataset_commit(id, number);
            match &commit {
                Ok(Some(commit)) if number == served => found = self.rows(commit, seen),
                // Older versions, which cursors may still use. Their suffix list may be gone, their hashes are not.
                Ok(Some(commit)) => {
                    let list = &commit.suffix_list;
                    let unseen = commit.files.iter().filter(|f| seen.insert((f.path.clone(), list.clone())));
                    let faults = &mut found.faults;
                    let done = trawl_store::verify_files(&**self.lake.store(), unseen, &mut |fault| {
                        faults.push(fault.to_string());
                        bad.insert(fault.file);
                    });
                    faults.extend(done.err().map(|error| error.to_string()));
                }
                Ok(None) => {
                    found.faults = vec![format!("{}: a kept version serves it, but it is gone", path_of(id, number))];
                }
                Err(error) => found.faults = vec![error.to_string()],
            }
            if !found.faults.is_empty() && !self.is_needed(id, number)? {
                seen.clear();
                continue;
            }
            // A file that a later commit has too was looked at there.
            let shares_bad = |commit: &DatasetCommit| commit.files.iter().any(|file| bad.contains(&file.path));
            if !found.faults.is_empty() || commit.as_ref().is_ok_and(|c| c.as_ref().is_some_and(shares_bad)) {
                self.damaged.extend(versions_of(self.manifest, id, number));
            }
            match &commit {
                Ok(Some(commit)) => self.tell_dataset(name, commit, false, &found)?,
                _ => self.tell("dataset", name, &found.faults)?,
            }
        }
        Ok(())
    }

    /// Reads the files of a commit that were not `seen` yet, row by row, under the list the commit names.
    fn rows(&mut self, commit: &DatasetCommit, seen: &mut BTreeSet<(String, String)>) -> Looked {
        let list = &commit.suffix_list;
        let mut unseen = commit.clone();
        unseen.files.retain(|file| seen.insert((file.path.clone(), list.clone())));
        let suffixes = match unseen.files.is_empty() {
            true => Ok(SuffixList::builtin()),
            false => match self.lists.entry(list.clone()) {
                Entry::Occupied(known) => known.into_mut().as_ref(),
                Entry::Vacant(new) => {
                    new.insert(suffixes_of(self.lake, list).map_err(|error| format!("{error:#}"))).as_ref()
                }
            },
        };
        let suffixes = match suffixes {
            Ok(suffixes) => suffixes,
            Err(error) => {
                let path = path_of(commit.dataset_id, commit.sequence);
                return Looked {
                    faults: vec![format!("{path}: no list to check its rows by: {error}")],
                    checked: None,
                };
            }
        };
        let mut faults = Vec::new();
        let checked = trawl_store::verify_dataset(&**self.lake.store(), &unseen, suffixes, &mut |fault| {
            faults.push(fault.to_string());
        });
        if let Err(error) = &checked {
            faults.push(error.to_string());
        }
        Looked { faults, checked: checked.ok() }
    }

    fn tell_dataset(&mut self, name: &str, commit: &DatasetCommit, waits: bool, looked: &Looked) -> anyhow::Result<()> {
        self.tell("dataset", name, &looked.faults)?;
        let Some(checked) = &looked.checked else { return Ok(()) };
        let (rows, bytes) = (commit.rows, commit.bytes);
        let json = serde_json::json!({
            "type": "dataset", "dataset": name, "dataset_id": commit.dataset_id, "commit": commit.sequence,
            "waits": waits, "files": checked.files, "rows": rows, "faults": checked.faults,
        });
        self.out.fact(&json, |w| {
            let (rows, size) = (show_count(rows), show_bytes(bytes));
            let note = if waits { " (waits: not published)" } else { "" };
            writeln!(w, "dataset {name}: {rows} rows, {} files, {size}{note}", checked.files)
        })?;
        Ok(())
    }

    fn segments(&mut self) -> anyhow::Result<()> {
        let manifest = self.manifest;
        let mut seen = BTreeSet::new();
        let segments = manifest.versions.iter().rev().flat_map(|version| &version.segments);
        for segment in segments.filter(|segment| seen.insert(&segment.id)) {
            self.bar.report(0, || format!("segment {}", segment.id));
            let Some((found, checked)) = self.segment(segment)? else { continue };
            if !found.is_empty() {
                let has = |version: &&Version| version.segments.iter().any(|s| s.id == segment.id);
                self.damaged.extend(manifest.versions.iter().filter(has).map(|version| version.version.clone()));
            }
            self.tell("segment", &segment.id, &found)?;
            let Some(checked) = checked else { continue };
            let json = serde_json::json!({
                "type": "segment", "segment": segment.id, "files": checked.files, "domains": checked.domains,
                "pairs": checked.pairs, "rows": checked.rows, "faults": checked.faults,
            });
            self.out.fact(&json, |w| {
                let (domains, rows) = (show_count(checked.domains), show_count(checked.rows));
                writeln!(w, "segment {}: {domains} domains, {rows} rows, {} files", segment.id, checked.files)
            })?;
        }
        Ok(())
    }

    /// Whether the index of the current version answers from the files of the commits that it serves: with `alone`, also
    /// whether these are there, which nobody else has looked at then.
    fn served(&mut self, alone: bool) -> anyhow::Result<()> {
        let manifest = self.manifest;
        let Some(version) = manifest.current() else { return Ok(()) };
        let mut indexed: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        for segment in &version.segments {
            // One that cannot be read has been told, or nobody needs it any more.
            let Ok(files) = trawl_index::indexed_files(self.lake.store(), segment) else { return Ok(()) };
            for (id, path) in files {
                indexed.entry(id).or_default().insert(path);
            }
        }
        for (id, number) in &version.commits {
            let path = path_of(*id, *number);
            let found = match self.lake.dataset_commit(*id, *number) {
                Ok(Some(commit)) => {
                    let named: BTreeSet<String> = commit.files.into_iter().map(|file| file.path).collect();
                    let indexed = indexed.remove(id).unwrap_or_default();
                    let (more, less) = (indexed.difference(&named).count(), named.difference(&indexed).count());
                    let what =
                        format!("{path}: the index answers from {more} files that it does not name, and lacks {less}");
                    (more + less > 0).then_some(what)
                }
                Ok(None) if alone && self.is_needed(*id, *number)? => {
                    Some(format!("{path}: it is served, but it is gone"))
                }
                Err(error) if alone => Some(error.to_string()),
                _ => None,
            };
            if let Some(found) = found {
                self.damaged.insert(version.version.clone());
                let name = manifest.dataset(*id).map(|dataset| dataset.info.name.clone()).unwrap_or_default();
                self.tell("dataset", &name, &[found])?;
            }
        }
        Ok(())
    }

    /// Faults of a segment; `None` if no version has it any more.
    fn segment(&self, segment: &SegmentRef) -> anyhow::Result<Option<(Vec<String>, Option<Verified>)>> {
        let mut reference = segment.clone();
        loop {
            let mut found = Vec::new();
            let fault = &mut |fault: trawl_index::Error| found.push(fault.to_string());
            let checked = trawl_index::verify_segment(self.lake.store(), &reference, fault);
            if let Err(error) = &checked {
                found.push(error.to_string());
            }
            if found.is_empty() {
                return Ok(Some((found, checked.ok())));
            }
            let now = self.lake.current()?;
            let mut segments = now.versions.iter().rev().flat_map(|version| &version.segments);
            match segments.find(|other| other.id == reference.id) {
                None => return Ok(None),
                // It answers for fewer datasets than it did, whose files may be gone.
                Some(other) if other.masked != reference.masked => reference = other.clone(),
                Some(_) => return Ok(Some((found, checked.ok()))),
            }
        }
    }
}

fn suffixes_of(lake: &Lake, hash: &str) -> anyhow::Result<SuffixList> {
    let list = SuffixListRef { path: layout::suffix_list(hash)?, hash: hash.to_owned() };
    Ok(SuffixList::parse(std::str::from_utf8(&lake.stored_suffix_list(&list)?)?)?)
}

fn tell_faults(kind: &str, name: &str, faults: &[String], out: &mut Output) -> anyhow::Result<()> {
    for fault in faults {
        let json = serde_json::json!({ "type": "fault", kind: name, "fault": fault });
        out.fact(&json, |w| writeln!(w, "fault: {fault}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
