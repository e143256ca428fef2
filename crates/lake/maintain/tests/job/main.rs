//! An ingest by tasks: the same bytes as by one process, and whatever happens to tasks and drivers, every row once.

mod faults;
mod mortal;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use trawl_index::{BuildOptions, publish_datasets};
use trawl_ingest::job::{Job, JobStage, Room, Task, TaskCounts, plan};
use trawl_ingest::source::{self, Source};
use trawl_ingest::{IngestReport, IngestSettings, Mode, ingest};
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode as Open};
use trawl_maintain::{JobCommit, Keeper, TaskDone, commit_job, run_task};
use trawl_model::UnixMillis;
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{DatasetInfo, DirStore, Lake, Manifest, MemStore, Store, object_hash};

static TIME: AtomicI64 = AtomicI64::new(1_782_262_923_456);

/// Never the same twice.
fn now() -> UnixMillis {
    UnixMillis(TIME.fetch_add(1, Relaxed))
}

fn quiet(_: trawl_store::Progress) {}

fn lake_in(store: Arc<dyn Store>) -> Lake {
    // A short list: every task parses it.
    let lake = Lake::init(store, now(), "first", b"com\norg\n").unwrap();
    lake.register_dataset(now(), "second", &DatasetInfo::named("d")).unwrap();
    lake
}

fn write(fs: &Arc<dyn Fs>, name: &str, text: &str) {
    fs.open(Path::new(name), Open::Truncate).unwrap().write_at(0, text.as_bytes()).unwrap();
}

/// A disk with three lists of so many URLs in all, some of which no lake takes.
fn disk(urls: usize) -> Arc<dyn Fs> {
    let fs = FaultFs::new().shared();
    let line = |n: usize| match n % 50 {
        49 => format!("no url {n}\n"),
        7 => format!("https://user:pw@www.h{}.example.org/{n}?b=1&a=2#{}\n", n % 97, n % 3),
        _ => format!("https://www.h{}.org/{}/page/{n}\n", n % 131, n % 7),
    };
    for (file, from) in ["a.txt", "b.txt", "c.txt"].iter().zip(0..) {
        write(&fs, file, &(0..urls).filter(|n| n % 3 == from).map(line).collect::<String>());
    }
    fs
}

fn sources(fs: &Arc<dyn Fs>) -> Vec<Source> {
    ["a.txt", "b.txt", "c.txt"].iter().map(|name| source::open(fs, Path::new(name), None).unwrap()).collect()
}

fn settings(fs: &Arc<dyn Fs>, writer: &str, digits: u8) -> IngestSettings {
    IngestSettings {
        temp_fs: fs.clone(),
        memory_bytes: 16 << 20,
        prefix_digits: Some(digits),
        page_rows: 100,
        row_group_bytes: 12 << 10,
        file_bytes: 40 << 10,
        ..IngestSettings::new(writer, "tmp")
    }
}

/// What must be the same of a dataset and its index, however they were made: all but names and times.
type Facts = Vec<(String, u64, String)>;

fn facts(lake: &Lake) -> Facts {
    let store = &**lake.store();
    let commit = lake.dataset_newest(1).unwrap().unwrap();
    let mut facts: Facts =
        commit.files.iter().map(|f| (format!("{} {}", f.prefix, f.distinct_urls), f.rows, f.hash.clone())).collect();
    let manifest = lake.current().unwrap();
    let version = manifest.current().unwrap();
    // A collector may have noted something since.
    let live = lake.dataset_commit(1, manifest.live_commit(1)).unwrap().unwrap();
    assert_eq!(live.files, commit.files, "the version serves what is committed");
    for segment in &version.segments {
        let dir = format!("index/{}", segment.id);
        for listed in store.list(&dir).unwrap() {
            let name = listed.path.strip_prefix(&dir).unwrap();
            // One has the segment's name, the other those of the files.
            if !name.ends_with("/segment.json") && !name.ends_with("/files.tsv.zst") {
                facts.push((name.to_owned(), listed.len, object_hash(store, &listed.path, listed.len).unwrap()));
            }
        }
    }
    facts
}

/// Without: an index that is not split, as so few rows have. With: one that is split by every digit.
const SPLIT: Option<u64> = Some(1);

