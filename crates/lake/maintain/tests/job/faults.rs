//! Whatever happens to the processes of a job, every row is there once, and a collector leaves nothing that no commit names.

use super::*;
use crate::mortal::{Fate, Gate, Mortal};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use trawl_maintain::{GcSettings, collect};

const RUNS: u64 = 240;
const DAY: i64 = 86_400_000;

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// What becomes of a process, and when. Few operations make most of the work, so most fates are early.
    fn fate(&mut self) -> (Fate, u64) {
        let done = self.below(2) == 0;
        let fate = match self.below(6) {
            0 | 1 => Fate::Lives,
            2 => Fate::LosesAnswer { done },
            3 => Fate::Sleeps,
            _ => Fate::Dies { done },
        };
        let at = if self.below(4) == 0 { self.below(200) } else { self.below(24) };
        (fate, at)
    }
}

static ATTEMPTS: AtomicU64 = AtomicU64::new(0);

/// A name that no other attempt has.
fn attempt() -> String {
    format!("{:016x}", ATTEMPTS.fetch_add(1, Relaxed))
}

/// What happened, so that the test can tell that it tested something.
#[derive(Default)]
struct Seen {
    failed: u64,
    slept: u64,
    lost_drivers: u64,
}

struct World {
    store: Arc<dyn Store>,
    fs: Arc<dyn Fs>,
    room: Room,
    gate: Arc<Gate>,
    dice: Dice,
    zombies: Vec<JoinHandle<()>>,
    seen: Seen,
}

impl World {
    /// Another process that looks at the lake, with its own fate.
    fn process(&self, fate: Fate, at: u64) -> Mortal {
        Mortal::new(&self.store, fate, at, &self.gate)
    }

    /// Starts an attempt at a task in a process of its own.
    fn attempt(&self, task: &Task, fate: Fate, at: u64) -> JoinHandle<bool> {
        let (store, fs, room, task) = (self.process(fate, at), self.fs.clone(), self.room.clone(), task.clone());
        let attempt = attempt();
        std::thread::spawn(move || {
            let Ok(lake) = Lake::open(Arc::new(store)) else { return false };
            run_task(&lake, &fs, &task, &attempt, &room, &now, &quiet).is_ok()
        })
    }

    /// Does a task as an engine would: some attempts at once, again after failures; those that sleep stay behind.
    fn engine(&mut self, task: &Task) {
        for round in 0.. {
            let at_once = if round > 4 { 1 } else { 1 + self.dice.below(2) };
            let mut running = Vec::new();
            for _ in 0..at_once {
                let (fate, at) = if round > 4 { (Fate::Lives, 0) } else { self.dice.fate() };
                let attempt = self.attempt(task, fate, at);
                if fate == Fate::Sleeps {
                    // An engine takes it for lost and starts another.
                    self.zombies.push(std::thread::spawn(move || _ = attempt.join().unwrap()));
                    self.seen.slept += 1;
                } else {
                    running.push(attempt);
                }
            }
            let done: Vec<bool> = running.into_iter().map(|attempt| attempt.join().unwrap()).collect();
            self.seen.failed += done.iter().filter(|done| !**done).count() as u64;
            if done.contains(&true) {
                return;
            }
        }
    }

    /// A step of a driver, repeated by others until one gets through; sometimes two do it at once.
    fn driver<T: Send + 'static>(
        &mut self,
        step: impl Fn(&Lake) -> trawl_maintain::Result<T> + Clone + Send + 'static,
    ) -> T {
        for round in 0.. {
            let mut running = Vec::new();
            for _ in 0..=self.dice.below(2) {
                let (fate, at) = if round > 4 { (Fate::Lives, 0) } else { self.dice.fate() };
                let fate = if fate == Fate::Sleeps { Fate::Dies { done: true } } else { fate };
                let (store, step) = (self.process(fate, at), step.clone());
                running.push(std::thread::spawn(move || step(&Lake::open(Arc::new(store))?)));
            }
            let done: Vec<_> = running.into_iter().map(|driver| driver.join().unwrap()).collect();
            self.seen.lost_drivers += done.iter().filter(|done| done.is_err()).count() as u64;
            let last = round > 8;
            for done in done {
                match done {
                    Ok(done) => return done,
                    Err(error) => assert!(!last, "no driver gets through: {error}"),
                }
            }
        }
        unreachable!()
    }
}

