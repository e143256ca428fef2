//! What a reader has seen, compared with what was true.

use crate::explore::Play;
use crate::tape::{Model, Tape};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use trawl_seqdb::Error;

/// Keys and values in the order they came.
pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// What a reader has seen, to be judged.
pub struct Look {
    tape: Arc<Tape>,
    play: Arc<Mutex<Play>>,
    from: usize,
    pub faults: Vec<String>,
    allowed: fn(&Error) -> bool,
    /// Answers that were judged.
    pub answers: usize,
}

impl Look {
    pub fn new(tape: &Arc<Tape>, play: &Arc<Mutex<Play>>, allowed: fn(&Error) -> bool) -> Self {
        let (tape, play) = (tape.clone(), play.clone());
        let mut look = Look { tape, play, from: 0, faults: Vec::new(), allowed, answers: 0 };
        look.begin();
        look
    }

    fn position(&self) -> usize {
        self.play.lock().unwrap().player.done
    }

    /// From now on what was shown before this moment must be seen.
    pub fn begin(&mut self) {
        self.from = self.position();
    }

    /// The states that were true since the reader began, the last of those that were shown by then first.
    fn window(&self) -> Vec<&Model> {
        let to = self.position();
        let steps = &self.tape.steps;
        let low = steps.iter().rposition(|step| step.shown && step.done <= self.from).map_or(0, |n| n + 1);
        let high = steps.iter().rposition(|step| step.begun < to).map_or(0, |n| n + 1).max(low);
        self.tape.states().skip(low).take(high - low + 1).collect()
    }

    /// The state of the last sync before the reader began, and all after: entries of these may not be marked deleted yet.
    fn since_sync(&self) -> Vec<&Model> {
        let low = self.tape.steps.iter().rposition(|step| step.synced && step.done <= self.from).map_or(0, |n| n + 1);
        self.tape.states().skip(low).collect()
    }

    fn fault(&mut self, what: String) {
        self.faults.push(what);
    }

    /// An error; nothing if it is one that is allowed.
    pub fn error(&mut self, what: &str, error: &Error) {
        self.answers += 1;
        if !(self.allowed)(error) {
            self.fault(format!("{what}: {error}"));
        }
    }

    /// The answer for one key.
    pub fn one(&mut self, key: &[u8], found: Result<Option<Vec<u8>>, Error>) {
        let found = match found {
            Ok(found) => found,
            Err(e) => return self.error(&format!("{:?}", show(key)), &e),
        };
        self.answers += 1;
        let window = self.window();
        if !window.iter().any(|model| model.get(key) == found.as_ref()) {
            let all: BTreeSet<String> = window.iter().map(|model| shown(model.get(key))).collect();
            self.fault(format!("{:?} is {} instead of one of {all:?}", show(key), shown(found.as_ref())));
        }
    }

    /// The answer for everything: each key at most once, and what got another key meanwhile is there by one of them.
    pub fn all(&mut self, found: Result<Pairs, Error>) {
        if let Ok(found) = &found {
            self.always(found);
        }
        self.named(found);
    }

    /// The same where what gets another key meanwhile need not be there.
    pub fn named(&mut self, found: Result<Pairs, Error>) {
        let Some(found) = self.unfail(found) else { return };
        let mut once = BTreeSet::new();
        for (key, _) in &found {
            if !once.insert(key) {
                self.fault(format!("{:?} twice", show(key)));
            }
        }
        self.each(found);
    }

    /// The answer for everything that was not there before the writer began.
    pub fn new_ones(&mut self, found: Result<Pairs, Error>) {
        let Some(found) = self.unfail(found) else { return };
        let (window, first) = (self.window(), &self.tape.first);
        let is_new = |key: &Vec<u8>, value: &Vec<u8>| first.get(key) != Some(value);
        let mut faults = Vec::new();
        for (key, value) in &found {
            if !is_new(key, value) || !window.iter().any(|model| model.get(key) == Some(value)) {
                faults.push(format!("of all that is new {:?} is {}", show(key), shown(Some(value))));
            }
        }
        for (key, value) in window[0].iter().filter(|(key, value)| is_new(key, value)) {
            let always = window.iter().all(|model| model.get(key) == Some(value));
            if always && !found.iter().any(|(k, v)| k == key && v == value) {
                faults.push(format!("of all that is new {:?} is missing", show(key)));
            }
        }
        self.faults.extend(faults);
    }

    /// The same where an entry that was replaced since the last sync may still be there: the last one counts.
    pub fn entries(&mut self, found: Result<Pairs, Error>) {
        let Some(found) = self.unfail(found) else { return };
        self.since(&found);
        let last: BTreeMap<_, _> = found.into_iter().collect();
        self.each(last.into_iter().collect());
    }

    /// What a list that may be behind has: each of it was true since the last sync.
    pub fn listed(&mut self, found: Result<Pairs, Error>) {
        if let Some(found) = self.unfail(found) {
            self.since(&found);
        }
    }

    fn since(&mut self, found: &Pairs) {
        for (key, value) in found {
            if !self.since_sync().iter().any(|model| model.get(key) == Some(value)) {
                self.fault(format!("an entry of {:?} is {}", show(key), shown(Some(value))));
            }
        }
    }

    fn unfail(&mut self, found: Result<Pairs, Error>) -> Option<Pairs> {
        self.answers += 1;
        found.map_err(|e| self.error("all", &e)).ok()
    }

    fn each(&mut self, found: Pairs) {
        let found: BTreeMap<_, _> = found.into_iter().collect();
        let mut faults = Vec::new();
        let window = self.window();
        let keys: BTreeSet<&Vec<u8>> = window.iter().flat_map(|model| model.keys()).chain(found.keys()).collect();
        for key in keys {
            if !window.iter().any(|model| model.get(key) == found.get(key)) {
                let all: BTreeSet<String> = window.iter().map(|model| shown(model.get(key))).collect();
                let is = shown(found.get(key));
                faults.push(format!("of all {:?} is {is} instead of one of {all:?}", show(key)));
            }
        }
        self.faults.extend(faults);
    }

    /// What was there all the time, by whatever key, is there.
    fn always(&mut self, found: &Pairs) {
        let window = self.window();
        let always = |value: &Vec<u8>| window.iter().all(|model| model.values().any(|v| v == value));
        let missing = window[0].values().filter(|value| always(value) && !found.iter().any(|(_, v)| v == *value));
        let faults: Vec<_> = missing.map(|value| format!("of all, {} is missing", shown(Some(value)))).collect();
        self.faults.extend(faults);
    }

    /// All keys there ever were, and one that never was.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        let all: BTreeSet<Vec<u8>> = self.tape.states().flat_map(|model| model.keys().cloned()).collect();
        all.into_iter().chain([b"never".to_vec()]).collect()
    }
}

fn show(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().take(24).collect()
}

fn shown(value: Option<&Vec<u8>>) -> String {
    value.map_or("absent".into(), |value| format!("{} ({} bytes)", show(value), value.len()))
}
