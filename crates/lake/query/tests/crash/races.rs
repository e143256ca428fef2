//! Another writer does something whole, at every step of this one.

use crate::doubles::{Lost, LostAnswers};
use crate::world::*;
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use trawl_ingest::Mode;
use trawl_io::fault::Loss;
use trawl_store::{Created, Listed, RangeRead, Result, Store, Upload};

type Act<'a> = dyn Fn(&Disk, &str) -> Outcome + Sync + 'a;

type Interrupt = Box<dyn FnOnce() + Send>;

/// A store that lets some calls pass and then has something else happen first.
struct Interrupted {
    inner: Disk,
    /// How many calls pass before it, and what it is.
    waiting: Mutex<(u64, Option<Interrupt>)>,
}

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl Interrupted {
    fn step(&self) -> &Disk {
        let act = {
            let mut waiting = self.waiting.lock().unwrap();
            match &mut *waiting {
                (0, act) => act.take(),
                (left, _) => {
                    *left -= 1;
                    None
                }
            }
        };
        if let Some(act) = act {
            act();
        }
        &self.inner
    }
}

impl Store for Interrupted {
    fn get(&self, path: &str, limit: u64) -> Result<Bytes> {
        self.step().get(path, limit)
    }
    fn get_batch(&self, reads: &[RangeRead]) -> Result<Vec<Bytes>> {
        self.step().get_batch(reads)
    }
    fn len(&self, path: &str) -> Result<u64> {
        self.step().len(path)
    }
    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.step().put(path, bytes)
    }
    fn create(&self, path: &str, bytes: &[u8]) -> Result<Created> {
        self.step().create(path, bytes)
    }
    fn upload(&self, path: &str) -> Result<Box<dyn Upload>> {
        self.step().upload(path)
    }
    fn list(&self, dir: &str) -> Result<Vec<Listed>> {
        self.step().list(dir)
    }
    fn delete(&self, path: &str) -> Result<()> {
        self.step().delete(path)
    }
    fn open_local(&self, _: &str) -> Option<PathBuf> {
        None
    }
    fn sweep(&self) -> Result<u64> {
        self.step().sweep()
    }
    fn place(&self) -> String {
        self.inner.place()
    }
}

/// Runs `one` with `other` in its midst, at every step; both must have happened in the end, as if one after the other.
/// `may_fail`: `one` may find itself overtaken, and says so; done again it succeeds.
fn race(one: &Act<'_>, other: &Act<'_>, may_fail: bool) {
    race_on(&|store| store, one, other, may_fail);
}

/// The same where neither ever hears that it was the one who created an object.
fn race_unheard(one: &Act<'_>, other: &Act<'_>, may_fail: bool) {
    let unheard = |store| Arc::new(LostAnswers::new(store, (0..10_000).map(|step| (step, Lost::Resent)))) as Disk;
    race_on(&unheard, one, other, may_fail);
}

fn race_on(seen: &(dyn Fn(Disk) -> Disk + Sync), one: &Act<'_>, other: &Act<'_>, may_fail: bool) {
    let base = base();
    let expected = {
        let store = disk(&base.reboot(Loss::None));
        other(&store, "other").unwrap();
        one(&store, "one").unwrap();
        publish(&store, "last").unwrap();
        compact(&store, "last2").unwrap();
        state(&store)
    };
    let mut overtaken = 0;
    for step in 0.. {
        let store = disk(&base.reboot(Loss::None));
        // The other is told not to outlive this block by its own end: it runs inside a call of the first.
        let (fired, result) = std::thread::scope(|scope| {
            let (ask, asked) = std::sync::mpsc::channel::<()>();
            let (tell, told) = std::sync::mpsc::channel::<()>();
            let plain = store.clone();
            let worker = scope.spawn(move || {
                let fired = asked.recv().is_ok();
                if fired {
                    other(&seen(plain), "other").unwrap();
                    let _ = tell.send(());
                }
                fired
            });
            let interrupt = Box::new(move || {
                let _ = ask.send(());
                let _ = told.recv();
            });
            let waiting = Mutex::new((step, Some(interrupt as Interrupt)));
            let hooked: Disk = Arc::new(Interrupted { inner: store.clone(), waiting });
            let hooked = seen(hooked);
            let result = one(&hooked, "one");
            drop(hooked);
            (worker.join().unwrap(), result)
        });
        if !fired {
            result.unwrap();
            assert!(step > 5, "the race was run");
            assert!(!may_fail || overtaken > 0, "it never was overtaken");
            return;
        }
        if let Err(error) = result {
            assert!(may_fail, "step {step}: {error}");
            overtaken += 1;
            one(&store, "again").unwrap_or_else(|e| panic!("step {step}: again after {error}: {e}"));
        }
        publish(&store, "last").unwrap();
        compact(&store, "last2").unwrap();
        assert_eq!(state(&store), expected, "step {step}");
        collect(&store, "gc", MUCH_LATER).unwrap();
        assert_eq!(state(&store), expected, "step {step}: collected");
        assert_tidy(&store, &format!("step {step}"));
    }
}

