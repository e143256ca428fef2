//! Checks the states of a lake: manifests, their copy, dataset commits, suffix lists; and files by their hashes.

use std::collections::{BTreeMap, BTreeSet};
use trawl_store::manifest::SuffixListRef;
use trawl_store::{
    DataFile, DatasetCommit, DenyRecord, Error, Fault, Lake, MAX_STATE_BYTES, Manifest, RejectsFile, Result, Series,
    Store, layout, object_hash, read_list, read_list_copy,
};

/// How often a copy is read whose manifest is gone each time.
const MAX_LOOKS: u32 = 100;

fn say(file: &str, expected: &'static str, found: impl ToString) -> Fault {
    Fault { file: file.to_owned(), row: None, expected, found: found.to_string() }
}

/// Reads every manifest and every commit of the datasets `manifest` (the newest there was a moment ago) has: checksum,
/// number, dataset; the copy of the manifest; and that each suffix list is there by which served and newest rows were cut.
/// Tells how many states that were; an error is a store that cannot be read.
pub fn verify_states(lake: &Lake, manifest: &Manifest, fault: &mut dyn FnMut(Fault)) -> Result<u64> {
    let store = &**lake.store();
    let mut count = 0;
    each_state(store, layout::MANIFESTS, &mut count, fault, &mut |path, number, bytes| {
        let state = lake.parse_manifest(path, bytes).map_err(|e| say(path, "a manifest", e))?;
        let expected = "the number of its name as its sequence";
        if state.sequence == number { Ok(()) } else { Err(say(path, expected, state.sequence)) }
    })?;
    verify_gaps(lake, fault)?;
    verify_checkpoints(lake, manifest, &mut count, fault)?;
    verify_copy(lake, fault)?;
    verify_beats(lake, &mut count, fault)?;
    verify_deny(lake, manifest, &mut count, fault)?;
    let mut rejects: BTreeMap<String, RejectsFile> = BTreeMap::new();
    let mut lists: BTreeSet<String> = manifest.suffix_list.iter().map(|list| list.hash.clone()).collect();
    for dataset in &manifest.datasets {
        verify_commit_copy(lake, dataset.id, fault)?;
        let dir = layout::commits_dir(dataset.id);
        let newest = Series::new(store, &*dir).highest_listed()?.unwrap_or(0);
        let live = manifest.live_commit(dataset.id);
        each_state(store, &dir, &mut count, fault, &mut |path, number, bytes| {
            let commit = DatasetCommit::parse(path, bytes).map_err(|e| say(path, "a dataset commit", e))?;
            if number == newest {
                rejects.extend(commit.rejects.clone());
            }
            if (number == newest || number == live) && !commit.files.is_empty() {
                lists.insert(commit.suffix_list);
            }
            if (commit.dataset_id, commit.sequence) == (dataset.id, number) {
                return Ok(());
            }
            let found = format!("dataset {}, number {}", commit.dataset_id, commit.sequence);
            Err(say(path, "the dataset and number of its path", found))
        })?;
    }
    for (path, file) in rejects {
        let length = match store.len(&path) {
            // Purged since, if the newest commit does not name it any more.
            Err(error) if error.is_not_found() => {
                let newest = layout::dataset_of(&path).map(|id| lake.dataset_newest(id));
                if newest.is_some_and(|newest| newest.is_ok_and(|n| n.is_some_and(|n| n.rejects.contains_key(&path)))) {
                    fault(say(&path, "the rejects that its dataset's commit names", "none"));
                }
                continue;
            }
            length => length?,
        };
        if length != file.bytes || object_hash(store, &path, length)? != file.hash {
            fault(say(&path, "the bytes its dataset's commit has the hash of", format!("{length} others")));
        }
    }
    for hash in lists {
        let path = match layout::suffix_list(&hash) {
            Ok(path) => path,
            Err(error) => {
                fault(say(layout::SUFFIX_LISTS, "the hash of a suffix list", error));
                continue;
            }
        };
        let named = SuffixListRef { path: path.clone(), hash };
        match read_list(store, &named) {
            // Collected, after all rows were cut by another.
            Err(error) if error.is_not_found() && !is_needed(lake, manifest, &named.hash)? => continue,
            Err(error) => fault(say(&path, "a suffix list that rows were cut by", error)),
            Ok(_) => {}
        }
        if read_list_copy(store, &named.hash)?.is_none() {
            let copy = layout::suffix_list_copy(&named.hash)?;
            let expected = "a copy of a suffix list that rows were cut by (`trawl lake rebuild` writes it)";
            let found = if store.exists(&copy)? { "another text" } else { "none" };
            if is_needed(lake, manifest, &named.hash)? {
                fault(say(&copy, expected, found));
            }
        }
    }
    Ok(count)
}

