//! Two writers take turns, at any steps of both: what each of them was told is done, is.

use crate::acts::{Actor, Disk, Done, Keep, OTHER_LIST, base, disk};
use crate::common::Dice;
use crate::questions::QUESTIONS;
use crate::truth::Shelf;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use trawl_ingest::Mode;
use trawl_io::fault::{FaultFs, Loss, Stepped};
use trawl_io::{Op, TEMP_PREFIX};
use trawl_query::{Lake, Options};
use trawl_store::manifest::DenyTarget;

/// Schedules of each pair that are run, unless `LAKE_INTERLEAVE` says how many.
const SAMPLE: u64 = 6;

/// Whose turn it is, and for how many steps.
struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Who, and how many steps; the first is going on.
    plan: Vec<(usize, u64)>,
    ended: [bool; 2],
    taken: [u64; 2],
}

impl Turns {
    fn new(plan: &[(usize, u64)]) -> Arc<Self> {
        let state = State { plan: plan.iter().rev().copied().collect(), ended: [false; 2], taken: [0; 2] };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Waits until `who` may take a step.
    fn step(&self, who: usize) {
        let mut guard = self.state.lock().unwrap();
        loop {
            let state = &mut *guard;
            let turn = match state.plan.last_mut() {
                Some((_, 0)) => {
                    state.plan.pop();
                    self.changed.notify_all();
                    continue;
                }
                Some((turn, left)) => {
                    if *turn == who {
                        *left -= 1;
                    }
                    *turn
                }
                None => 0,
            };
            if turn == who || state.ended[turn] {
                state.taken[who] += 1;
                return;
            }
            guard = self.changed.wait(guard).unwrap();
        }
    }

    fn end(&self, who: usize) {
        self.state.lock().unwrap().ended[who] = true;
        self.changed.notify_all();
    }

    /// The disk as `who` uses it.
    fn disk(self: &Arc<Self>, fs: &FaultFs, who: usize) -> Disk {
        let (this, fs) = (self.clone(), fs.shared());
        disk(Arc::new(Stepped::new(move |op, path| {
            if is_shared(op, path) {
                this.step(who);
            }
            fs.clone()
        })))
    }
}

/// Whether a step may matter to others, or what others do to it: files that have no name yet do, while they are not locked.
fn is_shared(op: Op, path: &Path) -> bool {
    let temp = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMP_PREFIX));
    op == Op::Lock || !temp && op != Op::SyncDir
}

/// What somebody does.
#[derive(Clone, Copy)]
struct Act {
    name: &'static str,
    run: fn(&Actor) -> Done,
}

/// Words by which somebody finds itself overtaken: done again, it succeeds.
const OVERTAKEN: [&str; 7] = [
    "run `trawl lake rebuild` again",
    WAITS,
    "another writer ingested",
    "another writer replaced files that were being rewritten; run again",
    "was dropped, so nothing can be added to it",
    "the lake's suffix list changed during the ingest; run it again",
    "run `trawl lake rebuild`, then again",
];
/// It is done, and the lake's suffix list was changed meanwhile.
const WAITS: &str = "it waits for a rebuild";
/// The same beside a collector that spares nobody.
const COLLECTED: [&str; 2] = ["for dead and may have deleted its files", "expected an object, found none"];
/// Words by which somebody hears that there is nothing left to do.
const TOO_LATE: [&str; 2] = ["there is no dataset b", "expected a registered dataset, found 2"];

fn has(error: &str, words: &[&str]) -> bool {
    words.iter().any(|word| error.contains(word))
}