fn local(fs: &Arc<dyn Fs>, digits: u8, piece_rows: Option<u64>) -> (Facts, IngestReport) {
    let lake = lake_in(Arc::new(MemStore::new()));
    let report = ingest(&lake, 1, &sources(fs), &settings(fs, "local", digits), &now, &quiet).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let mut options = BuildOptions::new(temp.path());
    options.piece_rows = piece_rows.unwrap_or(options.piece_rows);
    publish_datasets(&lake, &[1], &now, "index", &options, &quiet).unwrap();
    assert_eq!(split_of(&lake), if piece_rows.is_some() { digits } else { 0 });
    (facts(&lake), report)
}

fn split_of(lake: &Lake) -> u8 {
    lake.current().unwrap().current().unwrap().segments[0].split
}

fn room(fs: &Arc<dyn Fs>, temp: &Path) -> Room {
    // The index keeps its temporary files on this machine's own disk.
    fs.create_dir_all(temp).unwrap();
    Room { memory_bytes: 16 << 20, threads: 1, temp_fs: fs.clone(), ..Room::new(temp) }
}

/// Does everything once, in order.
fn run_all(lake: &Lake, fs: &Arc<dyn Fs>, job: &Job, room: &Room) -> IngestReport {
    for stage in [JobStage::Map, JobStage::Reduce] {
        for task in job.tasks(stage) {
            run_task(lake, fs, &task, "a1", room, &now, &quiet).unwrap();
        }
    }
    let JobCommit::Rows(report) = commit_job(lake, &job.job, "c1", room, &now, &quiet).unwrap() else {
        panic!("rows first")
    };
    for task in job.tasks(JobStage::Index) {
        // Whoever commits again before all are done hears of the same rows.
        if task.task == 1 {
            assert!(matches!(commit_job(lake, &job.job, "c2", room, &now, &quiet).unwrap(), JobCommit::Rows(_)));
        }
        assert!(matches!(run_task(lake, fs, &task, "a1", room, &now, &quiet).unwrap(), TaskDone::Index(_)));
    }
    assert!(matches!(commit_job(lake, &job.job, "c1", room, &now, &quiet).unwrap(), JobCommit::Version(_)));
    *report
}

#[test]
fn the_bytes_are_those_of_one_process_with_any_number_of_tasks_and_any_machine() {
    let fs = disk(4000);
    let temp = tempfile::tempdir().unwrap();
    for (digits, piece_rows) in [(0, None), (1, None), (1, SPLIT), (2, None), (2, SPLIT)] {
        let (expected, told) = local(&fs, digits, piece_rows);
        assert!(expected.iter().filter(|(name, ..)| !name.starts_with('/')).count() >= 3, "several files");
        for (map, reduce, memory, threads) in
            [(1, None, 16, 1), (2, Some(1), 64, 2), (9, Some(5), 16, 2), (9, Some(7), 1024, 1)]
        {
            // A lake in memory, whose runs must be fetched, and one on this machine, whose runs are read where they are.
            let dir = tempfile::tempdir().unwrap();
            let in_memory: Arc<dyn Store> = Arc::new(MemStore::new());
            let store: Arc<dyn Store> =
                if map == 2 { Arc::new(DirStore::new(dir.path().join("lake"))) } else { in_memory };
            let lake = lake_in(store);
            let counts = TaskCounts { map: Some(map), reduce: reduce.or((digits == 2).then_some(16)) };
            let settings = IngestSettings { piece_rows, ..settings(&fs, "job", digits) };
            let job = plan(&lake, 1, &sources(&fs), &settings, counts, &now).unwrap().unwrap();
            assert_eq!(job.task_count(JobStage::Map), map, "as many as were asked for");
            let room = Room { memory_bytes: memory << 20, threads, ..room(&fs, temp.path()) };
            let report = run_all(&lake, &fs, &job, &room);
            assert_eq!(split_of(&lake), if piece_rows.is_some() { digits } else { 0 });
            assert!(facts(&lake) == expected, "{digits} digits, {map} map tasks, {memory} MiB, {threads} threads");
            let same = |r: &IngestReport| (r.rows, r.rejected, r.records, r.distinct_urls, r.files, r.bytes, r.sources);
            assert_eq!(same(&report), same(&told));
            // The rejected items are in one file, in the order of the sources, whoever found them.
            let rejects = lake.store().get(&report.rejects_file.unwrap(), 1 << 20).unwrap();
            assert_eq!(rejects.iter().filter(|b| **b == b'\n').count() as u64, report.rejected);
            assert_eq!(lake.store().list("jobs").unwrap(), [], "the job has ended");
            assert!(lake.heartbeats().unwrap().is_empty());
        }
    }
}