const URLS: [&str; 2] = ["http://race.com/1", "http://one.com/8"];

fn bring(store: &Disk, writer: &str, dataset: u32) -> Outcome {
    ingest(store, &format!("i{writer}"), dataset, Mode::Append, &format!("race {dataset}"), &URLS)?;
    publish(store, writer)
}

#[test]
fn two_publishers_of_two_datasets() {
    race(&|s, w| bring(s, w, 1), &|s, w| bring(s, w, 2), false);
}

#[test]
fn two_publishers_of_one_dataset() {
    let more = |store: &Disk, writer: &str| {
        ingest(store, &format!("i{writer}"), 1, Mode::Append, "other race", &["http://race.com/2"])?;
        publish(store, writer)
    };
    race(&|s, w| bring(s, w, 1), &more, false);
}

#[test]
fn a_publisher_while_segments_are_merged() {
    race(&|s, w| compact(s, w), &|s, w| bring(s, w, 1), false);
}

#[test]
fn a_merge_while_something_is_published() {
    race(&|s, w| bring(s, w, 1), &|s, w| compact(s, w), false);
}

#[test]
fn a_publisher_while_files_are_merged() {
    race(&|s, w| compact_files(s, w, 1), &|s, w| bring(s, w, 1), false);
}

#[test]
fn a_purge_while_more_arrives() {
    race(&|s, w| purge(s, w, 2, "bad"), &|s, w| bring(s, w, 2), false);
}

#[test]
fn a_purge_while_files_are_merged() {
    let both = |store: &Disk, writer: &str| compact_files(store, writer, 1);
    race(&|s, w| purge(s, w, 1, "one.com/2"), &both, true);
}

#[test]
fn two_writers_of_one_source_never_hear_that_they_won() {
    race_unheard(&|s, w| bring(s, w, 1), &|s, w| bring(s, w, 1), true);
}

#[test]
fn a_merge_and_a_publisher_never_hear_that_they_won() {
    race_unheard(&|s, w| compact(s, w), &|s, w| bring(s, w, 1), false);
}

#[test]
fn a_purge_and_a_merge_of_files_never_hear_that_they_won() {
    race_unheard(&|s, w| purge(s, w, 1, "one.com/2"), &|s, w| compact_files(s, w, 1), true);
}

#[test]
fn a_collector_spares_who_is_alive() {
    race(&|s, w| bring(s, w, 1), &|s, w| collect(s, w, NOW), false);
    race(&|s, w| compact(s, w), &|s, w| collect(s, w, NOW), false);
    race(&|s, w| compact_files(s, w, 1), &|s, w| collect(s, w, NOW), false);
}

#[test]
fn a_collector_gives_up_who_seems_dead() {
    race(&|s, w| bring(s, w, 1), &|s, w| collect(s, w, LATER), true);
    race(&|s, w| compact(s, w), &|s, w| collect(s, w, LATER), true);
}

#[test]
fn something_is_published_while_a_collector_works() {
    race(&|s, w| collect(s, w, LATER), &|s, w| bring(s, w, 1), false);
}
