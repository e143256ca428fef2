//! The loss of any one of a lake's own records loses nothing, and no damage to any of its files is answered.
//!
//! Each kind of file is lost in turn, then damaged in turn. What is asked meanwhile is answered as before or refused with the
//! name of the file; `verify` names it; `rebuild` makes all of it good but for rows and rejects, which nothing else has.

mod common;

use bytes::Bytes;
use common::{Dice, Fixture, hosts, records};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use trawl_ingest::Mode;
use trawl_maintain::{Event, GcSettings, Keeper, Rebuild, collect};
use trawl_model::{UnixMillis, UrlRecord};
use trawl_query::{DomainAnswer, Filter, Lake, Options, Page, Pinned, Principal, QueryError, UrlItem};
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{BlockCache, CachedStore, DatasetInfo, Heartbeat, KnownSource, MemStore, Sizes, Store, layout};

type Files = BTreeMap<String, Bytes>;

const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const SMALL: Sizes = Sizes { whole: 2_000, relative: 3_000 };

/// A lake with every kind of file: several versions and segments, a dataset that was replaced, one that was dropped, rejects,
/// checkpoints, deny lists short and long, a writer at work.
fn every_kind() -> Files {
    let mut fixture = Fixture::new();
    fixture.lake = trawl_store::Lake::open(fixture.store.clone()).unwrap().with_sizes(SMALL);
    let mut dice = Dice(7);
    let hosts = hosts(&mut dice, 6);
    let ids: Vec<u32> = ["a", "b", "c", "d"].map(|name| fixture.register(DatasetInfo::named(name))).into();
    for (n, id) in [0, 1, 0, 2, 3, 1].map(|n| ids[n]).into_iter().enumerate() {
        let mut rows = records(&mut dice, &hosts, 40, id % 2 == 0);
        rows.push(UrlRecord::bare(format!("mailto:nobody-{n}")));
        fixture.ingest(id, rows, |settings| {
            if n == 5 {
                settings.mode = Mode::Replace;
            }
        });
        fixture.publish();
        let deny = |target| Deny { target, since: NOW.to_string(), reason: None };
        let change = |manifest: &mut trawl_store::Manifest| {
            // Rows of the last one are there; others would be left out by the ingests that follow.
            let few = [(0, "unheard-of.example"), (5, "a.org")].into_iter().find(|(at, _)| *at == n);
            let few = few.map(|(_, domain)| DenyTarget::Domain(domain.into()));
            let many = (n == 2).then(|| (0..90).map(|n| DenyTarget::Domain(format!("denied-{n}.example"))));
            manifest.deny.extend(few.into_iter().chain(many.into_iter().flatten()).map(deny));
            Ok(())
        };
        fixture.lake.commit(fixture.now(), &fixture.writer(), change).unwrap();
    }
    fixture.lake.drop_dataset(fixture.now(), &fixture.writer(), ids[3]).unwrap();
    fixture.publish();
    let beat = Heartbeat { writer: "alive".into(), act: "ingest".into(), beat: NOW, prefixes: vec!["urls/".into()] };
    fixture.lake.beat(&beat).unwrap();
    let mut files = Files::new();
    for dir in ["urls", "datasets", "index"] {
        for object in fixture.store.list(dir).unwrap() {
            files.insert(object.path.clone(), fixture.store.get(&object.path, 1 << 30).unwrap());
        }
    }
    files
}

/// What kind of file a path is of.
fn kind(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["urls", ..] => "rows".into(),
        ["datasets", "deny" | "suffix_lists", _] => parts[1].into(),
        ["datasets", _, "commit.json"] => "copy of a commit".into(),
        ["datasets", _, what, _] => (*what).into(),
        ["index", name] => (*name).into(),
        ["index", "manifests" | "checkpoints" | "deny" | "heartbeats" | "suffix_lists", _] => {
            format!("index/{}", parts[1])
        }
        ["index", _, file @ ..] => format!("segment/{}", file.join("/")),
        _ => panic!("{path}"),
    }
}