#[test]
fn local_bytes_do_not_depend_on_memory_and_threads() {
    let fs = disk(3000);
    let of = |memory: usize, threads| {
        let lake = lake_in(Arc::new(MemStore::new()));
        let settings = IngestSettings {
            memory_bytes: memory << 20,
            threads,
            row_group_bytes: 4 << 20,
            ..settings(&fs, "local", 0)
        };
        ingest(&lake, 1, &sources(&fs), &settings, &now, &quiet).unwrap();
        let commit = lake.dataset_newest(1).unwrap().unwrap();
        commit.files.into_iter().map(|file| (file.path, file.hash)).collect::<Vec<_>>()
    };
    let one = of(16, 1);
    assert!(one == of(16, 3) && one == of(1024, 2));
}

#[test]
fn what_changed_since_the_plan_is_refused_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let planned = || {
        let (fs, lake) = (disk(300), lake_in(Arc::new(MemStore::new())));
        let counts = TaskCounts { map: Some(2), reduce: None };
        let job = plan(&lake, 1, &sources(&fs), &settings(&fs, "job", 0), counts, &now).unwrap().unwrap();
        let room = room(&fs, temp.path());
        (fs, lake, job, room)
    };
    let text = |done: Result<TaskDone, trawl_maintain::Error>| done.unwrap_err().to_string();
    let task = |stage, task| Task { job: "job".into(), stage, task };

    let (fs, lake, _, room) = planned();
    write(&fs, "a.txt", "https://other.org/\n");
    let error = text(run_task(&lake, &fs, &task(JobStage::Map, 0), "a", &room, &now, &quiet));
    assert!(error.contains("a.txt") && error.contains("changed since the job was planned"), "{error}");
    fs.remove_file(Path::new("a.txt")).unwrap();
    let error = text(run_task(&lake, &fs, &task(JobStage::Map, 0), "a", &room, &now, &quiet));
    assert!(error.starts_with("a.txt: expected ") && error.contains("found no file: it has changed since"), "{error}");

    // Stages in their order, tasks that there are, jobs that there are.
    let error = text(run_task(&lake, &fs, &task(JobStage::Reduce, 0), "a", &room, &now, &quiet));
    assert!(error.contains("map task 0") && error.contains("run this task first"), "{error}");
    let error = text(run_task(&lake, &fs, &task(JobStage::Map, 7), "a", &room, &now, &quiet));
    assert!(error.contains("from 0 to 1, found 7"), "{error}");
    let error = text(run_task(&lake, &fs, &task(JobStage::Index, 0), "a", &room, &now, &quiet));
    assert!(error.contains("not committed yet"), "{error}");
    let other = Task { job: "other".into(), ..task(JobStage::Map, 0) };
    assert!(text(run_task(&lake, &fs, &other, "a", &room, &now, &quiet)).contains("jobs/other/job.json"));
    assert!(lake.dataset_newest(1).unwrap().is_none());

    // Another release.
    let path = "jobs/job/job.json";
    let job = String::from_utf8(lake.store().get(path, 1 << 20).unwrap().to_vec()).unwrap();
    let (start, end) = (job.find("\"program\":\"").unwrap() + 11, job.rfind(",\n  \"checksum\"").unwrap());
    let version = job[start..].split('"').next().unwrap();
    lake.store().put(path, format!("{}0.0.0{}}}", &job[..start], &job[start + version.len()..end]).as_bytes()).unwrap();
    let error = text(run_task(&lake, &fs, &task(JobStage::Map, 1), "a", &room, &now, &quiet));
    assert!(error.contains("found one of 0.0.0"), "{error}");
    let error = commit_job(&lake, "job", "c1", &room, &now, &quiet).unwrap_err().to_string();
    assert!(error.contains("found one of 0.0.0"), "{error}");
    assert!(lake.dataset_newest(1).unwrap().is_none());

    // Another suffix list: nothing is committed.
    let (fs, lake, job, room) = planned();
    for stage in [JobStage::Map, JobStage::Reduce] {
        job.tasks(stage).for_each(|task| drop(run_task(&lake, &fs, &task, "a", &room, &now, &quiet).unwrap()));
    }
    let list = lake.put_suffix_list(b"com\nnet\norg\n").unwrap();
    lake.commit(now(), "list", |manifest| {
        manifest.suffix_list = Some(list.clone());
        Ok(())
    })
    .unwrap();
    let error = commit_job(&lake, "job", "c1", &room, &now, &quiet).unwrap_err().to_string();
    assert!(error.contains("suffix list changed"), "{error}");
    assert!(lake.dataset_newest(1).unwrap().is_none());
}

