//! A reader is paused at any of its steps, while a writer goes from any of its own to any other.

use crate::acts::{Actor, Disk, Done, Keep, OTHER_LIST, base, disk};
use crate::common::Dice;
use crate::film::Film;
use crate::questions::{QUESTIONS, Question, urls_of};
use crate::truth::Moment;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use trawl_ingest::Mode;
use trawl_io::fault::Stepped;
use trawl_io::{Fs, Op};
use trawl_query::{Filter, Lake, Options, Page, Principal, QueryError};
use trawl_store::manifest::DenyTarget;

/// Schedules of one reader beside one writer that are run, and frames that they begin in, unless `LAKE_INTERLEAVE` asks
/// for all.
const SAMPLE: usize = 40;
const BEGINNINGS: u64 = 20;

/// A disk that is at one frame of a film from one step on, and at another from a later one.
struct Projector {
    frames: Vec<Arc<dyn Fs>>,
    /// From which step on, which frame.
    plan: Mutex<Vec<(usize, usize)>>,
    step: AtomicUsize,
    trace: Mutex<Vec<(Op, PathBuf)>>,
}

impl Projector {
    fn new(film: &Film) -> Arc<Self> {
        let (frames, plan) = (film.frames.clone(), Mutex::new(vec![(0, 0)]));
        Arc::new(Self { frames, plan, step: AtomicUsize::new(0), trace: Mutex::default() })
    }

    fn disk(self: &Arc<Self>) -> Disk {
        let this = self.clone();
        disk(Arc::new(Stepped::new(move |op, path| {
            let step = this.step.fetch_add(1, Ordering::Relaxed);
            this.trace.lock().unwrap().push((op, path.to_owned()));
            this.frames[frame_at(&this.plan.lock().unwrap(), step)].clone()
        })))
    }

    /// Begins to count steps anew.
    fn play(&self, plan: &[(usize, usize)]) {
        *self.plan.lock().unwrap() = plan.to_vec();
        self.step.store(0, Ordering::Relaxed);
        self.trace.lock().unwrap().clear();
    }
}

fn frame_at(plan: &[(usize, usize)], step: usize) -> usize {
    plan.iter().rev().find(|(from, _)| *from <= step).unwrap().1
}

/// Who reads.
#[derive(Debug, Clone, Copy)]
enum Reader {
    /// Somebody who opens the lake and asks.
    Fresh(Question),
    /// A server that has answered the question before.
    Server(Question),
    /// Somebody who walks through pages of one row, opening the lake for each.
    Walk,
    /// A server that is asked for pages of one row.
    ServerWalk,
}

fn open(store: &Disk) -> Result<Lake, QueryError> {
    Lake::open(store.clone(), Options::default())
}

/// What a walk was about.
const WALK: (&str, u32) = ("one.com", 2);

/// Pages of one row: the version, the rows, and whether the version was gone before the end.
type Walked = (Option<String>, Vec<String>, bool);

fn walk(mut lake: impl FnMut() -> Result<Arc<Lake>, QueryError>) -> Result<Walked, QueryError> {
    let (mut cursor, mut urls, mut version) = (None, Vec::new(), None);
    loop {
        let page = Page { offset: 0, limit: 1, cursor: cursor.take() };
        match lake()?.ask(|pinned| pinned.urls(WALK.0, WALK.1, &page, &Filter::default(), &Principal::anyone())) {
            Ok(answer) => {
                assert!(
                    version.as_ref().is_none_or(|version| *version == answer.version),
                    "a walk keeps to its version"
                );
                version = Some(answer.version);
                urls.extend(answer.items.into_iter().map(|item| item.url));
                match answer.next_cursor {
                    Some(next) => cursor = Some(next),
                    None => return Ok((version, urls, false)),
                }
            }
            Err(error) if error.status() == 410 || error.status() == 404 => return Ok((version, urls, true)),
            Err(error) => return Err(error),
        }
    }
}

/// One reader beside one writer.
struct Show<'a> {
    film: &'a Film,
    reader: Reader,
    runs: usize,
}

