//! Runs a reader beside a tape in every order, or in many, and compares what it sees with what was true.

use crate::beside::Beside;
use crate::look::Look;
use crate::tape::{Player, Tape, settings};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use trawl_model::UnixMillis;
use trawl_seqdb::{Clock, Error, Settings};

/// Schedules of one reader beside one tape, if not the usual few; `all` for every one with two switches.
const DEPTH: &str = "SEQDB_INTERLEAVE";
const USUAL: usize = 250;

/// What a writer does while a reader waits.
#[derive(Debug, Clone, Copy)]
pub enum Meanwhile {
    /// It comes to its end.
    Ends,
    /// It does an operation each time so many pauses are over.
    Slow(usize),
}

/// When the writer goes on: before the reader's operation, and until when.
#[derive(Debug, Clone)]
struct Plan {
    switches: Vec<(usize, usize)>,
    meanwhile: Meanwhile,
    /// Reads are not atomic: the writer goes on in the middle of one, here.
    torn: Option<usize>,
}

#[derive(Debug)]
pub struct Play {
    pub player: Player,
    plan: Plan,
    next: usize,
    target: usize,
    reads: usize,
    pauses: usize,
    tearing: bool,
    trace: Option<Vec<String>>,
}

impl Play {
    /// Where the next read is torn: the writer goes on between its two parts.
    pub fn tear(&mut self, offset: u64, len: usize) -> Option<usize> {
        let at = self.plan.torn?;
        self.plan.switches.get(self.next).filter(|(at, _)| *at <= self.reads)?;
        // Words are read at once.
        let first = usize::try_from(offset.next_multiple_of(8) - offset).unwrap();
        let words = len.saturating_sub(first).div_ceil(8);
        let at = (words > 0).then(|| first + at % words * 8).filter(|at| *at > 0);
        self.tearing = at.is_some();
        at
    }

    pub fn tick(&mut self, name: impl FnOnce() -> String) {
        while let Some((_, target)) = self.plan.switches.get(self.next).filter(|(at, _)| *at <= self.reads) {
            self.target = self.target.max(*target);
            self.next += 1;
        }
        // A read is short: few operations fit into it.
        let few = self.player.done + 3;
        let target = if std::mem::take(&mut self.tearing) { self.target.min(few) } else { self.target };
        self.player.go_to(target);
        self.reads += 1;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:4} {}", self.player.done, name()));
        }
    }

    fn pause(&mut self) {
        self.pauses += 1;
        assert!(self.pauses < 100_000, "a reader waits for ever");
        match self.plan.meanwhile {
            Meanwhile::Ends => self.target = usize::MAX,
            Meanwhile::Slow(n) if self.pauses.is_multiple_of(n) => self.target = self.player.done + 1,
            Meanwhile::Slow(_) => {}
        }
        self.player.go_to(self.target);
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:4} waits", self.player.done));
        }
    }
}

/// A reader: opens, looks, and reports.
pub type Reader = fn(&Settings, &mut Look);

/// How many schedules were run, and of how many with two switches.
#[derive(Debug, Default, Clone, Copy)]
struct Explored {
    run: usize,
    of: usize,
    answers: usize,
}

struct Outcome {
    faults: Vec<String>,
    reads: usize,
    answers: usize,
    trace: Vec<String>,
}

fn run(tape: &Arc<Tape>, plan: &Plan, reader: Reader, allowed: fn(&Error) -> bool, traced: bool) -> Outcome {
    let player = Player::new(tape);
    let (plan, trace) = (plan.clone(), traced.then(Vec::new));
    let mut play = Play { player, plan, next: 0, target: 0, reads: 0, pauses: 0, tearing: false, trace };
    while let Some((0, target)) = play.plan.switches.get(play.next) {
        play.target = *target;
        play.next += 1;
    }
    play.player.go_to(play.target);
    let disk = play.player.disk.clone();
    let play = Arc::new(Mutex::new(play));
    let waiting = play.clone();
    let clock = Clock::fixed(UnixMillis(5000)).pausing(move |_| waiting.lock().unwrap().pause());
    let settings = settings(Arc::new(Beside { disk, play: play.clone() }), clock);
    let mut look = Look::new(tape, &play, allowed);
    reader(&settings, &mut look);
    let mut play = play.lock().unwrap();
    let (reads, trace) = (play.reads, play.trace.take().unwrap_or_default());
    Outcome { faults: look.faults, reads, answers: look.answers, trace }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n.max(1)
    }
}