/// Puts these domains on the deny list, and no others.
fn deny(lake: &Lake, domains: &[&str]) {
    let entry = |domain: &&str| Deny {
        target: DenyTarget::Domain((*domain).to_owned()),
        since: now().to_string(),
        reason: None,
    };
    let denied = |manifest: &mut Manifest| {
        manifest.deny = domains.iter().map(entry).collect();
        Ok(())
    };
    lake.commit(now(), "deny", denied).unwrap();
}

#[test]
fn a_deny_list_that_changed_for_rows_of_the_job_is_refused_by_name() {
    let temp = tempfile::tempdir().unwrap();
    for (before, after, refused) in [
        (vec![], vec!["h5.org"], true),
        (vec!["h5.org"], vec![], true),
        // Nothing of these is in the sources.
        (vec![], vec!["zzz.org"], false),
        (vec!["h5.org"], vec!["h5.org", "zzz.org"], false),
    ] {
        let (fs, lake) = (disk(300), lake_in(Arc::new(MemStore::new())));
        let room = room(&fs, temp.path());
        deny(&lake, &before);
        let counts = TaskCounts { map: Some(2), reduce: None };
        let job = plan(&lake, 1, &sources(&fs), &settings(&fs, "job", 0), counts, &now).unwrap().unwrap();
        for stage in [JobStage::Map, JobStage::Reduce] {
            job.tasks(stage).for_each(|task| drop(run_task(&lake, &fs, &task, "a", &room, &now, &quiet).unwrap()));
        }
        deny(&lake, &after);
        let done = commit_job(&lake, "job", "c1", &room, &now, &quiet);
        if refused {
            let error = done.unwrap_err().to_string();
            assert!(error.contains("deny list changed since job job was planned"), "{error}");
            assert!(lake.dataset_newest(1).unwrap().is_none());
            assert_eq!(lake.store().list("datasets/1").unwrap(), []);
        } else {
            assert!(matches!(done, Ok(JobCommit::Rows(_))), "{done:?}");
        }
    }
}

#[test]
fn damaged_rejects_of_a_task_are_named() {
    let temp = tempfile::tempdir().unwrap();
    let (fs, lake) = (disk(300), lake_in(Arc::new(MemStore::new())));
    let room = room(&fs, temp.path());
    let counts = TaskCounts { map: Some(2), reduce: None };
    let job = plan(&lake, 1, &sources(&fs), &settings(&fs, "job", 0), counts, &now).unwrap().unwrap();
    for stage in [JobStage::Map, JobStage::Reduce] {
        job.tasks(stage).for_each(|task| drop(run_task(&lake, &fs, &task, "a", &room, &now, &quiet).unwrap()));
    }
    let listed = lake.store().list("jobs/job/map").unwrap();
    let rejects = listed.iter().find(|object| object.path.ends_with(".jsonl")).unwrap();
    let mut bytes = lake.store().get(&rejects.path, 1 << 20).unwrap().to_vec();
    bytes[20] ^= 1;
    lake.store().put(&rejects.path, &bytes).unwrap();
    let error = commit_job(&lake, "job", "c1", &room, &now, &quiet).unwrap_err().to_string();
    assert!(error.contains(&rejects.path), "{error}");
    assert!(lake.dataset_newest(1).unwrap().is_none());
}

#[test]
fn a_dataset_that_was_withdrawn_meanwhile_comes_back_with_the_rows() {
    let (fs, lake) = (disk(300), lake_in(Arc::new(MemStore::new())));
    let temp = tempfile::tempdir().unwrap();
    let room = room(&fs, temp.path());
    let job = plan(&lake, 1, &sources(&fs), &settings(&fs, "job", 0), TaskCounts::default(), &now).unwrap().unwrap();
    // While a job lives its dataset stays; but one that looked before the job was planned may still withdraw it.
    assert!(!lake.withdraw_dataset(now(), "failed", 1).unwrap());
    lake.end_beat("job").unwrap();
    assert!(lake.withdraw_dataset(now(), "failed2", 1).unwrap());
    let report = run_all(&lake, &fs, &job, &room);
    assert_eq!(lake.current().unwrap().dataset_named("d").unwrap().id, 1);
    assert!(report.rows > 0 && lake.current().unwrap().live_commit(1) > 0);
}

