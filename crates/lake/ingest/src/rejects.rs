//! Items that could not be taken: counted always, kept in a file up to a limit. Of what is denied only the number is.

use crate::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use trawl_lists::BadItem;
use trawl_model::{Aside, DoorError};
use trawl_store::denial::Denied;
use trawl_store::{HashedUpload, Store};

/// One line of the file.
#[derive(Serialize)]
struct Line<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    text: &'a str,
}

/// Takes rejected items from any thread. The file appears when it is finished, if there is anything in it.
pub(crate) struct Rejects<'a> {
    store: &'a dyn Store,
    path: String,
    limit: u64,
    denied: Option<&'a Denied<'a>>,
    denied_total: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    counts: BTreeMap<String, u64>,
    total: u64,
    aside: BTreeMap<String, u64>,
    oddities: BTreeMap<String, Oddity>,
    file: Option<HashedUpload>,
    failed: Option<crate::Error>,
}

/// What was rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// Items, by reason.
    pub counts: BTreeMap<String, u64>,
    /// Items.
    pub total: u64,
    /// Where they are, in the store; `None` if there are none.
    pub file: Option<String>,
    /// xxh3_64 of that file, 16 hex digits: a task hands it on, and who takes it compares.
    #[serde(default)]
    pub hash: Option<String>,
    /// Items that the deny list covers, rejected or not.
    pub denied: u64,
    /// Records that are not about a URL, by their type.
    #[serde(default)]
    pub aside: BTreeMap<String, u64>,
    /// What is strange about records that were taken, by its code.
    #[serde(default)]
    pub oddities: BTreeMap<String, Oddity>,
}

/// Records that were taken and may not be meant so, and where the first one is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Oddity {
    /// How many.
    pub count: u64,
    /// The source of the first one.
    pub source: String,
    /// Where it begins there.
    pub offset: u64,
    /// Its line, from 1, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// Adds an oddity to those of its code. Threads find them in any order, so the first is that of the least source and offset.
fn add_oddity(all: &mut BTreeMap<String, Oddity>, code: &str, found: Oddity) {
    let Some(known) = all.get_mut(code) else { return drop(all.insert(code.to_owned(), found)) };
    let count = known.count + found.count;
    if (&found.source, found.offset) < (&known.source, known.offset) {
        *known = found;
    }
    known.count = count;
}

impl Rejected {
    /// Adds what another part of the same work rejected; their files are kept apart.
    pub(crate) fn add(&mut self, other: &Self) {
        let sum = |into: &mut BTreeMap<String, u64>, from: &BTreeMap<String, u64>| {
            from.iter().for_each(|(key, n)| *into.entry(key.clone()).or_default() += n);
        };
        sum(&mut self.counts, &other.counts);
        sum(&mut self.aside, &other.aside);
        other.oddities.iter().for_each(|(code, found)| add_oddity(&mut self.oddities, code, found.clone()));
        self.total += other.total;
        self.denied += other.denied;
    }
}

impl<'a> Rejects<'a> {
    /// `denied` is what leaves no text behind.
    pub fn new(store: &'a dyn Store, path: String, limit: u64, denied: Option<&'a Denied<'a>>) -> Self {
        Self { store, path, limit, denied, denied_total: AtomicU64::new(0), inner: Mutex::default() }
    }

    /// Counts a record that is left out because it is denied; tells whether it is.
    pub fn leaves_out(&self, host: &str, lake_url: &str) -> bool {
        let denied = self.denied.is_some_and(|denied| denied.list().row(host, lake_url));
        if denied {
            self.denied_total.fetch_add(1, Relaxed);
        }
        denied
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// An item that a source could not make a record of.
    pub fn item(&self, error: &DoorError) {
        let place = error.at.as_ref();
        let (source, offset) = (place.map(|p| &*p.file), place.map(|p| p.offset));
        match error.source.downcast_ref::<BadItem>() {
            Some(bad) => self.add(Line { code: bad.code, message: &bad.message, source, offset, text: &bad.text }),
            None => {
                let message = error.source.to_string();
                self.add(Line { code: "item", message: &message, source, offset, text: "" });
            }
        }
    }

    /// A record that is not about a URL, or what is strange about one.
    pub fn aside(&self, source: &str, offset: u64, what: Aside<'_>) {
        let mut inner = self.lock();
        match what {
            Aside::Record(kind) => match inner.aside.get_mut(kind) {
                Some(count) => *count += 1,
                None => drop(inner.aside.insert(kind.to_owned(), 1)),
            },
            Aside::Oddity(code, line) => {
                add_oddity(&mut inner.oddities, code, Oddity { count: 1, source: source.to_owned(), offset, line });
            }
        }
    }

    /// A URL that was refused.
    pub fn url(&self, source: &str, offset: u64, code: &str, message: &str, url: &str) {
        let mut end = url.len().min(BadItem::MAX_TEXT);
        while !url.is_char_boundary(end) {
            end -= 1;
        }
        let text = url.get(..end).unwrap_or_default();
        self.add(Line { code, message, source: Some(source), offset: Some(offset), text });
    }

    fn add(&self, line: Line<'_>) {
        if self.denied.is_some_and(|denied| denied.is_named_in(line.text)) {
            self.denied_total.fetch_add(1, Relaxed);
            return;
        }
        let mut inner = self.lock();
        *inner.counts.entry(line.code.to_owned()).or_default() += 1;
        inner.total += 1;
        if inner.total > self.limit || inner.failed.is_some() {
            return;
        }
        if let Err(error) = self.write(&mut inner, &line) {
            inner.failed = Some(error);
        }
    }

    fn write(&self, inner: &mut Inner, line: &Line<'_>) -> Result<()> {
        if inner.file.is_none() {
            inner.file = Some(HashedUpload::begin(self.store, &self.path)?);
        }
        let Some(file) = &mut inner.file else { return Ok(()) };
        let mut bytes = serde_json::to_vec(line).unwrap_or_default();
        bytes.push(b'\n');
        file.write_all(&bytes).map_err(|e| trawl_io::Error::io(trawl_io::Op::Write, &self.path, e))?;
        Ok(())
    }

    /// Completes the file.
    pub fn finish(self) -> Result<Rejected> {
        let inner = self.inner.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(error) = inner.failed {
            return Err(error);
        }
        let (file, hash) = match inner.file {
            None => (None, None),
            Some(file) => {
                let (_, hash) = file.finish()?;
                (Some(self.path), Some(format!("{hash:016x}")))
            }
        };
        let denied = self.denied_total.into_inner();
        let Inner { counts, total, aside, oddities, .. } = inner;
        Ok(Rejected { counts, total, file, hash, denied, aside, oddities })
    }
}
