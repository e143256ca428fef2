//! Regaining space: a copy without what is deleted.

use super::create::LockedFs;
use super::inode::Inode;
use super::{Filesys, FsPaths};
use crate::hindex::{CreateHindex, roomy};
use crate::progress::telling;
use crate::superblock::Name;
use crate::{Access, Kvseq, OnProgress, Result, Settings, aside, pages};

/// Files up to this size are copied in one piece.
const ONE_PIECE: u64 = 16 << 20;

/// What a compaction came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Files copied.
    pub files: u64,
    /// Bytes of the data file before.
    pub old_bytes: u64,
    /// And after.
    pub new_bytes: u64,
}

/// Copies existing files, in the order of the data file, to a new filesys that then takes the old one's place. Contents,
/// names, types and times stay; each file is one piece afterwards. `fsgen` is a random positive number. A crash while
/// names are exchanged leaves files that do not belong together: a repair goes by the data file.
pub fn compact(
    paths: &FsPaths,
    settings: &Settings,
    htsize: Option<u64>,
    fsgen: i64,
    progress: OnProgress<'_>,
) -> Result<Compacted> {
    let _locked = LockedFs::take(paths, settings)?;
    let aside = paths.aside();
    let compacted = aside::make(settings, &paths.copies(), || {
        let compacted = copy(paths, &aside, settings, htsize, fsgen, progress)?;
        if pages::has_urls(paths, settings)? {
            let data = Kvseq::open_as(&aside.data(), Access::Read, settings, false)?;
            pages::rebuild_urls(&data, &aside.urls(), &paths.urls(), compacted.files, progress)?;
        }
        Ok(compacted)
    })?;
    let mut made = Vec::new();
    for (copy, file) in aside.all().into_iter().zip(paths.all()) {
        if settings.fs.exists(&copy)? {
            made.push((copy, file));
        }
    }
    aside::take_place(settings, &made)?;
    Ok(compacted)
}

/// Copies all files to a new filesys, which is like the old one.
fn copy(
    paths: &FsPaths,
    aside: &FsPaths,
    settings: &Settings,
    htsize: Option<u64>,
    fsgen: i64,
    progress: OnProgress<'_>,
) -> Result<Compacted> {
    let old = Filesys::open_as(paths, Access::Write, settings, false)?;
    let total = old.index.keys();
    for (kv, to) in [(Some(&old.data), aside.data()), (old.time.as_ref().map(|time| &time.kv), aside.time())] {
        let Some(kv) = kv else { continue };
        let mut sb = kv.superblock().emptied(&to, settings);
        sb.update(Name::FSGEN, fsgen);
        aside::publish_new(&sb, sb.sbsize(), settings)?;
    }
    let htsize = htsize.unwrap_or_else(|| roomy(total));
    let mut index = CreateHindex::like(old.index.superblock(), htsize, old.index.cellsz());
    index.extra.iter_mut().filter(|(name, _)| *name == Name::FSGEN).for_each(|(_, value)| *value = fsgen);
    index.publish(&aside.index(), settings)?;
    let mut new = Filesys::open_as(aside, Access::Write, settings, false)?;
    let mut tell = telling(progress, "copying", total);
    let (mut files, mut count) = (old.files(), 0);
    while let Some(inode) = files.next_inode()? {
        copy_file(&old, &mut new, inode)?;
        count += 1;
        tell(count);
    }
    let (old_bytes, new_bytes) = (old.data.end(), new.data.end());
    new.close()?;
    Ok(Compacted { files: count, old_bytes, new_bytes })
}

fn copy_file(old: &Filesys, new: &mut Filesys, inode: Inode) -> Result<()> {
    let (kind, mtime, name) = (char::from(inode.kind), Some(inode.mtime), inode.name.clone());
    let file = old.handle_of(inode)?;
    if file.size() <= ONE_PIECE {
        let contents = old.read_handle(&file)?;
        return new.put_file(&name, kind, mtime, &contents);
    }
    new.put_file_from(&name, kind, mtime, &mut old.reader(file)).map(|_| ())
}