/// Whether rows of the lake are cut by a suffix list now, `before` having been its newest manifest when it was asked last.
fn is_needed(lake: &Lake, before: &Manifest, hash: &str) -> Result<bool> {
    let now = lake.current()?;
    if now.sequence == before.sequence || now.suffix_list.as_ref().is_some_and(|list| list.hash == hash) {
        return Ok(true);
    }
    for dataset in now.datasets.iter().filter(|dataset| !dataset.dropped) {
        // What cannot be read may need anything.
        if !matches!(lake.dataset_newest(dataset.id), Ok(newest) if newest.as_ref().is_none_or(|n| n.suffix_list != hash))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Looks at a record by its path, number and bytes.
type Check<'a> = dyn FnMut(&str, u64, &[u8]) -> std::result::Result<(), Fault> + 'a;

fn each_state(
    store: &dyn Store,
    dir: &str,
    count: &mut u64,
    fault: &mut dyn FnMut(Fault),
    check: &mut Check<'_>,
) -> Result<()> {
    for (path, number) in Series::new(store, dir).listed()? {
        let bytes = match store.get(&path, MAX_STATE_BYTES) {
            Ok(bytes) => bytes,
            // Collected since it was listed.
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        *count += 1;
        if let Err(found) = check(&path, number, &bytes) {
            fault(found);
        }
    }
    Ok(())
}

/// Whether a manifest in the middle is lost: a reader that has seen the one before would take that for the newest.
fn verify_gaps(lake: &Lake, fault: &mut dyn FnMut(Fault)) -> Result<()> {
    let series = Series::new(&**lake.store(), layout::MANIFESTS);
    let numbers: Vec<u64> = series.listed()?.into_iter().map(|(_, number)| number).collect();
    for pair in numbers.windows(2) {
        let &[a, b] = pair else { continue };
        for lost in (a.saturating_add(1)..b).take(100) {
            let expected = "a manifest, since there are others before and after it (`trawl lake rebuild` writes it)";
            fault(say(&series.path(lost), expected, "none"));
        }
    }
    Ok(())
}

/// Signs of life: one that cannot be read keeps collectors from their work.
fn verify_beats(lake: &Lake, count: &mut u64, fault: &mut dyn FnMut(Fault)) -> Result<()> {
    match lake.heartbeats() {
        Ok(beats) => *count += beats.len() as u64,
        Err(Error::Corrupt { path, expected, found, .. }) => {
            let found = format!("{found}; delete it if no process is writing to the lake");
            fault(say(&path, expected, found));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The copy of a dataset's newest commit: the only other record of which sources the dataset has taken.
fn verify_commit_copy(lake: &Lake, id: u32, fault: &mut dyn FnMut(Fault)) -> Result<()> {
    let store = &**lake.store();
    let path = layout::commit_copy(id);
    let copy = match store.get(&path, MAX_STATE_BYTES) {
        Err(error) if error.is_not_found() => None,
        bytes => Some(bytes?),
    };
    // Listed after the copy was read: it is there, or lost.
    let series = Series::of_dataset(store, id);
    let newest = series.highest_listed()?.unwrap_or(0);
    let expected = "a copy of the newest commit (the next commit or `trawl lake rebuild` writes it)";
    let Some(copy) = copy else {
        if newest > 0 {
            fault(say(&path, expected, "none"));
        }
        return Ok(());
    };
    let commit = match DatasetCommit::parse(&path, &copy) {
        Ok(commit) => commit,
        Err(error) => {
            fault(say(&path, expected, error));
            return Ok(());
        }
    };
    // It may be behind: one who was cut after a commit has not written it, and the next does.
    if commit.sequence > newest {
        let lost = series.path(commit.sequence);
        fault(say(&lost, "the commit that is copied (the next commit or `trawl lake rebuild` writes it)", "none"));
    } else if commit.sequence == newest
        && let Some(state) = series.get(newest)?
        // One that cannot be read is reported with the others of its kind.
        && DatasetCommit::parse(&series.path(newest), &state.bytes).is_ok_and(|own| own != commit)
    {
        fault(say(&path, "the same as in the commit it is a copy of", "something else"));
    }
    Ok(())
}

/// The records of the deny list, and that the newest is the list of `newest` or a later manifest that is there.
fn verify_deny(lake: &Lake, newest: &Manifest, count: &mut u64, fault: &mut dyn FnMut(Fault)) -> Result<()> {
    for object in lake.store().list("index/deny")?.into_iter().filter(|object| layout::is_ours(&object.path)) {
        let bytes = match lake.store().get(&object.path, MAX_STATE_BYTES) {
            Err(error) if error.is_not_found() => continue,
            bytes => bytes?,
        };
        *count += 1;
        let hash = trawl_store::suffix_list_hash(&bytes);
        if layout::deny_object(&hash)? != object.path {
            fault(say(&object.path, "the deny list of that hash", format!("hash {hash}")));
        }
    }
    if let Some(path) = newest.deny_object()
        && !lake.store().exists(&path)?
        && lake.manifest_and_base(newest.sequence)?.is_some_and(|(_, base)| base.is_some())
    {
        let expected = "the deny list of the newest manifest (it is read from its record meanwhile)";
        fault(say(&path, expected, "none"));
    }
    let mut last = None;
    each_state(&**lake.store(), layout::DENY, count, fault, &mut |path, _, bytes| {
        last = None;
        let record = DenyRecord::parse(path, bytes).map_err(|e| say(path, "a record of the deny list", e))?;
        last = Some((path.to_owned(), record));
        Ok(())
    })?;
    let expected = "the deny list of the newest manifest (the next commit writes it)";
    match last {
        // Somebody committed since the manifest was read; or that one is lost.
        Some((path, record)) if record.manifest > newest.sequence => {
            let now = lake.current()?.sequence;
            if record.manifest > now {
                let found = format!("that of manifest {}, which is gone: the newest is {now}", record.manifest);
                fault(say(
                    &path,
                    "the deny list of a manifest that is there (`trawl lake rebuild` continues with it)",
                    found,
                ));
            }
        }
        Some((path, record)) if record.deny != newest.deny => {
            fault(say(&path, expected, format!("that of manifest {}", record.manifest)));
        }
        None if !newest.deny.is_empty() => fault(say(layout::DENY, expected, "none")),
        _ => {}
    }
    Ok(())
}

/// The checkpoints that are there, each by itself; and that those are there to which manifests refer. A lost one is
/// read from the manifest of its number, which is still reported here: the next loss could not be repaired.
fn verify_checkpoints(lake: &Lake, newest: &Manifest, count: &mut u64, fault: &mut dyn FnMut(Fault)) -> Result<()> {
    let store = &**lake.store();
    let mut there = BTreeSet::new();
    for object in store.list(layout::CHECKPOINTS)? {
        let Some(number) = layout::checkpoint_number(&object.path) else { continue };
        there.insert(number);
        let packed = match store.get(&object.path, MAX_STATE_BYTES) {
            // Collected since it was listed.
            Err(error) if error.is_not_found() => continue,
            packed => packed?,
        };
        *count += 1;
        let text = trawl_store::manifest::unpack_checkpoint(&object.path, &packed);
        match text.and_then(|text| lake.parse_manifest(&object.path, &text)) {
            Ok(state) if state.sequence == number => {}
            Ok(state) => fault(say(&object.path, "the number of its name as its sequence", state.sequence)),
            Err(error) => fault(say(&object.path, "a checkpoint", error)),
        }
    }
    let base = lake.manifest_and_base(newest.sequence).ok().flatten().and_then(|(_, base)| base);
    if let Some(base) = base.filter(|base| !there.contains(&base.sequence))
        && !store.exists(&layout::checkpoint(base.sequence))?
    {
        let expected = "the checkpoint of the newest manifest (it is read from the manifest of its number meanwhile)";
        fault(say(&layout::checkpoint(base.sequence), expected, "none"));
    }
    Ok(())
}

/// The copy: it may be behind, as one who commits writes it last, but those who read it go on from its number.
fn verify_copy(lake: &Lake, fault: &mut dyn FnMut(Fault)) -> Result<()> {
    let store = &**lake.store();
    let path = layout::MANIFEST_COPY;
    let anew = "a copy of a manifest that is there (the next commit writes one)";
    let mut before = None;
    for _ in 0..MAX_LOOKS {
        let bytes = match store.get(path, MAX_STATE_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => {
                fault(say(path, anew, "none"));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let copy = match lake.parse_manifest(path, &bytes) {
            Ok(copy) => copy,
            Err(error) => {
                fault(say(path, anew, error));
                return Ok(());
            }
        };
        let numbered = layout::numbered(layout::MANIFESTS, copy.sequence);
        match store.get(&numbered, MAX_STATE_BYTES) {
            Ok(original) if original == bytes => {}
            // One that cannot be read is reported with the others of its kind.
            Ok(original) if lake.parse_manifest(&numbered, &original).map_or(true, |original| original == copy) => {}
            Ok(_) => fault(say(path, anew, format!("another manifest of number {}", copy.sequence))),
            // Collected, if there is a newer copy now.
            Err(error) if error.is_not_found() && before != Some(copy.sequence) => {
                before = Some(copy.sequence);
                continue;
            }
            Err(error) if error.is_not_found() => {
                let found = "none (the next commit writes it anew)";
                fault(say(&numbered, "the manifest that index/manifest.json is a copy of", found));
            }
            Err(error) => return Err(error),
        }
        return Ok(());
    }
    // A collector that is faster than this reader has written it each time.
    Ok(())
}

/// Checks files by length and hash alone.
pub fn verify_files<'a>(
    store: &dyn Store,
    files: impl IntoIterator<Item = &'a DataFile>,
    fault: &mut dyn FnMut(Fault),
) -> Result<u64> {
    let mut count = 0;
    for file in files {
        count += 1;
        match store.len(&file.path) {
            Err(error) if error.is_not_found() => fault(say(&file.path, "a file that a kept version serves", "none")),
            Err(error) => return Err(error),
            Ok(length) if length != file.bytes => {
                fault(say(&file.path, "as many bytes as its commit says", length));
            }
            Ok(length) => {
                let found = object_hash(store, &file.path, length)?;
                if found != file.hash {
                    fault(say(&file.path, "the hash its commit says", found));
                }
            }
        }
    }
    Ok(count)
}