impl Show<'_> {
    /// Runs the reader by `plan`; the steps it took, or what is wrong with its answer.
    fn run(&mut self, plan: &[(usize, usize)]) -> Result<Vec<(Op, PathBuf)>, String> {
        self.runs += 1;
        let projector = Projector::new(self.film);
        let store = projector.disk();
        let (first, last) = (plan[0].1, plan[plan.len() - 1].1);
        let moments = &self.film.moments[first..=last];
        match self.reader {
            Reader::Fresh(question) => {
                projector.play(plan);
                let answer = open(&store).and_then(|lake| lake.ask(|pinned| question.ask(pinned)));
                self.check(question, answer, moments)?;
            }
            Reader::Server(question) => {
                let lake = open(&store).unwrap();
                question.ask(&lake.pin().unwrap()).unwrap();
                projector.play(plan);
                let answer = lake.ask(|pinned| question.ask(pinned));
                self.check(question, answer, moments)?;
            }
            Reader::Walk => {
                projector.play(plan);
                self.check_walk(walk(|| open(&store).map(Arc::new)), first, last)?;
            }
            Reader::ServerWalk => {
                let lake = Arc::new(open(&store).unwrap());
                projector.play(plan);
                self.check_walk(walk(|| Ok(lake.clone())), first, last)?;
            }
        }
        Ok(std::mem::take(&mut *projector.trace.lock().unwrap()))
    }

    fn check(&self, question: Question, answer: Result<String, QueryError>, moments: &[Moment]) -> Result<(), String> {
        let answer = answer.map_err(|error| format!("{}: {error}", error.code()))?;
        if moments.iter().any(|moment| question.answer(&self.film.shelf, moment) == answer) {
            return Ok(());
        }
        Err(format!("{answer:?} was never true; at first {:?}", question.answer(&self.film.shelf, &moments[0])))
    }

    fn check_walk(&self, walked: Result<Walked, QueryError>, first: usize, last: usize) -> Result<(), String> {
        let (version, urls, ended) = walked.map_err(|error| format!("{}: {error}", error.code()))?;
        let moments = &self.film.moments[first..=last];
        let Some(version) = version else {
            let nothing = |m: &Moment| urls_of(m, &m.current(&self.film.shelf), WALK.0, WALK.1).is_empty();
            return if moments.iter().any(nothing) { Ok(()) } else { Err("nothing was found".to_owned()) };
        };
        if !moments.iter().any(|moment| moment.manifest.current_version == version) {
            return Err(format!("version {version} was not current"));
        }
        let shown = |m: &Moment| urls_of(m, &m.shown(&self.film.shelf, &version), WALK.0, WALK.1);
        for (n, url) in urls.iter().enumerate() {
            if urls[..n].contains(url) || !moments.iter().any(|moment| shown(moment).contains(url)) {
                return Err(format!("{url} was never there, or not twice"));
            }
        }
        let gone = moments.iter().any(|moment| !moment.lists(&version) || shown(moment).is_empty());
        if ended {
            return if gone { Ok(()) } else { Err(format!("version {version} is not gone")) };
        }
        match shown(&moments[0])
            .iter()
            .find(|url| !urls.contains(url) && moments.iter().all(|m| shown(m).contains(url)))
        {
            Some(missed) => Err(format!("{missed} was always there, and missed")),
            None => Ok(()),
        }
    }

    /// Schedules (step, from, to) that differ in what the reader sees: those at whose step both frames look alike are the
    /// schedules of the next step, and of equal ones the one with the latest beginning is the strictest.
    fn schedules(&mut self, dice: &mut Dice, all: bool) -> Result<Vec<(usize, usize, usize)>, String> {
        let (mut seen, mut schedules) = (HashSet::new(), Vec::new());
        let frames = self.film.frames.len();
        for from in (0..frames).rev().filter(|_| all || dice.roll(frames as u64) < BEGINNINGS) {
            let trace = self.run(&[(0, from)]).map_err(|wrong| format!("at rest in frame {from}: {wrong}"))?;
            let mut before = DefaultHasher::new();
            for (step, (op, path)) in trace.iter().enumerate() {
                let here = self.film.look(from, *op, path);
                for to in from + 1..frames {
                    if self.film.look(to, *op, path) != here && seen.insert((before.finish(), to)) {
                        schedules.push((step, from, to));
                    }
                }
                (path, here).hash(&mut before);
            }
        }
        Ok(schedules)
    }
}

/// What a writer does.
type Act<'a> = &'a dyn Fn(&Actor) -> Done;

