//! Inodes, operations and their faults.

use super::{Failure, Fault};
use crate::{Error, Op, Result};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What was asked of a [`super::FaultFs`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations that change or sync something; the unit of [`super::FaultFs::cut_after`].
    pub ops: u64,
    /// Reads of file contents.
    pub reads: u64,
    /// Writes to files.
    pub writes: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Syncs of directories.
    pub dir_syncs: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

/// A change to a file's contents.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

/// A change to a directory's names.
#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Link { name: OsString, node: usize },
    Unlink { name: OsString },
    Rename { from: OsString, to: OsString, node: usize },
}

pub(super) type Names = BTreeMap<OsString, usize>;

#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Contents are shared until they differ: most files of a disk are the same before and after a reboot.
    File {
        now: Arc<Vec<u8>>,
        synced: Arc<Vec<u8>>,
        changes: Vec<Change>,
    },
    Dir {
        now: Names,
        synced: Names,
        changes: Vec<NameChange>,
    },
}

impl Node {
    pub fn dir(names: Names) -> Self {
        Node::Dir { synced: names.clone(), now: names, changes: Vec::new() }
    }

    pub fn file(bytes: Arc<Vec<u8>>) -> Self {
        Node::File { synced: bytes.clone(), now: bytes, changes: Vec::new() }
    }
}

impl Change {
    pub fn apply(&self, contents: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => put(contents, *offset, bytes),
            Change::SetLen(len) => contents.resize(*len, 0),
        }
    }
}

/// Writes `bytes` at `offset`; a gap becomes zeros.
pub(super) fn put(contents: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset.saturating_add(bytes.len());
    if contents.len() < end {
        contents.resize(end, 0);
    }
    if let Some(target) = contents.get_mut(offset..end) {
        target.copy_from_slice(bytes);
    }
}

