//! Going through files: in the order of the data file, from a time on, or in the order of the index.

use super::inode::{FsKey, Inode, Names, name_at};
use super::{FileHandle, Filesys};
use crate::file::STABLE_READS;
use crate::kvseq::Scan;
use crate::{Access, Error, Result};
use std::collections::{HashMap, HashSet};

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// The name.
    pub name: Vec<u8>,
    /// The type.
    pub kind: char,
    /// Bytes.
    pub size: u64,
    /// Seconds since 1970.
    pub mtime: i64,
    /// Where its inode is.
    pub ptr: u64,
}

impl From<Inode> for FileInfo {
    fn from(inode: Inode) -> Self {
        let kind = char::from(inode.kind);
        FileInfo { name: inode.name, kind, size: inode.size, mtime: inode.mtime, ptr: inode.ptr }
    }
}

/// An iteration in the order of the data file.
#[derive(Debug)]
pub struct Files<'a> {
    fs: &'a Filesys,
    scan: Scan<'a>,
    since: Option<i64>,
    /// Inodes at or after this are not given.
    until: u64,
    /// Inodes that the writer itself has replaced.
    retired: HashSet<u64>,
    /// What has to be known beside a writer that replaces inodes.
    beside: Option<Beside>,
    begun: bool,
}

/// So many files are kept track of by an iteration beside a writer.
const MAX_TRACKED: usize = 1 << 20;

/// So often an iteration goes on with what was appended while it was at work.
const MAX_ROUNDS: usize = 100;

/// An inode that becomes too small is replaced by a larger one at the end of the data file. While that happens both are
/// there, or, for a reader that has passed the end it knew, neither.
#[derive(Debug)]
struct Beside {
    /// Where the iteration ended when it began; what comes later is looked at only for what has moved there.
    end: u64,
    /// Where it ends now, and how often it went on.
    seen: u64,
    rounds: usize,
    /// The last inode of files that have several.
    last: HashMap<u64, u64>,
    /// Files whose inode was found deleted.
    gone: HashSet<u64>,
    /// Files given, where the index says which of their inodes counts: it may change its mind.
    given: Option<HashSet<u64>>,
    /// The last entry that was looked at: it may have become longer, so that none starts at `end`.
    at: u64,
    /// Past `end`.
    moved: bool,
}

impl Filesys {
    /// All files, in the order of the data file.
    pub fn files(&self) -> Files<'_> {
        let files = self.files_between(self.data.first(), u64::MAX);
        if self.access == Access::Write || self.append_only {
            return files;
        }
        let (last, gone, moved, given) = (HashMap::new(), HashSet::new(), false, self.have_dups.then(HashSet::new));
        let (end, at) = (self.data.end(), self.data.first());
        let beside = Beside { end, seen: end, rounds: 0, last, gone, given, at, moved };
        Files { scan: files.scan.with_deleted(), beside: Some(beside), ..files }
    }

    /// Files of time `t` and later, in the order of the data file. An append-only filesys starts where they begin.
    pub fn files_since(&self, t: i64) -> Result<Files<'_>> {
        let files = match self.start_for(t)? {
            Some(start) => self.files_between(start, u64::MAX),
            None => self.files(),
        };
        Ok(Files { since: Some(t), ..files })
    }

    /// Where files of time `t` and later begin, if there are marks.
    pub(crate) fn start_for(&self, t: i64) -> Result<Option<u64>> {
        let start = self.time.as_ref().map_or(Ok(None), |time| time.start_for(t))?;
        Ok(start.filter(|ptr| self.data.is_pointer(*ptr)))
    }

    /// Files whose inodes lie between two places, of which the first is that of an entry.
    pub(crate) fn files_between(&self, start: u64, until: u64) -> Files<'_> {
        let (scan, retired) = (self.data.scan_from(start).keys_only(), self.data.retired().iter().copied().collect());
        Files { fs: self, scan, since: None, until, retired, beside: None, begun: false }
    }

    /// Hands every file to `each`, in the order of the index.
    pub fn for_each_indexed(&self, each: &mut dyn FnMut(FileInfo) -> Result<()>) -> Result<()> {
        if self.index.is_astray() {
            let mut files = self.files();
            while let Some(info) = files.next_file()? {
                each(info)?;
            }
            return Ok(());
        }
        // Two names may lead to a file that is being renamed.
        let mut given = (self.access == Access::Read).then(HashSet::new);
        self.index.for_each(&mut |ptr, _| {
            // Beside a writer the index may be ahead of what was seen of the data.
            if !self.data.reaches(ptr)? {
                return Ok(());
            }
            let inode = Inode::load(&self.data, ptr)?;
            let tracked = given.as_mut().filter(|given| given.len() < MAX_TRACKED);
            let again = tracked.is_some_and(|given| !given.insert(inode.file_id));
            if again { Ok(()) } else { each(inode.into()) }
        })
    }

    /// Opens a file that an iteration gave, for reading: without a search, and also where the index of a filesys that is
    /// being written does not have it yet.
    pub fn open_listed(&self, info: &FileInfo) -> Result<FileHandle> {
        self.handle_of(Inode::load(&self.data, info.ptr)?)
    }

    /// Whether an inode that is not marked deleted is that of an existing file.
    pub(crate) fn is_alive(&self, inode: &Inode) -> Result<bool> {
        if self.have_dups {
            let mut name = inode.name.clone();
            for _ in 0..STABLE_READS {
                if self.index.find(&Names(&self.data), &name)? == Some(inode.ptr) {
                    return Ok(true);
                }
                // Beside a writer it may have got another name since it was read.
                let read = if self.access == Access::Read { name_at(&self.data, inode.ptr)? } else { None };
                match read.filter(|read| *read != name) {
                    Some(read) => name = read,
                    None => break,
                }
            }
            return Ok(false);
        }
        Ok(!inode.deleted)
    }
}