/// Every kind of reader beside one writer.
fn explore(name: &str, act: Act<'_>) {
    let film = Film::of(&base(), act);
    let all = std::env::var_os("LAKE_INTERLEAVE").is_some();
    let mut readers: Vec<Reader> = QUESTIONS.iter().flat_map(|q| [Reader::Fresh(*q), Reader::Server(*q)]).collect();
    readers.extend([Reader::Walk, Reader::ServerWalk]);
    let (mut dice, mut wrong, mut found, mut runs) = (Dice(7), Vec::new(), 0, 0);
    for reader in readers {
        let mut show = Show { film: &film, reader, runs: 0 };
        let mut schedules = match show.schedules(&mut dice, all) {
            Ok(schedules) => schedules,
            Err(what) => {
                wrong.push(format!("{reader:?} {what}"));
                continue;
            }
        };
        found += schedules.len();
        if !all {
            while schedules.len() > SAMPLE {
                schedules.swap_remove(dice.roll(schedules.len() as u64) as usize);
            }
        }
        let rounds = schedules.len();
        for (step, from, to) in schedules {
            if let Err(what) = show.run(&[(0, from), (step, to)]) {
                wrong.push(format!("{reader:?}, {step} steps in frame {from}, the rest in {to}: {what}"));
            }
        }
        // Paused more than once.
        for _ in 0..rounds / 4 {
            let mut plan = vec![(0, dice.roll(film.frames.len() as u64) as usize)];
            for _ in 0..2 + dice.roll(4) {
                let (step, frame) = plan[plan.len() - 1];
                let rest = (film.frames.len() - frame) as u64;
                plan.push((step + dice.roll(20) as usize, frame + dice.roll(rest) as usize));
            }
            if let Err(what) = show.run(&plan) {
                wrong.push(format!("{reader:?}, {plan:?}: {what}"));
            }
        }
        runs += show.runs;
    }
    println!("{name}: {} frames, {found} schedules, {runs} runs, {} wrong", film.frames.len(), wrong.len());
    assert!(wrong.is_empty(), "{name}: {} of {runs}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

fn bad() -> DenyTarget {
    DenyTarget::Url("http://one.com/bad".into())
}

const MORE: [&str; 3] = ["http://one.com/9", "http://new.com/1", "http://sub.all.org/z"];

#[test]
fn more_is_brought_in() {
    explore("ingest", &|w| w.ingest("b", Mode::Append, &MORE));
}

#[test]
fn a_dataset_is_replaced() {
    explore("replace", &|w| w.ingest("b", Mode::Replace, &MORE));
}

#[test]
fn everything_is_merged_and_collected() {
    for keep in [Keep::Usual, Keep::ADay, Keep::Nothing] {
        explore(&format!("compact, gc {keep:?}"), &|w| {
            w.compact()?;
            w.collect(keep)
        });
    }
}

#[test]
fn rows_are_denied_and_purged() {
    for keep in [Keep::ADay, Keep::Nothing] {
        explore(&format!("deny, purge, gc {keep:?}"), &|w| {
            w.deny(&bad(), true)?;
            w.purge()?;
            w.collect(keep)
        });
    }
    explore("deny and allow", &|w| {
        w.deny(&DenyTarget::Domain("one.com".into()), true)?;
        w.deny(&DenyTarget::Domain("one.com".into()), false)?;
        w.deny(&DenyTarget::Dataset(2), true)
    });
}

#[test]
fn a_dataset_is_dropped() {
    for keep in [Keep::ADay, Keep::Nothing] {
        explore(&format!("drop, gc {keep:?}"), &|w| {
            w.drop("b")?;
            w.collect(keep)
        });
    }
}

#[test]
fn the_index_is_made_anew() {
    for list in [None, Some(OTHER_LIST)] {
        for keep in [Keep::ADay, Keep::Nothing] {
            explore(&format!("rebuild {list:?}, gc {keep:?}"), &|w| {
                w.rebuild(list)?;
                w.collect(keep)
            });
        }
    }
}

#[test]
fn a_dataset_is_hidden_and_shown() {
    explore("dataset set", &|w| {
        w.show("b", false)?;
        w.show("b", true)
    });
}

/// While one request opens what was just published, another is not sent to a version that was collected.
#[test]
fn a_server_is_asked_while_it_opens_a_version() {
    let film = Film::of(&base(), &|w| {
        w.compact()?;
        w.collect(Keep::Nothing)
    });
    let last = film.frames.len() - 1;
    let frame = Arc::new(AtomicUsize::new(0));
    let (now, frames) = (frame.clone(), film.frames.clone());
    // The first to come to a file of a segment waits until it is let go.
    let (came, comes) = std::sync::mpsc::channel();
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let (came, gone) = (Mutex::new(Some(came)), Mutex::new(gone));
    let stepped = Stepped::new(move |_, path| {
        let frame = now.load(Ordering::Relaxed);
        if frame == last && path.ends_with("segment.json") {
            let first = came.lock().unwrap().take();
            if let Some(first) = first {
                first.send(()).unwrap();
                gone.lock().unwrap().recv().unwrap();
            }
        }
        frames[frame].clone()
    });
    let lake = open(&disk(Arc::new(stepped))).unwrap();
    let question = Question::Urls("one.com", 2);
    frame.store(last, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let ask = || lake.ask(|pinned| question.ask(pinned)).map_err(|error| error.to_string());
        let opening = scope.spawn(ask);
        comes.recv().unwrap();
        let beside = scope.spawn(ask);
        // Whether it waits or answers, it must not have failed.
        std::thread::sleep(std::time::Duration::from_millis(50));
        go.send(()).unwrap();
        let right = question.answer(&film.shelf, &film.moments[last]);
        assert_eq!(opening.join().unwrap(), Ok(right.clone()));
        assert_eq!(beside.join().unwrap(), Ok(right));
    });
}