#[test]
fn of_two_jobs_with_one_source_one_commits() {
    let (fs, lake) = (disk(300), lake_in(Arc::new(MemStore::new())));
    let temp = tempfile::tempdir().unwrap();
    let room = room(&fs, temp.path());
    let planned = |name: &str| {
        plan(&lake, 1, &sources(&fs), &settings(&fs, name, 0), TaskCounts::default(), &now).map(Option::unwrap)
    };
    let (one, two) = (planned("one").unwrap(), planned("two").unwrap());
    // The same plan once more is the same job; another one under its name is refused.
    assert_eq!(planned("one").unwrap().job, one.job);
    let other = plan(&lake, 1, &sources(&fs), &settings(&fs, "one", 1), TaskCounts::default(), &now);
    assert!(other.unwrap_err().to_string().contains("choose another name"));
    let report = run_all(&lake, &fs, &one, &room);
    for stage in [JobStage::Map, JobStage::Reduce] {
        two.tasks(stage).for_each(|task| drop(run_task(&lake, &fs, &task, "b", &room, &now, &quiet).unwrap()));
    }
    let error = commit_job(&lake, "two", "c1", &room, &now, &quiet).unwrap_err().to_string();
    assert!(error.contains("another writer ingested"), "{error}");
    assert_eq!(lake.dataset_newest(1).unwrap().unwrap().rows, report.rows);
    // A plan of what the dataset has finds nothing to do; one that replaces it does.
    let again = plan(&lake, 1, &sources(&fs), &settings(&fs, "three", 0), TaskCounts::default(), &now);
    assert!(again.unwrap().is_none());
    let replace = IngestSettings { mode: Mode::Replace, ..settings(&fs, "four", 1) };
    let four = plan(&lake, 1, &sources(&fs), &replace, TaskCounts::default(), &now).unwrap().unwrap();
    assert_eq!(run_all(&lake, &fs, &four, &room).rows, report.rows);
    assert_eq!(lake.dataset_newest(1).unwrap().unwrap().rows, report.rows);
    let checked = Keeper::new("keeper", temp.path(), &now, &|_| ()).verify(&lake, &lake.current().unwrap(), true);
    assert_eq!(checked.unwrap().faults, 0);
}

#[test]
fn reports_of_an_earlier_job_are_not_taken_for_those_of_another() {
    let (fs, lake) = (disk(300), lake_in(Arc::new(MemStore::new())));
    let temp = tempfile::tempdir().unwrap();
    let room = room(&fs, temp.path());
    let planned = |sources: &[Source]| {
        plan(&lake, 1, sources, &settings(&fs, "nightly", 0), TaskCounts::default(), &now).map(Option::unwrap)
    };
    let job = planned(&sources(&fs)).unwrap();
    // Its last commit is killed where it has begun to remove the job; the same happens if a slow attempt outlives it.
    run_task(&lake, &fs, &job.tasks(JobStage::Map).next().unwrap(), "a", &room, &now, &quiet).unwrap();
    lake.store().delete("jobs/nightly/job.json").unwrap();
    write(&fs, "d.txt", "https://www.other.org/\n");
    let other = [source::open(&fs, Path::new("d.txt"), None).unwrap()];
    let error = planned(&other).unwrap_err().to_string();
    assert!(error.contains("an earlier job nightly has left files"), "{error}");
    for object in lake.store().list("jobs/nightly").unwrap() {
        lake.store().delete(&object.path).unwrap();
    }
    assert_eq!(run_all(&lake, &fs, &planned(&other).unwrap(), &room).rows, 1);
}

#[test]
fn a_source_of_this_process_alone_is_refused() {
    let (fs, lake) = (disk(30), lake_in(Arc::new(MemStore::new())));
    let piped = source::Opening { name: Some("stdin"), ..source::Opening::default() };
    let piped = source::open_as(&fs, Path::new("a.txt"), &piped).unwrap();
    let error = plan(&lake, 1, &[piped], &settings(&fs, "job", 0), TaskCounts::default(), &now).unwrap_err();
    assert!(error.to_string().contains("stdin can be read only by this process"), "{error}");
}
