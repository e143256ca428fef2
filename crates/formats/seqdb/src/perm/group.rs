//! Grouping: order by hash, then key, then pointer.
//!
//! Pairs are sorted by hash and pointer within a memory budget. Keys are read only for pairs that share a hash; these are
//! sorted within the same budget.

use super::Perm;
use crate::aside::dir_of;
use crate::progress::telling;
use crate::sorting::{Sort, number, pair};
use crate::superblock::Name;
use crate::{Access, Keys, Kind, Kvseq, OnProgress, Result};
use std::path::Path;
use trawl_io::AtomicFile;

impl Perm {
    /// Groups the file. Temporary files, if memory does not suffice, go to `scratch` (the file's directory if `None`).
    pub fn group(&mut self, container: &impl Keys, scratch: Option<&Path>, progress: OnProgress<'_>) -> Result<()> {
        self.checkpoint()?;
        let (path, settings, total) = (self.path().to_owned(), self.kv.file.settings.clone(), self.len());
        let sorting = || Sort::new(&settings, scratch.unwrap_or_else(|| dir_of(&path)), 2);
        let mut sort = sorting();
        let mut tell = telling(progress, "sorting", total);
        self.for_each(0, &mut |index, element| {
            tell(index);
            sort.push(&pair(element.hash, element.ptr), b"")?;
            Ok(true)
        })?;
        let mut file = AtomicFile::create(&settings.fs, &path)?;
        let mut sb = self.superblock().clone();
        sb.update(Name::SYNCTIME, settings.clock.seconds());
        file.put(&sb.encode_full())?;
        let (mut sorted, mut done) = (sort.finish()?, 0u64);
        let mut tell = telling(progress, "grouping", total);
        let mut read = || -> Result<Option<(u64, u64)>> {
            done += 1;
            tell(done);
            Ok(sorted.next_record()?.map(|(key, _)| (number(key, 0), number(key, 1))))
        };
        let mut next = read()?;
        while let Some((hash, ptr)) = next {
            next = read()?;
            if next.is_none_or(|next| next.0 != hash) {
                file.put(&pair(ptr, hash))?;
                continue;
            }
            // Equal keys keep the order they come in, which is that of pointers.
            let mut by_key = sorting();
            by_key.push(&container.key_at(ptr)?, &ptr.to_be_bytes())?;
            while let Some((_, ptr)) = next.filter(|next| next.0 == hash) {
                next = read()?;
                by_key.push(&container.key_at(ptr)?, &ptr.to_be_bytes())?;
            }
            let mut by_key = by_key.finish()?;
            while let Some((_, ptr)) = by_key.next_record()? {
                file.put(&pair(number(ptr, 0), hash))?;
            }
        }
        file.publish()?;
        let mut kv = Kvseq::open_kind_as(&path, Kind::Perm, Access::Write, &settings, false)?;
        kv.file.locks = std::mem::take(&mut self.kv.file.locks);
        *self = Self::over(kv)?;
        Ok(())
    }
}
