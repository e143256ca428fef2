//! Grouping: order by hash, then key, then pointer.
//!
//! Pairs are sorted by hash and pointer within a memory budget. Keys are read only for pairs that share a hash; a large
//! group of those is sorted within the same budget.

use super::Perm;
use crate::aside::dir_of;
use crate::sorting::{Sort, number, pair};
use crate::superblock::Name;
use crate::{Access, Keys, Kind, Kvseq, OnProgress, Progress, Result};
use std::path::Path;
use trawl_io::AtomicFile;

/// Pairs of one hash that are sorted in memory.
const SMALL_GROUP: usize = 1024;

impl Perm {
    /// Groups the file. Temporary files, if memory does not suffice, go to `scratch` (the file's directory if `None`).
    pub fn group(&mut self, container: &impl Keys, scratch: Option<&Path>, progress: OnProgress<'_>) -> Result<()> {
        self.checkpoint()?;
        let path = self.path().to_owned();
        let (settings, total) = (self.kv.file.settings.clone(), self.len());
        let scratch = scratch.unwrap_or_else(|| dir_of(&path)).to_owned();
        let mut sort = Sort::new(&settings, &scratch, 2);
        self.for_each(0, &mut |index, element| {
            sort.push(&pair(element.hash, element.ptr), b"")?;
            if index.is_multiple_of(1 << 16) {
                progress(Progress { stage: "sorting", done: index, total });
            }
            Ok(true)
        })?;
        let mut file = AtomicFile::create(&settings.fs, &path)?;
        let mut sb = self.superblock().clone();
        sb.update(Name::SYNCTIME, settings.clock.seconds());
        file.put(&sb.encode_full())?;
        let mut out = Out { perm: self, container, scratch: &scratch, file, hash: 0, group: Vec::new(), large: None };
        let mut sorted = sort.finish()?;
        let mut done = 0u64;
        while let Some((key, _)) = sorted.next_record()? {
            out.take(number(key, 0), number(key, 1))?;
            done += 1;
            if done.is_multiple_of(1 << 16) {
                progress(Progress { stage: "grouping", done, total });
            }
        }
        out.end_group()?;
        out.file.publish()?;
        let mut kv = Kvseq::open_kind_as(&path, Kind::Perm, Access::Write, &settings, false)?;
        kv.file.locks = std::mem::take(&mut self.kv.file.locks);
        *self = Self::over(kv)?;
        Ok(())
    }
}

struct Out<'a, K: Keys> {
    perm: &'a Perm,
    container: &'a K,
    scratch: &'a Path,
    file: AtomicFile,
    hash: u64,
    group: Vec<u64>,
    large: Option<Sort<'a>>,
}

impl<K: Keys> Out<'_, K> {
    fn take(&mut self, hash: u64, ptr: u64) -> Result<()> {
        if hash != self.hash {
            self.end_group()?;
            self.hash = hash;
        }
        self.group.push(ptr);
        if self.group.len() >= SMALL_GROUP {
            let settings = &self.perm.kv.file.settings;
            let sort = self.large.get_or_insert_with(|| Sort::new(settings, self.scratch, 2));
            for ptr in std::mem::take(&mut self.group) {
                // Equal keys keep the order they come in, which is that of pointers.
                sort.push(&self.container.key_at(ptr)?, &ptr.to_be_bytes())?;
            }
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        let group = std::mem::take(&mut self.group);
        if let Some(mut sort) = self.large.take() {
            for ptr in group {
                sort.push(&self.container.key_at(ptr)?, &ptr.to_be_bytes())?;
            }
            let mut sorted = sort.finish()?;
            while let Some((_, value)) = sorted.next_record()? {
                put(&mut self.file, number(value, 0), self.hash)?;
            }
            return Ok(());
        }
        if let [ptr] = group[..] {
            return put(&mut self.file, ptr, self.hash);
        }
        let mut keyed = Vec::with_capacity(group.len());
        for ptr in group {
            keyed.push((self.container.key_at(ptr)?, ptr));
        }
        keyed.sort();
        keyed.into_iter().try_for_each(|(_, ptr)| put(&mut self.file, ptr, self.hash))
    }
}

fn put(file: &mut AtomicFile, ptr: u64, hash: u64) -> Result<()> {
    Ok(file.put(&pair(ptr, hash))?)
}
