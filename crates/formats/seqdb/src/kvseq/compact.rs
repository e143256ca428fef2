//! Regaining space: a copy without deleted entries.

use super::{Kvseq, publish_new};
use crate::superblock::Name;
use crate::{Access, OnProgress, Progress, Result, Settings, Superblock, open};
use std::path::Path;

/// Copies the entries not deleted to a new file that takes the old one's place in one step. Indexes and perms over the
/// file must be rebuilt. Returns the bytes before and after.
pub fn compact(path: &Path, settings: &Settings, progress: OnProgress<'_>) -> Result<(u64, u64)> {
    let lock = open::lock(settings, &super::create::lock_path(path))?;
    let sizes = compact_locked(path, settings, progress, &|_| Ok(()))?;
    lock.release_and_remove(&*settings.fs)?;
    Ok(sizes)
}

/// The same for a caller that holds the lock; `before` is called with the copy when it is ready to
/// take the old file's place.
pub(crate) fn compact_locked(
    path: &Path,
    settings: &Settings,
    progress: OnProgress<'_>,
    before: &dyn Fn(&Path) -> Result<()>,
) -> Result<(u64, u64)> {
    let aside = open::copy_of(path);
    let copied = copy_aside(path, &aside, settings, progress).and_then(|sizes| before(&aside).map(|()| sizes));
    if copied.is_err() {
        // It may be what fills the disk. Whatever stays, a check finds.
        let _ = settings.fs.remove_file(&aside);
    }
    let sizes = copied?;
    settings.fs.rename(&aside, path)?;
    settings.fs.sync_dir(open::dir_of(path))?;
    Ok(sizes)
}

fn copy_aside(path: &Path, aside: &Path, settings: &Settings, progress: OnProgress<'_>) -> Result<(u64, u64)> {
    let guard = open::Guard::Owner { writer_lives: false };
    let old = Kvseq::open_guarded(path, Access::Write, settings, guard)?;
    let _ = settings.fs.remove_file(aside);
    publish_new(aside, settings, &emptied(&old.sb, settings).encode_full())?;
    let mut new = Kvseq::open_guarded(aside, Access::Write, settings, guard)?;
    let mut scan = old.scan();
    let mut buf = Vec::new();
    while let Some(item) = scan.next_entry()? {
        progress(Progress { stage: "copying", done: item.ptr, total: old.end() });
        match item.value {
            Some(value) => new.append(item.key, value)?,
            None => copy_large(&old, item.ptr, item.key, &mut new, &mut buf)?,
        };
        new.settle()?;
    }
    new.checkpoint()?;
    Ok((old.end(), new.end()))
}

/// The superblock of a file like the old one that has no entries yet. What is not counted there is not counted here.
fn emptied(old: &Superblock, settings: &Settings) -> Superblock {
    let mut sb = old.clone();
    let start = i64::try_from(sb.sbsize()).unwrap_or(i64::MAX);
    sb.update(Name::FILESIZE, start);
    sb.update(Name::SYNCSIZE, start);
    sb.update(Name::SYNCTIME, settings.clock.seconds());
    sb.update(Name::ENTRIES, 0);
    sb.update(Name::AENTRIES, 0);
    sb
}

/// Copies an entry whose value is too large for memory.
fn copy_large(old: &Kvseq, ptr: u64, key: &[u8], new: &mut Kvseq, buf: &mut Vec<u8>) -> Result<u64> {
    buf.resize(1 << 20, 0);
    let to = new.append(key, b"")?;
    let mut offset = 0;
    loop {
        let n = old.read_value(ptr, offset, buf)?;
        if n == 0 {
            return Ok(to);
        }
        new.extend_last_value(to, buf.get(..n).unwrap_or_default())?;
        offset += n as u64;
    }
}