impl Files<'_> {
    /// The next file; `None` at the end.
    pub fn next_file(&mut self) -> Result<Option<FileInfo>> {
        Ok(self.next_inode()?.map(FileInfo::from))
    }

    pub(crate) fn next_inode(&mut self) -> Result<Option<Inode>> {
        if !std::mem::replace(&mut self.begun, true) {
            self.look_ahead()?;
        }
        while self.scan.position() < self.until {
            let Some(item) = self.scan.next_entry()? else {
                if self.go_on()? {
                    continue;
                }
                break;
            };
            if let Some(beside) = &mut self.beside {
                beside.at = item.ptr;
            }
            let Some(FsKey::Inode { file_id, .. }) = FsKey::decode(item.key) else { continue };
            if self.beside.as_ref().is_some_and(|beside| beside.passes_over(file_id, item.ptr)) {
                continue;
            }
            let inode = match item.value {
                _ if item.deleted || self.retired.contains(&item.ptr) => None,
                Some(value) if self.fs.data.is_settled() => {
                    let inode = Inode::decode(&self.fs.data, item.ptr, item.deleted, item.key, value)?;
                    // A writer may have come since, and change names.
                    let as_it_is = self.fs.access == Access::Write || inode.is_one_piece();
                    Some(if as_it_is { inode } else { Inode::load(&self.fs.data, item.ptr)? })
                }
                _ => Some(Inode::load(&self.fs.data, item.ptr)?),
            };
            match inode {
                Some(inode) if self.since.is_some_and(|t| inode.mtime < t) => {}
                Some(inode) if self.fs.is_alive(&inode)? => {
                    if let Some(beside) = &mut self.beside {
                        beside.gone.remove(&file_id);
                        if let Some(given) = beside.given.as_mut().filter(|given| given.len() < MAX_TRACKED) {
                            given.insert(file_id);
                        }
                    }
                    return Ok(Some(inode));
                }
                _ => {
                    if let Some(beside) = self.beside.as_mut().filter(|beside| beside.gone.len() < MAX_TRACKED) {
                        beside.gone.insert(file_id);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Before the first file: finds out which files have several inodes. Without a writer, none has.
    fn look_ahead(&mut self) -> Result<()> {
        if self.fs.have_dups && !self.fs.index.is_searchable()? {
            // It would be asked for every file, which a malicious one makes endless.
            let why = "it has no free cells within reach";
            return Err(Error::NeedsCheck { path: self.fs.index.path().into(), why });
        }
        if let Some(beside) = &mut self.beside
            && (!self.fs.data.is_settled() || self.fs.is_being_written())
        {
            beside.last = self.fs.replacements(self.fs.data.first(), beside.end)?;
        }
        Ok(())
    }

    /// At the end: goes on with what was appended since, if anything was.
    fn go_on(&mut self) -> Result<bool> {
        let more = |beside: &&mut Beside| beside.rounds < MAX_ROUNDS && !beside.gone.is_empty();
        let Some(beside) = self.beside.as_mut().filter(more) else { return Ok(false) };
        self.fs.data.catch_up()?;
        let end = self.fs.data.end();
        if end <= beside.seen {
            return Ok(false);
        }
        (beside.end, beside.seen) = (beside.seen, end);
        beside.rounds += 1;
        beside.moved = true;
        beside.last = self.fs.replacements(beside.at, end)?;
        self.scan = self.fs.data.scan_from(beside.at).with_deleted().keys_only();
        Ok(true)
    }
}

impl Beside {
    /// Whether another inode of the file is the one that counts.
    fn passes_over(&self, file_id: u64, ptr: u64) -> bool {
        if let Some(given) = &self.given {
            return given.contains(&file_id) || self.moved && (ptr < self.end || !self.gone.contains(&file_id));
        }
        let last = self.last.get(&file_id);
        match self.moved {
            false => last.is_some_and(|last| *last != ptr),
            // The iteration ignores a file that was not there when it began.
            true => ptr < self.end || last != Some(&ptr) || !self.gone.contains(&file_id),
        }
    }
}

impl Filesys {
    /// The last of the inodes between two places that replace an earlier one, for each file that has any.
    fn replacements(&self, start: u64, end: u64) -> Result<HashMap<u64, u64>> {
        let mut last = HashMap::new();
        let mut scan = self.data.scan_from(start).with_deleted().keys_only();
        while let Some(item) = scan.next_entry()?.filter(|item| item.ptr < end) {
            match FsKey::decode(item.key) {
                Some(FsKey::Inode { file_id, .. }) if file_id != item.ptr && last.len() < MAX_TRACKED => {
                    last.insert(file_id, item.ptr);
                }
                _ => {}
            }
        }
        Ok(last)
    }
}
