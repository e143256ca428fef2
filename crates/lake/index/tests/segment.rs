//! Whole segments: built, verified, damaged, rebuilt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_index::{
    BuildOptions, Caches, DistinctUrls, MergeInput, OpenOptions, Segment, SegmentMeta, Slot, SourceFile, build_segment,
    merge_segments, sort_files, verify_segment,
};
use trawl_ingest::{IngestSettings, ingest};
use trawl_model::{DoorError, Items, SourceIdentity, Split, UnixMillis, UrlRecord, UrlSource};
use trawl_store::{DatasetInfo, DirStore, Lake, SegmentRef, Store};
use trawl_url::SuffixList;

struct Records(Vec<UrlRecord>);

impl UrlSource for Records {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity { uri: "records".into(), size: self.0.len() as u64, tag: String::new() }
    }

    fn splits(&self, _: u64) -> Result<Vec<Split>, DoorError> {
        Ok(vec![Split { start: 0, end: self.0.len() as u64 }])
    }

    fn read(&self, _: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        (0..).zip(&self.0).try_for_each(|(n, record)| each(n, Ok(record.clone())))
    }
}

struct World {
    dir: tempfile::TempDir,
    store: Arc<dyn Store>,
    files: Vec<SourceFile>,
}

/// `domains` domains in three datasets, files small enough that the largest domain spans several.
fn world(domains: u32) -> World {
    world_of(domains, 0)
}

/// The same, with files split by prefixes of so many digits.
fn world_of(domains: u32, digits: u8) -> World {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("tmp")).unwrap();
    let store: Arc<dyn Store> = Arc::new(DirStore::new(dir.path().join("lake")));
    let lake = Lake::init(store.clone(), UnixMillis(0), "probe", SuffixList::builtin().text().as_bytes()).unwrap();
    let mut files = Vec::new();
    for dataset in 1..=3u32 {
        let id = lake.register_dataset(UnixMillis(1), "test", &DatasetInfo::named(format!("d{dataset}"))).unwrap();
        let mut records: Vec<UrlRecord> = Vec::new();
        for n in 0..domains * 3 {
            let domain = n % domains;
            if domain % 3 != dataset % 3 {
                let mut record = UrlRecord::bare(format!("http://www.d{domain:04}.com/a/{}", n % 7));
                record.ts = (n % 4 != 0).then_some(UnixMillis(i64::from(n) * 1000 + i64::from(dataset)));
                records.push(record);
            }
        }
        records.extend((0..400).map(|n| UrlRecord::bare(format!("https://big.com/{}/{}", n % 5, n % 200))));
        let mut settings = IngestSettings::new(format!("w{dataset}"), dir.path().join("tmp"));
        (settings.memory_bytes, settings.page_rows) = (32 << 20, 16);
        (settings.row_group_bytes, settings.file_bytes) = (4 << 10, 10 << 10);
        settings.prefix_digits = Some(digits);
        let sources = vec![trawl_ingest::source::Source::new(Records(records))];
        ingest(&lake, id, &sources, &settings, &|| UnixMillis(2), &|_| ()).unwrap();
        let commit = lake.dataset_newest(id).unwrap().unwrap();
        files.extend(commit.files.into_iter().map(|file| SourceFile { dataset_id: id, file }));
    }
    sort_files(&mut files);
    World { dir, store, files }
}

impl World {
    fn build(&self, id: &str, change: impl Fn(&mut BuildOptions)) -> SegmentMeta {
        let mut options = BuildOptions::new(self.dir.path().join("tmp"));
        options.memory_bytes = 16 << 20;
        change(&mut options);
        build_segment(&self.store, id, &self.files, &options, &|_| ()).unwrap()
    }

    fn open(&self, reference: &SegmentRef) -> Segment {
        Segment::open(&self.store, reference, &Arc::new(Caches::default()), OpenOptions::default()).unwrap()
    }

    fn faults(&self, reference: &SegmentRef) -> Vec<String> {
        let mut faults = Vec::new();
        match verify_segment(&self.store, reference, &mut |e| faults.push(e.to_string())) {
            Ok(verified) => assert_eq!(verified.faults, faults.len() as u64),
            Err(e) => faults.push(e.to_string()),
        }
        faults
    }

    fn segment_dir(&self, id: &str) -> PathBuf {
        self.dir.path().join("lake/index").join(id)
    }
}