/// A reader and what it is called.
pub type Named = (&'static str, Reader);

/// Every reader beside every tape; panics with the first violations of each.
pub fn explore_all(kind: &str, tapes: &[(&str, Arc<Tape>)], readers: &[Named], allowed: fn(&Error) -> bool) {
    let mut violations = String::new();
    for (what, tape) in tapes {
        for (how, reader) in readers {
            let name = format!("{kind}: {what}, {how}");
            match explore(&name, tape, *reader, allowed) {
                Ok(Explored { run, of, answers }) => {
                    let len = tape.len();
                    if std::env::var_os(DEPTH).is_some() {
                        let told = format!("{run} schedules ({of} with two switches), {answers} answers");
                        std::io::stdout().write_all(format!("{name}: {len} operations, {told}\n").as_bytes()).unwrap();
                    }
                    assert!(answers >= run, "{name} says nothing");
                }
                Err(text) => violations += &text,
            }
        }
    }
    assert!(violations.is_empty(), "{violations}");
}

fn explore(name: &str, tape: &Arc<Tape>, reader: Reader, allowed: fn(&Error) -> bool) -> Result<Explored, String> {
    let depth = std::env::var(DEPTH).ok();
    let everything = depth.as_deref() == Some("all");
    let limit = depth.and_then(|n| n.parse().ok()).unwrap_or(if everything { usize::MAX } else { USUAL });
    let mut found = Explored::default();
    let mut faults: BTreeMap<String, (usize, Plan)> = BTreeMap::new();
    let mut one = |plan: Plan, found: &mut Explored| {
        let outcome = run(tape, &plan, reader, allowed, false);
        found.run += 1;
        found.answers += outcome.answers;
        for fault in outcome.faults {
            faults.entry(fault).or_insert_with(|| (0, plan.clone())).0 += 1;
        }
        outcome.reads
    };
    let end = tape.len();
    let plan = |switches: &[(usize, usize)], meanwhile| Plan { switches: switches.to_vec(), meanwhile, torn: None };
    // Nobody moves while the reader is at work.
    let reads: Vec<usize> = (0..=end).map(|j| one(plan(&[(0, j)], Meanwhile::Ends), &mut found)).collect();
    found.of = (0..=end).map(|j| (reads[j].max(1) - 1) * (end - j)).sum();
    if found.of <= limit {
        for (j, reads) in reads.iter().enumerate() {
            for i in 1..*reads {
                for k in j + 1..=end {
                    one(plan(&[(0, j), (i, k)], Meanwhile::Ends), &mut found);
                }
            }
        }
    }
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ name.bytes().fold(0u64, |n, b| n.wrapping_mul(131) + u64::from(b)));
    let samples = if everything { found.of.min(20_000) } else { limit };
    for n in 0..samples {
        let j = dice.roll(end);
        let mut switches = vec![(0, j)];
        let (mut i, mut k) = (0, j);
        let most = if found.of > limit && n % 2 == 0 { 1 } else { 1 + dice.roll(4) };
        for _ in 0..most {
            i += 1 + dice.roll(reads[j]);
            // Near ahead as often as far.
            k += 1 + if dice.roll(2) == 0 { dice.roll(4) } else { dice.roll(end.saturating_sub(k)) };
            switches.push((i, k.min(end)));
        }
        let meanwhile = [Meanwhile::Ends, Meanwhile::Slow(1), Meanwhile::Slow(2), Meanwhile::Slow(20)][dice.roll(4)];
        let torn = (dice.roll(4) == 0).then(|| dice.roll(100));
        one(Plan { switches, meanwhile, torn }, &mut found);
    }
    if faults.is_empty() {
        return Ok(found);
    }
    let mut text = format!("{name}: {} kinds of violations in {} schedules\n", faults.len(), found.run);
    let mut ranked: Vec<_> = faults.into_iter().collect();
    ranked.sort_by_key(|(_, (_, plan))| plan.switches.len());
    for (n, (fault, (times, plan))) in ranked.iter().enumerate().take(6) {
        text += &format!("- {fault}: {times} times, as with {:?}\n", plan);
        if n < 2 {
            for (at, to) in &plan.switches {
                text += &format!("    before {at}: up to {to}, {}\n", tape.name(*to));
            }
            for line in run(tape, plan, reader, allowed, true).trace {
                text += &format!("      {line}\n");
            }
        }
    }
    Err(text)
}
