//! Directories and names of the faulty file system.

use super::disk::{Change, Disk, NameChange, Names, Node, ROOT, Step};
use crate::fs::{Entry, FileId, Metadata, Mode};
use crate::{Error, Op, Result};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

fn fail(op: Op, path: &Path, kind: io::ErrorKind) -> Error {
    Error::io(op, path, kind.into())
}

impl Disk {
    /// The node a path names. Relative paths start at the root, as absolute ones do.
    fn find(&self, op: Op, path: &Path) -> Result<usize> {
        let mut node = ROOT;
        for part in path.components() {
            let name = match part {
                Component::RootDir | Component::CurDir => continue,
                Component::Normal(name) => name,
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(fail(op, path, io::ErrorKind::InvalidInput));
                }
            };
            let names = self.names(node).ok_or_else(|| fail(op, path, io::ErrorKind::NotADirectory))?;
            node = *names.get(name).ok_or_else(|| fail(op, path, io::ErrorKind::NotFound))?;
        }
        Ok(node)
    }

    /// The directory a path's last name is in, and that name.
    fn place(&self, op: Op, path: &Path) -> Result<(usize, OsString)> {
        let name = path.file_name().ok_or_else(|| fail(op, path, io::ErrorKind::AlreadyExists))?;
        let dir = self.find(op, path.parent().unwrap_or(Path::new("")))?;
        match self.names(dir) {
            Some(_) => Ok((dir, name.to_owned())),
            None => Err(fail(op, path, io::ErrorKind::NotADirectory)),
        }
    }

    fn names(&self, node: usize) -> Option<&Names> {
        match self.nodes.get(node) {
            Some(Node::Dir { now, .. }) => Some(now),
            _ => None,
        }
    }

    fn lookup(&self, dir: usize, name: &OsStr) -> Option<usize> {
        self.names(dir)?.get(name).copied()
    }

    fn change_names(&mut self, dir: usize, change: NameChange) {
        if let Some(Node::Dir { now, changes, .. }) = self.nodes.get_mut(dir) {
            change.apply(now);
            changes.push(change);
        }
    }

    fn add(&mut self, dir: usize, name: OsString, node: Node) -> usize {
        self.nodes.push(node);
        let node = self.nodes.len() - 1;
        self.change_names(dir, NameChange::Link { name, node });
        node
    }

    pub fn open(&mut self, path: &Path, mode: Mode) -> Result<usize> {
        let op = if matches!(mode, Mode::Read | Mode::Write) { Op::Open } else { Op::Create };
        self.alive(op, path)?;
        let (dir, name) = self.place(op, path)?;
        match (self.lookup(dir, &name), mode) {
            (Some(_), Mode::CreateNew) => Err(fail(op, path, io::ErrorKind::AlreadyExists)),
            (Some(node), _) if self.names(node).is_some() => Err(fail(op, path, io::ErrorKind::IsADirectory)),
            (Some(node), Mode::Truncate) => {
                let result = self.whole_step(op, path)?;
                self.change(node, Change::SetLen(0));
                result.map(|()| node)
            }
            (Some(node), _) => Ok(node),
            (None, Mode::Read | Mode::Write) => Err(fail(op, path, io::ErrorKind::NotFound)),
            (None, _) => {
                let result = self.whole_step(op, path)?;
                let node = self.add(dir, name, Node::file(Arc::default()));
                result.map(|()| node)
            }
        }
    }

    pub fn create_dir(&mut self, path: &Path) -> Result<()> {
        self.alive(Op::CreateDir, path)?;
        let (dir, name) = self.place(Op::CreateDir, path)?;
        if self.lookup(dir, &name).is_some() {
            return Err(fail(Op::CreateDir, path, io::ErrorKind::AlreadyExists));
        }
        let result = self.whole_step(Op::CreateDir, path)?;
        self.add(dir, name, Node::dir(Names::new()));
        result
    }

    pub fn rename(&mut self, from: &Path, to: &Path, replace: bool) -> Result<()> {
        self.alive(Op::Rename, to)?;
        let (from_dir, from_name) = self.place(Op::Rename, from)?;
        let (to_dir, to_name) = self.place(Op::Rename, to)?;
        let node = self.lookup(from_dir, &from_name).ok_or_else(|| fail(Op::Rename, from, io::ErrorKind::NotFound))?;
        if let Some(old) = self.lookup(to_dir, &to_name) {
            if !replace {
                return Err(fail(Op::Rename, to, io::ErrorKind::AlreadyExists));
            }
            match (self.names(node), self.names(old)) {
                (None, Some(_)) => return Err(fail(Op::Rename, to, io::ErrorKind::IsADirectory)),
                (Some(_), None) => return Err(fail(Op::Rename, to, io::ErrorKind::NotADirectory)),
                (Some(_), Some(names)) if !names.is_empty() => {
                    return Err(fail(Op::Rename, to, io::ErrorKind::DirectoryNotEmpty));
                }
                _ => {}
            }
        }
        let result = self.whole_step(Op::Rename, to)?;
        if from_dir == to_dir {
            self.change_names(from_dir, NameChange::Rename { from: from_name, to: to_name, node });
        } else {
            self.change_names(to_dir, NameChange::Link { name: to_name, node });
            self.change_names(from_dir, NameChange::Unlink { name: from_name });
        }
        result
    }

    pub fn remove(&mut self, path: &Path, want_dir: bool) -> Result<()> {
        self.alive(Op::Remove, path)?;
        let (dir, name) = self.place(Op::Remove, path)?;
        let node = self.lookup(dir, &name).ok_or_else(|| fail(Op::Remove, path, io::ErrorKind::NotFound))?;
        match (self.names(node), want_dir) {
            (None, true) => return Err(fail(Op::Remove, path, io::ErrorKind::NotADirectory)),
            (Some(_), false) => return Err(fail(Op::Remove, path, io::ErrorKind::IsADirectory)),
            (Some(names), true) if !names.is_empty() => {
                return Err(fail(Op::Remove, path, io::ErrorKind::DirectoryNotEmpty));
            }
            _ => {}
        }
        let result = self.whole_step(Op::Remove, path)?;
        self.change_names(dir, NameChange::Unlink { name });
        result
    }

    pub fn sync_dir(&mut self, path: &Path) -> Result<()> {
        let node = self.find(Op::SyncDir, path)?;
        let step = self.step(Op::SyncDir, path)?;
        self.counts.dir_syncs += 1;
        let Some(Node::Dir { synced, changes, .. }) = self.nodes.get_mut(node) else {
            return Err(fail(Op::SyncDir, path, io::ErrorKind::NotADirectory));
        };
        match step {
            Step::Go => {
                for change in changes.drain(..) {
                    change.apply(synced);
                }
                Ok(())
            }
            Step::Cut(e) => Err(Error::io(Op::SyncDir, path, e)),
            Step::Fail(e, _) => {
                changes.clear();
                Err(Error::io(Op::SyncDir, path, e))
            }
        }
    }

    pub fn list(&self, path: &Path) -> Result<Vec<Entry>> {
        self.alive(Op::List, path)?;
        let node = self.find(Op::List, path)?;
        let names = self.names(node).ok_or_else(|| fail(Op::List, path, io::ErrorKind::NotADirectory))?;
        Ok(names.iter().map(|(name, &n)| Entry { name: name.clone(), is_dir: self.names(n).is_some() }).collect())
    }

    pub fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.alive(Op::Metadata, path)?;
        self.find(Op::Metadata, path).map(|node| self.metadata_of(node))
    }

    pub fn metadata_of(&self, node: usize) -> Metadata {
        Metadata {
            len: self.contents(node).map_or(0, |c| c.len() as u64),
            is_dir: self.names(node).is_some(),
            is_file: self.names(node).is_none(),
            id: FileId { device: 0, inode: node as u64 },
            modified_ns: None,
        }
    }

    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut todo = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, node)) = todo.pop() {
            match self.nodes.get(node) {
                Some(Node::Dir { now, .. }) => todo.extend(now.iter().map(|(name, &n)| (path.join(name), n))),
                Some(Node::File { now, .. }) => {
                    files.insert(path, now.to_vec());
                }
                None => {}
            }
        }
        files
    }
}