impl NameChange {
    pub fn apply(&self, names: &mut Names) {
        match self {
            NameChange::Link { name, node } => {
                names.insert(name.clone(), *node);
            }
            NameChange::Unlink { name } => {
                names.remove(name);
            }
            NameChange::Rename { from, to, node } => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

/// How an operation goes.
pub(super) enum Step {
    /// As asked.
    Go,
    /// The power goes while it is under way: it takes effect in memory only.
    Cut(io::Error),
    /// It fails, a write after this many bytes.
    Fail(io::Error, usize),
}

/// Who has a lock.
#[derive(Debug)]
pub(super) enum Locked {
    /// One handle alone.
    Alone(u64),
    /// Any number of them.
    Shared(BTreeSet<u64>),
}

#[derive(Debug)]
pub(super) struct Disk {
    pub nodes: Vec<Node>,
    pub counts: Counts,
    pub faults: Vec<Fault>,
    pub capacity: Option<u64>,
    /// Nodes locked, with the handles that have the lock.
    pub locks: BTreeMap<usize, Locked>,
    /// Handles open on each node, so that a removed file takes room until closed.
    pub open: BTreeMap<usize, u64>,
    cut_at: Option<u64>,
    cut: bool,
}

/// The node of the root directory.
pub(super) const ROOT: usize = 0;

impl Default for Disk {
    fn default() -> Self {
        Disk::with(vec![Node::dir(Names::new())])
    }
}

fn powerless() -> io::Error {
    io::Error::other("power cut")
}

impl Disk {
    pub fn with(nodes: Vec<Node>) -> Self {
        Disk {
            nodes,
            counts: Counts::default(),
            faults: Vec::new(),
            capacity: None,
            locks: BTreeMap::new(),
            open: BTreeMap::new(),
            cut_at: None,
            cut: false,
        }
    }

    pub fn cut_after(&mut self, n: u64) {
        self.cut_at = Some(self.counts.ops + n);
    }

    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether calls that change nothing work.
    pub fn alive(&self, op: Op, path: &Path) -> Result<()> {
        if self.cut { Err(Error::io(op, path, powerless())) } else { Ok(()) }
    }

    /// Counts an operation and decides how it goes.
    pub fn step(&mut self, op: Op, path: &Path) -> Result<Step> {
        self.alive(op, path)?;
        let index = self.counts.ops;
        if op != Op::Read {
            self.counts.ops += 1;
            if self.cut_at == Some(index) {
                self.cut = true;
                return Ok(Step::Cut(powerless()));
            }
        }
        Ok(match self.fault(op) {
            None => Step::Go,
            Some((failure, keep)) => Step::Fail(failure.error(), keep),
        })
    }

    /// Like `step`, for operations that either take effect or do not.
    pub fn whole_step(&mut self, op: Op, path: &Path) -> Result<Result<()>> {
        match self.step(op, path)? {
            Step::Go => Ok(Ok(())),
            Step::Cut(e) => Ok(Err(Error::io(op, path, e))),
            Step::Fail(e, _) => Err(Error::io(op, path, e)),
        }
    }

    fn fault(&mut self, op: Op) -> Option<(Failure, usize)> {
        let matching = |f: &Fault| match f.op {
            Some(wanted) => wanted == op,
            None => op != Op::Read,
        };
        let mut hit = None;
        for fault in self.faults.iter_mut().filter(|f| matching(f)) {
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if hit.is_none() {
                fault.times -= 1;
                hit = Some((fault.failure, fault.keep_bytes));
            }
        }
        self.faults.retain(|f| f.times > 0);
        hit
    }

    /// Bytes in files that have a name or are open.
    pub fn used(&self) -> u64 {
        let mut linked: Vec<usize> = self.open.keys().copied().collect();
        for node in &self.nodes {
            if let Node::Dir { now, .. } = node {
                linked.extend(now.values());
            }
        }
        linked.sort_unstable();
        linked.dedup();
        linked.iter().filter_map(|&n| self.contents(n)).map(|c| c.len() as u64).sum()
    }

    pub fn contents(&self, node: usize) -> Option<&Vec<u8>> {
        match self.nodes.get(node) {
            Some(Node::File { now, .. }) => Some(now),
            _ => None,
        }
    }

    /// Takes a lock for `handle`, or turns the one it has into the other kind. `false`: another handle is in the way.
    pub fn take_lock(&mut self, node: usize, handle: u64, alone: bool) -> bool {
        let others = match self.locks.get(&node) {
            None => BTreeSet::new(),
            Some(Locked::Alone(holder)) if *holder == handle => BTreeSet::new(),
            Some(Locked::Alone(_)) => return false,
            Some(Locked::Shared(holders)) => holders.iter().copied().filter(|h| *h != handle).collect(),
        };
        if alone && !others.is_empty() {
            return false;
        }
        let holders = others.into_iter().chain([handle]).collect();
        self.locks.insert(node, if alone { Locked::Alone(handle) } else { Locked::Shared(holders) });
        true
    }

    /// Gives back the lock that `handle` has, if it has one.
    pub fn drop_lock(&mut self, node: usize, handle: u64) {
        let free = match self.locks.get_mut(&node) {
            None => false,
            Some(Locked::Alone(holder)) => *holder == handle,
            Some(Locked::Shared(holders)) => {
                holders.remove(&handle);
                holders.is_empty()
            }
        };
        if free {
            self.locks.remove(&node);
        }
    }

    /// Makes a change to a file's contents, to be made durable by a sync.
    pub fn change(&mut self, node: usize, change: Change) {
        if let Some(Node::File { now, changes, .. }) = self.nodes.get_mut(node) {
            change.apply(Arc::make_mut(now));
            changes.push(change);
        }
    }
}

impl Failure {
    pub(super) fn error(self) -> io::Error {
        match self {
            Failure::Io => Errno::IO.into(),
            Failure::NoSpace => Errno::NOSPC.into(),
        }
    }
}