/// The first, the last and a few more files of each kind.
fn samples(files: &Files, of_each: usize) -> Vec<String> {
    let mut kinds: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for path in files.keys() {
        kinds.entry(kind(path)).or_default().push(path);
    }
    for wanted in ["rows", "commits", "copy of a commit", "rejects", "deny", "suffix_lists", "manifest.json"] {
        assert!(kinds.contains_key(wanted), "{wanted} is missing: {:?}", kinds.keys());
    }
    for wanted in ["manifests", "checkpoints", "deny", "heartbeats", "suffix_lists"] {
        assert!(kinds.contains_key(&format!("index/{wanted}")), "{wanted} is missing: {:?}", kinds.keys());
    }
    assert_eq!(kinds.keys().filter(|kind| kind.starts_with("segment/")).count(), 11);
    let pick = |paths: Vec<&String>| -> Vec<String> {
        let last = paths.len() - 1;
        let mut picked: Vec<_> = (0..of_each).map(|n| paths[last * n / (of_each - 1).max(1)].clone()).collect();
        picked.dedup();
        picked
    };
    kinds.into_values().flat_map(pick).collect()
}

fn store_of<'a>(files: impl IntoIterator<Item = (&'a String, &'a Bytes)>) -> Arc<dyn Store> {
    let store = MemStore::new();
    files.into_iter().for_each(|(path, bytes)| store.put(path, bytes).unwrap());
    Arc::new(store)
}

/// Everything there is to ask: each domain's answer, and all rows of each of its datasets.
type Answers = BTreeMap<String, (DomainAnswer, Vec<Vec<UrlItem>>)>;

fn answers(store: &Arc<dyn Store>) -> Result<Answers, QueryError> {
    Lake::open(store.clone(), Options::default())?.ask(all_of)
}

fn all_of(pinned: &Pinned) -> Result<Answers, QueryError> {
    let who = Principal::anyone();
    let mut all = Answers::new();
    for summary in pinned.domains("", None, 10_000, &who)? {
        let mut answer = pinned.domain(&summary.domain, &who)?;
        answer.version.clear();
        let mut rows = Vec::new();
        for dataset in &mut answer.datasets {
            let (page, any) = (Page::at(0, 10_000), Filter::default());
            rows.push(pinned.urls(&summary.domain, dataset.dataset_id, &page, &any, &who)?.items);
            // Known only after a merge of its segments.
            dataset.distinct_urls = 0;
            dataset.distinct_exact = false;
            dataset.top_paths.clear();
        }
        all.insert(summary.domain, (answer, rows));
    }
    Ok(all)
}

/// What no question shows: the registry, the deny list, which sources each dataset has taken, and what it rejected.
type Records = (Vec<DatasetInfo>, Vec<Deny>, BTreeMap<u32, (Vec<KnownSource>, Vec<String>, Vec<String>)>);

fn recorded(store: &Arc<dyn Store>) -> Records {
    let lake = trawl_store::Lake::open(store.clone()).unwrap();
    let manifest = lake.current().unwrap();
    let mut datasets = BTreeMap::new();
    for dataset in manifest.datasets.iter().filter(|dataset| !dataset.dropped) {
        let newest = lake.dataset_newest(dataset.id).unwrap().unwrap();
        let files = newest.files.into_iter().map(|file| format!("{file:?}")).collect();
        datasets.insert(dataset.id, (newest.sources, files, newest.rejects.into_keys().collect()));
    }
    (manifest.datasets.iter().map(|dataset| dataset.info.clone()).collect(), manifest.deny.clone(), datasets)
}