fn files_below(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn a_built_segment_verifies_and_says_what_it_is() {
    let world = world(100);
    assert!(world.files.len() > 6, "several files a dataset");
    let meta = world.build("s1", |_| ());
    let reference = meta.to_ref(0).unwrap();
    assert_eq!(world.faults(&reference), [""; 0]);
    let rows: u64 = world.files.iter().map(|f| f.file.rows).sum();
    assert_eq!((meta.domains, meta.rows, meta.shards), (101, rows, 1));
    let names: BTreeSet<_> = files_below(&world.segment_dir("s1")).into_keys().collect();
    let expected = [
        "counts.bin",
        "domain_to_datasets.roar",
        "domains.mphf",
        "domains.txt.zst",
        "files.tsv.zst",
        "pages.bin",
        "paths.bin",
        "postings/0/postings.dat.zst",
        "postings/0/postings.idx.zst",
        "times.bin",
        "segment.json",
    ];
    assert_eq!(names, expected.map(str::to_owned).into());
}

#[test]
fn a_domain_over_several_files_has_exact_counts() {
    let world = world(100);
    let meta = world.build("s1", |_| ());
    let segment = world.open(&meta.to_ref(0).unwrap());
    let slot = segment.lookup("big.com").unwrap().unwrap();
    for (dataset, count) in segment.counts(slot).unwrap() {
        let runs = segment.postings(slot, dataset).unwrap();
        let files: BTreeSet<u32> = runs.iter().map(|r| r.file_id).collect();
        assert!(files.len() > 1, "the domain spans files");
        assert_eq!((count.rows, count.distinct, count.exact), (400, 200, true), "dataset {dataset}");
        assert_eq!(runs.iter().map(|r| r.row_count).sum::<u64>(), 400);
        assert!(files.iter().all(|f| segment.file(*f).unwrap().dataset_id == dataset));
        let paths: u64 = count.paths.iter().map(|(_, rows)| rows).sum();
        assert_eq!((count.paths.len(), paths), (5, 400));
    }
}

#[test]
fn shards_change_nothing_but_the_files() {
    let world = world(100);
    let one = world.build("one", |_| ()).to_ref(0).unwrap();
    let many = world.build("many", |o| o.shards = Some(8)).to_ref(0).unwrap();
    assert_eq!(world.faults(&many), [""; 0]);
    assert_eq!(many.shards, 8);
    let (one, many) = (world.open(&one), world.open(&many));
    one.names_with_prefix("", None, &mut |slot, name| {
        assert_eq!(many.lookup(name).unwrap(), Some(slot));
        for dataset in one.datasets(slot).unwrap() {
            assert_eq!(one.postings(slot, dataset).unwrap(), many.postings(slot, dataset).unwrap());
        }
        true
    })
    .unwrap();
    assert_eq!(many.postings(Slot(0), 99).unwrap(), []);
}

#[test]
fn the_same_files_give_the_same_bytes() {
    let world = world(60);
    world.build("a", |_| ());
    world.build("b", |o| o.memory_bytes = 1 << 20);
    let (mut a, mut b) = (files_below(&world.segment_dir("a")), files_below(&world.segment_dir("b")));
    let text =
        |files: &mut BTreeMap<String, Vec<u8>>| String::from_utf8(files.remove("segment.json").unwrap()).unwrap();
    assert_eq!(text(&mut a).replace("\"a\"", "\"b\""), text(&mut b));
    assert!(a == b);
}

/// The rows of a domain in a dataset, whatever numbers the files have.
fn rows_of(segment: &Segment, slot: Slot, dataset: u32) -> Vec<(String, u32, u64, u64)> {
    let runs = segment.postings(slot, dataset).unwrap().into_iter();
    runs.map(|run| (segment.file(run.file_id).unwrap().path, run.row_group, run.first_row, run.row_count)).collect()
}

#[test]
fn a_merge_of_many_segments_answers_as_one_build() {
    let world = world(700);
    let whole = world.open(&world.build("whole", |_| ()).to_ref(0).unwrap());
    let mut options = BuildOptions::new(world.dir.path().join("tmp"));
    options.memory_bytes = 16 << 20;
    for (id, at_a_time, masked) in [("each", 1, &[][..]), ("some", 5, &[]), ("less", 3, &[2])] {
        let pieces: Vec<Segment> = (1..)
            .zip(world.files.chunks(at_a_time))
            .map(|(n, files)| {
                options.shards = Some(1 + n % 3);
                let piece = build_segment(&world.store, &format!("{id}{n}"), files, &options, &|_| ()).unwrap();
                world.open(&piece.to_ref(0).unwrap())
            })
            .collect();
        assert!(pieces.len() > 4, "{}", pieces.len());
        let inputs: Vec<_> = pieces.iter().map(|segment| MergeInput { segment, masked }).collect();
        options.shards = None;
        let merged = merge_segments(&world.store, id, &inputs, DistinctUrls::Counted, &options, &|_| ()).unwrap();
        let reference = merged.to_ref(0).unwrap();
        assert_eq!(world.faults(&reference), [""; 0]);
        let merged = world.open(&reference);
        let mut names = 0;
        let mut compare = |slot: Slot, name: &str| {
            let mut expected = whole.counts(slot).unwrap();
            expected.retain(|(dataset, _)| !masked.contains(dataset));
            let Some(found) = merged.lookup(name).unwrap() else {
                assert!(expected.is_empty(), "{name}");
                return true;
            };
            names += 1;
            assert_eq!(merged.counts(found).unwrap(), expected, "{name}");
            for (dataset, _) in expected {
                assert_eq!(rows_of(&merged, found, dataset), rows_of(&whole, slot, dataset), "{name} {dataset}");
            }
            true
        };
        whole.names_with_prefix("", None, &mut compare).unwrap();
        assert_eq!(names, merged.len(), "no name that the whole has not");
    }
}

#[test]
fn a_segment_of_nothing() {
    let mut world = world(3);
    world.files.clear();
    let reference = world.build("empty", |_| ()).to_ref(0).unwrap();
    assert_eq!(world.faults(&reference), [""; 0]);
    let segment = world.open(&reference);
    assert!(segment.is_empty() && segment.lookup("big.com").unwrap().is_none());
}

/// Damage in any file is found by verification, wherever it is.
#[test]
fn every_damage_is_found() {
    let world = world(12);
    let reference = world.build("s1", |o| o.shards = Some(2)).to_ref(0).unwrap();
    let dir = world.segment_dir("s1");
    for (name, bytes) in files_below(&dir) {
        let path = dir.join(&name);
        let damage = |bytes: &[u8], what: &str| {
            std::fs::write(&path, bytes).unwrap();
            let faults = world.faults(&reference);
            assert!(faults.iter().any(|fault| fault.contains(&name)), "{name}: {what} was not found: {faults:?}");
        };
        let step = (bytes.len() / 40).max(1);
        for at in (0..bytes.len()).step_by(step) {
            damage(&bytes[..at], &format!("cut at {at}"));
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            damage(&flipped, &format!("flip at {at}"));
        }
        damage(&[&bytes[..], b"x"].concat(), "a byte more");
        std::fs::remove_file(&path).unwrap();
        assert!(!world.faults(&reference).is_empty(), "{name}: its absence was not found");
        std::fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(world.faults(&reference), [""; 0]);
}

/// A perfect hash of another dictionary, or a damaged one, is not used; lookups search and stay right.
#[test]
fn lookups_survive_without_the_perfect_hash() {
    let world = world(50);
    let reference = world.build("s1", |_| ()).to_ref(0).unwrap();
    world.build("other", |o| o.dictionary_block_bytes = 4096);
    let path = world.segment_dir("s1").join("domains.mphf");
    let names = {
        let mut names = Vec::new();
        world
            .open(&reference)
            .names_with_prefix("", None, &mut |slot, name| {
                names.push((slot, name.to_owned()));
                true
            })
            .unwrap();
        names
    };
    let check = || {
        let segment = world.open(&reference);
        for (slot, name) in &names {
            assert_eq!(segment.lookup(name).unwrap(), Some(*slot));
        }
        assert_eq!(segment.lookup("nobody.com").unwrap(), None);
        segment.mphf().err().map(|error| error.to_string())
    };
    assert_eq!(check(), None);
    let good = std::fs::read(&path).unwrap();
    for bad in [&b""[..], &good[..good.len() - 1], &[]] {
        std::fs::write(&path, bad).unwrap();
        assert!(check().is_some());
    }
    std::fs::remove_file(&path).unwrap();
    assert!(check().is_some());
}

/// The input must be what its commit says.
#[test]
fn changed_input_is_refused() {
    let mut world = world(10);
    let path = world.dir.path().join("lake").join(&world.files[0].file.path);
    let good = std::fs::read(&path).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    std::fs::write(&path, &bad).unwrap();
    let options = BuildOptions::new(world.dir.path().join("tmp"));
    let build = |world: &World| build_segment(&world.store, "s", &world.files, &options, &|_| ());
    assert!(build(&world).unwrap_err().to_string().contains("hash"));
    std::fs::write(&path, &good).unwrap();
    world.files[0].file.rows += 1;
    assert!(build(&world).is_err());
}

/// However few rows there are.
fn split(options: &mut BuildOptions) {
    options.piece_rows = 1;
}

/// All that a segment says, by name: counts, and rows by the paths of their files.
fn told(segment: &Segment) -> BTreeMap<String, String> {
    let mut told = BTreeMap::new();
    let mut last = String::new();
    let mut each = |slot: Slot, name: &str| {
        assert!(*name > *last, "{name} after {last}");
        name.clone_into(&mut last);
        assert_eq!(segment.lookup(name).unwrap(), Some(slot));
        assert_eq!(segment.name(slot).unwrap().as_deref(), Some(name));
        let counts = segment.counts(slot).unwrap();
        assert!(counts.iter().map(|(id, _)| *id).eq(segment.datasets(slot).unwrap()));
        let rows: Vec<_> = counts.iter().map(|(id, _)| rows_of(segment, slot, *id)).collect();
        let groups: Vec<_> = counts
            .iter()
            .flat_map(|(id, _)| segment.postings(slot, *id).unwrap())
            .map(|run| (run.file_id, run.row_group))
            .collect();
        assert_eq!(segment.page_tables(&groups).unwrap().len(), groups.len());
        told.insert(name.to_owned(), format!("{counts:?} {rows:?}"));
        true
    };
    segment.names_with_prefix("", None, &mut each).unwrap();
    assert_eq!(told.len() as u64, segment.len());
    told
}

#[test]
fn a_segment_that_is_split_answers_as_one_that_is_not() {
    for digits in [1, 2] {
        let world = world_of(300, digits);
        let one = world.build("one", |_| ()).to_ref(0).unwrap();
        let meta = world.build("many", split);
        let many = meta.to_ref(0).unwrap();
        assert_eq!((one.split, many.split, many.files.len()), (0, digits, 1));
        assert_eq!((one.domains, one.rows, &one.datasets), (many.domains, many.rows, &many.datasets));
        assert!(meta.pieces.len() > 10 && world.faults(&many).is_empty(), "{:?}", world.faults(&many));
        let (one, many) = (world.open(&one), world.open(&many));
        assert_eq!(told(&one), told(&many));
        assert_eq!(one.meta().datasets, many.meta().datasets);
        assert_eq!(one.files().unwrap(), many.files().unwrap());
        let paths = |s: &Segment| (0..s.files().unwrap()).map(|id| s.file(id).unwrap().path).collect::<BTreeSet<_>>();
        assert_eq!(paths(&one), paths(&many));
        for stranger in ["nobody.com", "", "d9999.com", "zz"] {
            assert_eq!(many.lookup(stranger).unwrap(), None);
            assert!(many.neighbour(stranger).unwrap().is_some_and(|slot| slot.0 < many.len()));
        }
        let listed = |s: &Segment, prefix: &str, after: Option<&str>| {
            let mut names = Vec::new();
            let mut each = |_: Slot, name: &str| {
                names.push(name.to_owned());
                names.len() < 7
            };
            s.names_with_prefix(prefix, after, &mut each).unwrap();
            names
        };
        for (prefix, after) in
            [("", None), ("d00", Some("d0042.com")), ("d0042.com", None), ("x", None), ("b", Some("a"))]
        {
            assert_eq!(listed(&one, prefix, after), listed(&many, prefix, after), "{prefix} {after:?}");
        }
        assert!(many.file(many.files().unwrap()).is_err());
    }
}

#[test]
fn pieces_have_the_same_bytes_on_any_machine_and_as_merges() {
    let world = world_of(200, 1);
    let of = |id: &str| {
        let mut files = files_below(&world.segment_dir(id));
        files.retain(|name, _| !name.ends_with("segment.json"));
        files
    };
    let mut metas = Vec::new();
    for (id, threads, memory) in [("a", 1, 16 << 20), ("b", 2, 2 << 20), ("c", 5, 64 << 20)] {
        metas.push(world.build(id, |o| (o.threads, o.memory_bytes, o.piece_rows) = (threads, memory, 1)));
    }
    assert!(of("a") == of("b") && of("a") == of("c"));
    world.build("whole", |_| ());
    let options = |piece_rows| BuildOptions { piece_rows, ..BuildOptions::new(world.dir.path().join("tmp")) };
    let merge = |id: &str, of: &[SegmentRef], piece_rows| {
        let opened: Vec<Segment> = of.iter().map(|reference| world.open(reference)).collect();
        let inputs: Vec<_> = opened.iter().map(|segment| MergeInput { segment, masked: &[] }).collect();
        let merged =
            merge_segments(&world.store, id, &inputs, DistinctUrls::Counted, &options(piece_rows), &|_| ()).unwrap();
        assert_eq!(world.faults(&merged.to_ref(0).unwrap()), [""; 0]);
        merged
    };
    // Pieces to one set of files, to pieces again, and of segments that are split, split otherwise and not split at all.
    let single = merge("single", &[metas[0].to_ref(0).unwrap()], u64::MAX);
    assert!(single.split == 0 && of("single") == of("whole"));
    let again = merge("again", &[single.to_ref(0).unwrap()], 1);
    assert!(again.split == 1 && of("again") == of("a"));
    let dataset = |id: u32| {
        let files: Vec<_> = world.files.iter().filter(|f| f.dataset_id == id).cloned().collect();
        let name = format!("d{id}");
        let piece_rows = if id == 2 { 1 } else { u64::MAX };
        build_segment(&world.store, &name, &files, &options(piece_rows), &|_| ()).unwrap().to_ref(0).unwrap()
    };
    let mixed = [dataset(1), dataset(2), dataset(3)];
    assert_eq!(mixed.each_ref().map(|reference| reference.split), [0, 1, 0]);
    merge("mixed", &mixed, 1);
    merge("mixed1", &mixed, u64::MAX);
    assert!(of("mixed") == of("a") && of("mixed1") == of("whole"));
}

#[test]
fn files_of_other_prefixes_than_two_digits_are_split_less() {
    let fine = world_of(60, 2);
    let reference = fine.build("one", |o| o.piece_rows = 50).to_ref(0).unwrap();
    assert_eq!((reference.split, fine.faults(&reference)), (1, vec![]), "one digit of files that have two");
    assert_eq!(world_of(60, 0).build("none", split).split, 0);
}

/// Damage in any file of a piece is found by verification, and so is a piece that is lost; others answer on.
#[test]
fn every_damage_of_a_piece_is_found_and_named() {
    let world = world_of(12, 1);
    let reference = world.build("s1", split).to_ref(0).unwrap();
    let dir = world.segment_dir("s1");
    let files = files_below(&dir);
    let piece = files.keys().find(|name| name.ends_with("/counts.bin")).unwrap().split_once('/').unwrap().0.to_owned();
    let of_piece = files.iter().filter(|(name, _)| name.starts_with(&piece) || *name == "segment.json");
    for (name, bytes) in of_piece.clone() {
        let path = dir.join(name);
        let damage = |bytes: &[u8], what: &str| {
            std::fs::write(&path, bytes).unwrap();
            let faults = world.faults(&reference);
            assert!(faults.iter().any(|fault| fault.contains(name)), "{name}: {what} was not found: {faults:?}");
        };
        for at in (0..bytes.len()).step_by((bytes.len() / 12).max(1)) {
            damage(&bytes[..at], &format!("cut at {at}"));
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            damage(&flipped, &format!("flip at {at}"));
        }
        std::fs::remove_file(&path).unwrap();
        assert!(world.faults(&reference).iter().any(|fault| fault.contains(name)), "{name}: its absence was not found");
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(world.faults(&reference), [""; 0]);
    // A piece of names that belong to another.
    let all = told(&world.open(&reference));
    for (name, _) in of_piece.filter(|(name, _)| name.starts_with(&piece)) {
        std::fs::remove_file(dir.join(name)).unwrap();
    }
    let faults = world.faults(&reference);
    assert!(faults.iter().all(|fault| fault.contains(&format!("s1/{piece}/"))) && faults.len() == 1, "{faults:?}");
    let segment = world.open(&reference);
    let (mut lost, mut found) = (0, 0);
    for name in all.keys() {
        match segment.lookup(name) {
            Ok(slot) => found += u32::from(slot.is_some()),
            Err(error) => {
                lost += 1;
                assert!(error.to_string().contains(&format!("index/s1/{piece}/segment.json")), "{error}");
            }
        }
    }
    assert!(lost > 0 && found > 0 && lost + found == all.len() as u32, "{lost} {found}");
    assert!(segment.names_with_prefix("", None, &mut |_, _| true).is_err(), "a list that lacks names is no list");
}

/// Pieces under each other's prefixes would answer nothing: found by verification.
#[test]
fn pieces_that_were_exchanged_are_found() {
    let world = world_of(100, 1);
    let reference = world.build("s1", split).to_ref(0).unwrap();
    let dir = world.segment_dir("s1");
    std::fs::rename(dir.join("0"), dir.join("x")).unwrap();
    std::fs::rename(dir.join("1"), dir.join("0")).unwrap();
    std::fs::rename(dir.join("x"), dir.join("1")).unwrap();
    assert!(!world.faults(&reference).is_empty());
}