/// One job with one seed.
fn run(
    seed: u64,
    digits: u8,
    piece_rows: Option<u64>,
    expected: &Facts,
    fs: &Arc<dyn Fs>,
    temp: &Path,
    seen: &mut Seen,
) {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let lake = lake_in(store.clone());
    let dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut world = World {
        store,
        fs: fs.clone(),
        room: room(fs, temp),
        gate: Arc::default(),
        dice,
        zombies: Vec::new(),
        seen: Seen::default(),
    };
    let counts = TaskCounts { map: Some(3), reduce: (digits > 0).then_some(4) };
    let (opened, of_plan) = (sources(fs), fs.clone());
    let job = world.driver(move |lake| {
        // A driver that lost its plan makes another; nobody commits the first one.
        let name = format!("job{:x}", ATTEMPTS.fetch_add(1, Relaxed));
        let settings = IngestSettings { piece_rows, ..settings(&of_plan, &name, digits) };
        Ok(plan(lake, 1, &opened, &settings, counts, &now)?.unwrap())
    });
    for stage in [JobStage::Map, JobStage::Reduce] {
        let mut tasks: Vec<Task> = job.tasks(stage).collect();
        while !tasks.is_empty() {
            let next = world.dice.below(tasks.len() as u64) as usize;
            let task = tasks.swap_remove(next);
            world.engine(&task);
        }
    }
    let (room, name) = (world.room.clone(), job.job.clone());
    world.driver(move |lake| commit_job(lake, &name, &attempt(), &room, &now, &quiet));
    // Some that were stopped wake up between the steps, the others after the end.
    if world.dice.below(2) == 0 {
        world.gate.open();
    }
    job.tasks(JobStage::Index).for_each(|task| world.engine(&task));
    let (room, name) = (world.room.clone(), job.job.clone());
    world.driver(move |lake| match commit_job(lake, &name, &attempt(), &room, &now, &quiet) {
        Err(trawl_maintain::Error::Ingest(error)) if error.to_string().contains("it has ended") => Ok(()),
        done => done.map(drop),
    });
    world.gate.open();
    world.zombies.drain(..).for_each(|zombie| zombie.join().unwrap());
    // A driver that slept through it all: the rows do not come again.
    let late = commit_job(&lake, &job.job, &attempt(), &world.room, &now, &quiet);
    assert!(late.is_err(), "seed {seed}: the job has ended");

    assert!(facts(&lake) == *expected, "seed {seed}: every row once, and the same bytes");
    collected(seed, &lake);
    assert!(facts(&lake) == *expected, "seed {seed}: after the collection");
    seen.failed += world.seen.failed;
    seen.slept += world.seen.slept;
    seen.lost_drivers += world.seen.lost_drivers;
}

/// Collects some days later, and looks at what is left.
fn collected(seed: u64, lake: &Lake) {
    // Twice: the first gives up writers that died, and a zombie may have shown a sign of life since.
    for days in [3, 6] {
        let at = UnixMillis(now().0 + days * DAY);
        let name = format!("gc{:x}", ATTEMPTS.fetch_add(1, Relaxed));
        let settings = GcSettings { keep_versions: 1, keep_states: 1, ..GcSettings::new(name) };
        let report = collect(lake, at, &settings).unwrap();
        assert!(report.foreign.is_empty() && report.damaged.is_empty(), "seed {seed}: {report:?}");
    }
    let commit = lake.dataset_newest(1).unwrap().unwrap();
    let paths = |dir: &str| -> BTreeSet<String> {
        lake.store().list(dir).unwrap().into_iter().map(|listed| listed.path).collect()
    };
    assert_eq!(paths("urls"), commit.files.iter().map(|file| file.path.clone()).collect(), "seed {seed}");
    assert_eq!(paths("datasets/1/rejects"), commit.rejects.keys().cloned().collect(), "seed {seed}");
    assert_eq!(paths("jobs"), BTreeSet::new(), "seed {seed}");
    assert_eq!(paths("index/heartbeats"), BTreeSet::new(), "seed {seed}");
    let manifest = lake.current().unwrap();
    let named: BTreeSet<&str> = manifest.current().unwrap().segments.iter().map(|s| s.id.as_str()).collect();
    let known = ["manifests", "manifest.json", "checkpoints", "suffix_lists", "deny"];
    for path in paths("index") {
        let first = path.split('/').nth(1).unwrap();
        assert!(named.contains(first) || known.contains(&first), "seed {seed}: {path}");
    }
}

#[test]
fn whatever_happens_to_tasks_and_drivers_every_row_is_there_once() {
    let fs = disk(240);
    let temp = tempfile::tempdir().unwrap();
    let expected = [local(&fs, 0, None).0, local(&fs, 1, None).0, local(&fs, 1, SPLIT).0];
    let mut seen = Seen::default();
    for seed in 1..=RUNS {
        let (digits, piece_rows, expected) = match seed % 4 {
            0 => (1, None, &expected[1]),
            1 => (1, SPLIT, &expected[2]),
            _ => (0, None, &expected[0]),
        };
        run(seed, digits, piece_rows, expected, &fs, temp.path(), &mut seen);
    }
    let Seen { failed, slept, lost_drivers } = seen;
    assert!(failed > RUNS && slept > RUNS && lost_drivers > RUNS / 2, "{failed} {slept} {lost_drivers}");
}