/// Does something with a keeper, and tells what it told.
fn keep<T>(act: impl FnOnce(&Keeper<'_>) -> T) -> (T, Vec<Event>) {
    let (dir, told) = (tempfile::tempdir().unwrap(), RefCell::new(Vec::new()));
    let tell = |event: Event| told.borrow_mut().push(event);
    let done = {
        let keeper = Keeper { memory_bytes: 32 << 20, ..Keeper::new("keeper", dir.path().join("tmp"), &|| NOW, &tell) };
        act(&keeper)
    };
    (done, told.into_inner())
}

/// What `verify` finds, or why it cannot begin.
fn faults(store: &Arc<dyn Store>) -> Vec<String> {
    let lake = match trawl_store::Lake::open(store.clone()) {
        Ok(lake) => lake,
        Err(error) => return vec![error.to_string()],
    };
    let manifest = lake.current().unwrap();
    let (done, told) = keep(|keeper| keeper.verify(&lake, &manifest, false));
    let mut found: Vec<String> = told
        .into_iter()
        .filter_map(|event| if let Event::Fault { fault, .. } = event { Some(fault) } else { None })
        .collect();
    found.extend(done.err().map(|error| error.to_string()));
    found
}

/// Whether a text names a file; files of segments are named from there on.
fn names(text: &str, path: &str) -> bool {
    text.contains(path.strip_prefix("index/").unwrap_or(path))
}

fn tidy(store: &Arc<dyn Store>) {
    let lake = trawl_store::Lake::open(store.clone()).unwrap();
    let settings = GcSettings { keep_versions: 1, keep_states: 1, grace_ms: 0, ..GcSettings::new("gc") };
    let report = collect(&lake, UnixMillis(NOW.0 + 1000), &settings).unwrap();
    assert_eq!(report.damaged, [""; 0]);
}

#[test]
fn the_loss_of_any_one_record_loses_nothing() {
    let files = every_kind();
    let whole = store_of(&files);
    let (expected, records) = (answers(&whole).unwrap(), recorded(&whole));
    assert_eq!(faults(&whole), [""; 0]);
    assert!(expected.len() > 10);
    for path in samples(&files, 4) {
        let kind = kind(&path);
        if ["rows", "rejects"].contains(&&*kind) {
            continue;
        }
        let store = store_of(files.iter().filter(|(other, _)| **other != path));
        match answers(&store) {
            Ok(found) => assert!(found == expected, "without {path} something else is answered"),
            Err(error) => assert!(names(&error.to_string(), &path), "without {path}: {error}"),
        }
        let found = faults(&store).join("\n");
        // Nobody misses the oldest, which might have been collected, nor a sign of life.
        let oldest = files.keys().find(|other| self::kind(other) == kind) == Some(&path);
        let not_missed = kind == "index/heartbeats"
            || oldest && ["index/manifests", "index/checkpoints", "index/deny"].contains(&&*kind)
            || oldest && kind == "deny";
        // Which number the newest record of the deny list had, nothing else tells.
        let named = names(&found, &path) || kind == "deny" && found.contains(layout::DENY);
        assert!(not_missed || named || is_spare(&files, &path), "without {path}: {found}");
        let (rebuilt, told) = keep(|keeper| keeper.rebuild(store.clone(), &Rebuild::default()).map(|done| done.lost));
        assert_eq!(rebuilt.unwrap_or_else(|error| panic!("without {path}: {error}")), 0, "{path}: {told:?}");
        assert!(answers(&store).unwrap() == expected, "rebuilt without {path}: something else is answered");
        assert!(recorded(&store) == records, "rebuilt without {path}: something is forgotten");
        tidy(&store);
        assert_eq!(faults(&store), [""; 0], "rebuilt without {path}: {told:?}");
        assert!(answers(&store).unwrap() == expected, "collected without {path}");
    }
}

/// Commits and checkpoints that neither the newest state nor a kept version needs.
fn is_spare(files: &Files, path: &str) -> bool {
    let store = store_of(files);
    let lake = trawl_store::Lake::open(store).unwrap();
    let manifest = lake.current().unwrap();
    match kind(path).as_str() {
        "commits" => {
            let (id, number) = (layout::dataset_of(path).unwrap(), layout::number_of(path).unwrap());
            let newest = lake.dataset_newest(id).unwrap().unwrap().sequence;
            number != newest && manifest.versions.iter().all(|version| version.commits.get(&id) != Some(&number))
                || manifest.dataset(id).is_some_and(|dataset| dataset.dropped)
        }
        "index/checkpoints" => {
            let base = lake.manifest_and_base(manifest.sequence).unwrap().unwrap().1;
            base.map(|base| base.sequence) != layout::checkpoint_number(path)
        }
        "index/deny" => manifest.deny_object().as_deref() != Some(path),
        "deny" => files.keys().rfind(|other| kind(other) == "deny").map(String::as_str) != Some(path),
        _ => false,
    }
}

/// Without the copy only the index knows what a commit had: all rows, but not the sources they came from.
#[test]
fn a_commit_is_found_again_from_the_index() {
    let mut files = every_kind();
    files.retain(|path, _| kind(path) != "copy of a commit");
    let whole = store_of(&files);
    let (expected, (_, _, records)) = (answers(&whole).unwrap(), recorded(&whole));
    for (id, (sources, described, rejects)) in &records {
        let dir = layout::commits_dir(*id);
        let newest = files.keys().rfind(|path| path.starts_with(&dir)).unwrap().clone();
        let store = store_of(files.iter().filter(|(path, _)| **path != newest));
        let lake = trawl_store::Lake::open(store.clone()).unwrap();
        assert!(lake.dataset_newest(*id).unwrap_err().to_string().contains(&newest));
        let (rebuilt, told) = keep(|keeper| keeper.rebuild(store.clone(), &Rebuild::default()).map(|done| done.lost));
        assert_eq!(rebuilt.unwrap(), 0);
        let mended = |event: &&Event| matches!(event, Event::Mended { path, from: "index", .. } if *path == newest);
        assert!(told.iter().any(|event| mended(&event)), "{told:?}");
        assert!(answers(&store).unwrap() == expected, "{newest}");
        let (_, _, found) = recorded(&store);
        assert_eq!((&found[id].1, &found[id].2), (described, rejects));
        assert!(found[id].0.len() <= sources.len());
        tidy(&store);
        assert_eq!(faults(&store), [""; 0]);
    }
}

#[test]
fn lost_rows_are_named() {
    let files = every_kind();
    let whole = store_of(&files);
    let manifest = trawl_store::Lake::open(whole.clone()).unwrap().current().unwrap();
    let lake = trawl_store::Lake::open(whole).unwrap();
    for dataset in manifest.datasets.iter().filter(|dataset| !dataset.dropped) {
        for file in lake.dataset_newest(dataset.id).unwrap().unwrap().files {
            let store = store_of(files.iter().filter(|(path, _)| **path != file.path));
            let found = faults(&store).join("\n");
            let rows = format!("its {} rows are lost", file.rows);
            assert!(found.contains(&file.path) && found.contains(&rows), "{found}");
            let error = answers(&store).unwrap_err().to_string();
            assert!(error.contains(&file.path) && error.contains(&format!("{} rows", file.rows)), "{error}");
        }
    }
    let rejects = files.keys().find(|path| kind(path) == "rejects").unwrap();
    let found = faults(&store_of(files.iter().filter(|(path, _)| *path != rejects))).join("\n");
    assert!(found.contains(rejects), "{found}");
}

#[test]
fn a_turned_bit_in_any_file_is_found_and_not_answered() {
    let files = every_kind();
    let whole = store_of(&files);
    let (expected, records) = (answers(&whole).unwrap(), recorded(&whole));
    let mut dice = Dice(11);
    // Of what was dropped nobody answers any more.
    let dropped =
        |path: &String| path.starts_with(&layout::dataset_dir(4)) || path.starts_with(&layout::rejects_dir(4));
    let looked_at: Files =
        files.iter().filter(|(path, _)| !dropped(path)).map(|(p, b)| (p.clone(), b.clone())).collect();
    for path in samples(&looked_at, 2) {
        let (kind, bytes) = (kind(&path), &files[&path]);
        let len = bytes.len() as u64;
        for at in [len - 1, dice.roll(len), dice.roll(len)] {
            let mut turned = bytes.to_vec();
            turned[at as usize] ^= 1 << dice.roll(8);
            let store = store_of(&files);
            store.put(&path, &turned).unwrap();
            match answers(&store) {
                Ok(found) => assert!(found == expected, "{path}@{at}: something else is answered"),
                Err(error) => assert!(names(&error.to_string(), &path), "{path}@{at}: {error}"),
            }
            let found = faults(&store).join("\n");
            // Compressed text whose turned bit means nothing: it reads as it was.
            let harmless = || ["index/checkpoints", "suffix_lists"].contains(&&*kind) && recorded(&store) == records;
            // Of a Parquet file that only an older version serves nothing but the hash is looked at; both name it.
            assert!(names(&found, &path) || harmless(), "{path}@{at}: {found}");
        }
    }
}

/// What came damaged from a server, or was made good there since, does not stay damaged in the cache of this machine.
#[test]
fn a_file_that_is_good_again_is_read_again() {
    let files = every_kind();
    let expected = answers(&store_of(&files)).unwrap();
    let mut refused = 0;
    for path in samples(&files, 2).into_iter().filter(|path| layout::never_changes(path)) {
        let dir = tempfile::tempdir().unwrap();
        let server = store_of(&files);
        let here = || -> Arc<dyn Store> {
            Arc::new(CachedStore::new(server.clone(), Arc::new(BlockCache::open(dir.path(), 1 << 30).unwrap())))
        };
        let mut turned = files[&path].to_vec();
        let middle = turned.len() / 2;
        turned[middle] ^= 1;
        server.put(&path, &turned).unwrap();
        refused += u32::from(answers(&here()).is_err());
        server.put(&path, &files[&path]).unwrap();
        assert!(answers(&here()).unwrap() == expected, "{path}");
    }
    assert!(refused > 8, "{refused}");
}