/// Runs both by `plan`: what they were told, and how many steps they took.
fn run(fs: &FaultFs, acts: [Act; 2], plan: &[(usize, u64)]) -> ([Done; 2], [u64; 2]) {
    let turns = Turns::new(plan);
    let told = std::thread::scope(|scope| {
        let threads = [0, 1].map(|who| {
            let turns = turns.clone();
            scope.spawn(move || {
                let store = turns.disk(fs, who);
                turns.step(who);
                let told = (acts[who].run)(&Actor::new(store, ["a", "b"][who]));
                turns.end(who);
                told
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    let taken = turns.state.lock().unwrap().taken;
    (told, taken)
}

/// What the lake shows, by the names of datasets.
type Shown = BTreeMap<String, Vec<(String, String)>>;

/// What is shown; and every question must be answered so.
fn shown(fs: &FaultFs) -> Shown {
    let (store, mut shelf) = (disk(fs.shared()), Shelf::default());
    let moment = shelf.moment(&store);
    let lake = Lake::open(store.clone(), Options::default()).unwrap();
    for question in QUESTIONS {
        assert_eq!(lake.ask(|pinned| question.ask(pinned)).unwrap(), question.answer(&shelf, &moment), "{question:?}");
    }
    let record = trawl_store::deny_record(&*store).unwrap().map(|record| record.deny).unwrap_or_default();
    assert_eq!(record, moment.manifest.deny, "the record of the deny list");
    let named = |(id, rows)| (moment.manifest.dataset(id).unwrap().info.name.clone(), rows);
    moment.current(&shelf).into_iter().map(named).filter(|(_, rows)| !rows.is_empty()).collect()
}

/// The lake after one act and then another.
fn after(base: &FaultFs, acts: [Act; 2]) -> Shown {
    let fs = base.reboot(Loss::None);
    for (act, name) in acts.iter().zip(["a", "b"]) {
        match (act.run)(&Actor::new(disk(fs.shared()), name)) {
            Err(error) if !has(&error, &TOO_LATE) => panic!("{}: {error}", act.name),
            _ => {}
        }
    }
    shown(&fs)
}

/// Runs a pair; tells what is wrong, and in which words somebody was overtaken.
fn check(fs: &FaultFs, acts: [Act; 2], plan: &[(usize, u64)], right: &[Shown], words: &mut BTreeSet<String>) -> Done {
    let (told, _) = run(fs, acts, plan);
    for (act, told) in acts.iter().zip(&told) {
        let Err(error) = told else { continue };
        if has(error, &TOO_LATE) {
            continue;
        }
        let spares_nobody = acts.iter().any(|act| act.name == GC_NOTHING.name);
        if !(has(error, &OVERTAKEN) || spares_nobody && has(error, &COLLECTED)) {
            return Err(format!("{} was told {error:?}", act.name));
        }
        words.insert(format!("{}: {error}", act.name));
        let again = Actor::new(disk(fs.shared()), "again");
        let repeated = if error == WAITS { again.rebuild(None) } else { (act.run)(&again) };
        // A drop that was given up after its commit is done, and says so when it is repeated.
        let undone = repeated.err().filter(|again| !has(again, &TOO_LATE));
        if let Some(again) = undone {
            return Err(format!("{} again, after {error:?}: {again:?}", act.name));
        }
    }
    let found = shown(fs);
    if !right.contains(&found) {
        return Err(format!("after {told:?}: {found:#?}"));
    }
    let store = disk(fs.shared());
    let left = trawl_store::Lake::open(store.clone()).unwrap().heartbeats().unwrap();
    let certain = |told: &Done| told.as_ref().err().is_none_or(|error| !has(error, &COLLECTED));
    if told.iter().all(certain) && !left.is_empty() {
        return Err(format!("heartbeats are left: {left:?}"));
    }
    Actor::new(store, "last").collect(Keep::Nothing)?;
    if shown(fs) != found { Err("collecting changed it".to_owned()) } else { Ok(()) }
}

/// Many pairs, each by many plans.
fn pairs(pairs: &[(&FaultFs, Act, Act)]) {
    let mut wrong = Vec::new();
    for (seed, (base, one, other)) in (1..).zip(pairs) {
        wrong.extend(pair(base, [*one, *other], seed));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One pair; tells what is wrong.
fn pair(base: &FaultFs, acts: [Act; 2], seed: u64) -> Vec<String> {
    let name = format!("{} beside {}", acts[0].name, acts[1].name);
    let right = [after(base, acts), after(base, [acts[1], acts[0]])];
    let steps = run(&base.reboot(Loss::None), acts, &[(0, u64::MAX)]).1;
    let sample = std::env::var("LAKE_INTERLEAVE").ok().and_then(|n| n.parse().ok()).unwrap_or(SAMPLE);
    let (mut dice, mut words, mut wrong) = (Dice(seed), BTreeSet::new(), Vec::new());
    for n in 0..sample {
        let first = dice.roll(2) as usize;
        let mut plan = vec![(first, 1 + dice.roll(steps[first])), (1 - first, 1 + dice.roll(steps[1 - first]))];
        // Every second time, more than once.
        for more in 0..if n % 2 == 0 { 0 } else { dice.roll(6) } as usize {
            plan.push(((first + more) % 2, 1 + dice.roll(40)));
        }
        plan.push((first, u64::MAX));
        if let Err(what) = check(&base.reboot(Loss::None), acts, &plan, &right, &mut words) {
            wrong.push(format!("{plan:?}: {what}"));
        }
    }
    println!("{name}: {steps:?} steps, {sample} plans, {} wrong; {words:?}", wrong.len());
    wrong.into_iter().take(4).map(|wrong| format!("{name}: {wrong}")).collect()
}

fn bad() -> DenyTarget {
    DenyTarget::Url("http://one.com/bad".into())
}

const INGEST: Act = Act {
    name: "ingest",
    run: |w| w.ingest("b", Mode::Append, &["http://one.com/9", "http://new.com/1", "http://one.com/bad"]),
};
const INGEST_OTHER: Act = Act { name: "ingest of more", run: |w| w.ingest("b", Mode::Append, &["http://one.com/10"]) };
const INGEST_NEW: Act =
    Act { name: "ingest of a new dataset", run: |w| w.ingest("n", Mode::Append, &["http://one.com/11"]) };
const INGEST_NEW_TOO: Act =
    Act { name: "ingest of it too", run: |w| w.ingest("n", Mode::Append, &["http://one.com/12"]) };
const REPLACE: Act = Act { name: "replace", run: |w| w.ingest("b", Mode::Replace, &["http://one.com/13"]) };
const PUBLISH: Act = Act { name: "publish", run: |w| w.publish() };
const COMPACT: Act = Act { name: "compact", run: |w| w.compact() };
const GC_DAY: Act = Act { name: "gc", run: |w| w.collect(Keep::ADay) };
const GC_NOTHING: Act = Act { name: "gc of all", run: |w| w.collect(Keep::Nothing) };
const DENY: Act = Act { name: "deny", run: |w| w.deny(&bad(), true) };
const PURGE: Act = Act { name: "purge", run: |w| w.purge() };
const DROP: Act = Act { name: "drop", run: |w| w.drop("b") };
const REBUILD: Act = Act { name: "rebuild", run: |w| w.rebuild(None) };
const REBUILD_LIST: Act = Act { name: "rebuild --psl", run: |w| w.rebuild(Some(OTHER_LIST)) };
const HIDE: Act = Act { name: "hide", run: |w| w.show("b", false) };

/// A lake in which something is denied that the files still have.
fn denying() -> FaultFs {
    let fs = base();
    Actor::new(disk(fs.shared()), "d").deny(&bad(), true).unwrap();
    fs
}

#[test]
fn two_of_a_kind() {
    let (base, denying) = (&base(), &denying());
    pairs(&[
        (base, INGEST, INGEST_OTHER),
        (base, INGEST_NEW, INGEST_NEW_TOO),
        (base, INGEST, INGEST),
        (base, REPLACE, INGEST),
        (base, COMPACT, COMPACT),
        (base, GC_DAY, GC_NOTHING),
        (base, REBUILD, REBUILD),
        (base, REBUILD_LIST, REBUILD),
        (base, REBUILD_LIST, INGEST_NEW),
        (base, REPLACE, REBUILD_LIST),
        (base, DROP, REPLACE),
        (base, DROP, COMPACT),
        (base, DENY, HIDE),
        (denying, PURGE, PURGE),
    ]);
}

#[test]
fn whoever_comes_while_more_is_brought_in() {
    let (base, denying) = (&base(), &denying());
    let others = [PUBLISH, COMPACT, GC_DAY, GC_NOTHING, DENY, PURGE, DROP, REBUILD, REBUILD_LIST, HIDE];
    let mut all: Vec<_> = others.map(|other| (base, INGEST, other)).into();
    all.push((denying, INGEST, PURGE));
    pairs(&all);
}

#[test]
fn whoever_comes_while_things_are_merged() {
    let (base, denying) = (&base(), &denying());
    let others = [PUBLISH, GC_DAY, GC_NOTHING, DENY, DROP, REBUILD, REBUILD_LIST, HIDE];
    let mut all: Vec<_> = others.map(|other| (base, COMPACT, other)).into();
    all.push((denying, COMPACT, PURGE));
    pairs(&all);
}

#[test]
fn whoever_comes_while_things_are_taken_out() {
    let (base, denying) = (&base(), &denying());
    let others = [PUBLISH, GC_DAY, GC_NOTHING, DENY, REBUILD, REBUILD_LIST, HIDE];
    let mut all: Vec<_> = others.iter().flat_map(|other| [(base, DROP, *other), (denying, PURGE, *other)]).collect();
    all.push((denying, PURGE, DROP));
    all.extend([GC_DAY, GC_NOTHING, HIDE, REBUILD, REBUILD_LIST].map(|other| (base, DENY, other)));
    pairs(&all);
}

#[test]
fn a_collector_beside_whoever_is_left() {
    let base = &base();
    let others = [PUBLISH, REBUILD, REBUILD_LIST, HIDE, INGEST_NEW, REPLACE];
    pairs(&others.iter().flat_map(|other| [(base, GC_DAY, *other), (base, GC_NOTHING, *other)]).collect::<Vec<_>>());
}
