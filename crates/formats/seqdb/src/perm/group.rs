//! Grouping: order by hash, then key, then pointer.
//!
//! Pairs are sorted by hash and pointer within a memory budget. Keys are read only for pairs that share a hash; a large
//! group of those is sorted within the same budget.

use super::Perm;
use crate::open::dir_of;
use crate::superblock::Name;
use crate::{Access, Keys, OnProgress, Progress, Result};
use std::path::Path;
use trawl_io::AtomicFile;
use trawl_sort::Sorter;

/// Pairs of one hash that are sorted in memory.
const SMALL_GROUP: usize = 1024;

impl Perm {
    /// Groups the file. Temporary files, if memory does not suffice, go to `scratch` (the file's directory if `None`).
    pub fn group(&mut self, container: &impl Keys, scratch: Option<&Path>, progress: OnProgress<'_>) -> Result<()> {
        self.checkpoint()?;
        let path = self.path().to_owned();
        let scratch = scratch.unwrap_or_else(|| dir_of(&path)).to_owned();
        let mut sorter = self.sorter(&scratch)?;
        self.for_each(0, &mut |index, pair| {
            let key: Vec<u8> = pair.hash.to_be_bytes().into_iter().chain(pair.ptr.to_be_bytes()).collect();
            sorter.push(&key, b"")?;
            if index.is_multiple_of(1 << 16) {
                progress(Progress { stage: "sorting", done: index, total: self.len });
            }
            Ok(true)
        })?;
        let mut file = AtomicFile::create(&self.settings.fs, &path)?;
        let mut sb = self.sb.clone();
        sb.update(Name::SYNCTIME, self.settings.clock.seconds());
        file.put(&sb.encode_full())?;
        let mut out = Out { perm: self, container, scratch: &scratch, file, hash: 0, group: Vec::new(), large: None };
        let mut sorted = sorter.finish()?;
        let mut done = 0u64;
        while let Some(record) = sorted.next_record()? {
            let word = |i: usize| {
                record.key.get(8 * i..).and_then(|b| b.first_chunk::<8>()).map_or(0, |b| u64::from_be_bytes(*b))
            };
            out.take(word(0), word(1))?;
            done += 1;
            if done.is_multiple_of(1 << 16) {
                progress(Progress { stage: "grouping", done, total: self.len });
            }
        }
        out.end_group()?;
        out.file.publish()?;
        let mut new = Self::open_anyway(&path, Access::Write, &self.settings)?;
        new.lock = self.lock.take();
        *self = new;
        Ok(())
    }

    fn sorter(&self, scratch: &Path) -> Result<Sorter> {
        Ok(Sorter::builder(scratch)
            .memory_bytes(self.settings.sort_memory_bytes / 2)
            .threads(1)
            .fs(self.settings.fs.clone())
            .holder(self.settings.holder.clone())
            .build()?)
    }
}

struct Out<'a, K: Keys> {
    perm: &'a Perm,
    container: &'a K,
    scratch: &'a Path,
    file: AtomicFile,
    hash: u64,
    group: Vec<u64>,
    large: Option<Sorter>,
}

impl<K: Keys> Out<'_, K> {
    fn take(&mut self, hash: u64, ptr: u64) -> Result<()> {
        if hash != self.hash {
            self.end_group()?;
            self.hash = hash;
        }
        self.group.push(ptr);
        if self.group.len() >= SMALL_GROUP {
            if self.large.is_none() {
                self.large = Some(self.perm.sorter(self.scratch)?);
            }
            for ptr in std::mem::take(&mut self.group) {
                let key = self.container.key_at(ptr)?;
                if let Some(sorter) = &mut self.large {
                    // Equal keys keep the order they come in, which is that of pointers.
                    sorter.push(&key, &ptr.to_be_bytes())?;
                }
            }
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        let group = std::mem::take(&mut self.group);
        if let Some(mut sorter) = self.large.take() {
            for ptr in group {
                sorter.push(&self.container.key_at(ptr)?, &ptr.to_be_bytes())?;
            }
            let mut sorted = sorter.finish()?;
            while let Some(record) = sorted.next_record()? {
                let ptr = record.value.first_chunk::<8>().map_or(0, |b| u64::from_be_bytes(*b));
                put(&mut self.file, ptr, self.hash)?;
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
    file.put(&ptr.to_be_bytes())?;
    Ok(file.put(&hash.to_be_bytes())?)
}
