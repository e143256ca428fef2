//! Regaining space: a copy without what is deleted.

use super::base::{lock_alone, lock_existing};
use super::inode::Inode;
use super::repair::copies;
use super::{CreateFilesys, Filesys, FsPaths, WriteFlags};
use crate::hindex::roomy;
use crate::open::{self, Guard};
use crate::superblock::Name;
use crate::{Access, OnProgress, Progress, Result, Settings};

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
    let _alone = lock_alone(paths, settings)?;
    let _lock = lock_existing(paths, settings)?;
    compact_locked(paths, settings, htsize, fsgen, progress, None)
}

/// Builds a further file of a filesys, which has so many files.
pub(crate) type Build<'a> = &'a dyn Fn(&FsPaths, u64) -> Result<()>;

/// The same for a caller that holds the locks; `further` is a suffix, and what builds the file that has it.
pub(crate) fn compact_locked(
    paths: &FsPaths,
    settings: &Settings,
    htsize: Option<u64>,
    fsgen: i64,
    progress: OnProgress<'_>,
    further: Option<(&str, Build<'_>)>,
) -> Result<Compacted> {
    let copied = copy_aside(paths, settings, htsize, fsgen, progress, further.map(|(_, build)| build));
    if copied.is_err() {
        // It may be what fills the disk. Whatever stays, a check finds.
        let _ = open::remove_all(settings, &copies(paths));
    }
    let (compacted, has_time) = copied?;
    let aside = paths.aside();
    // One right after the other: in between readers have to wait.
    settings.fs.rename(&aside.data(), &paths.data())?;
    settings.fs.rename(&aside.index(), &paths.index())?;
    if has_time {
        settings.fs.rename(&aside.time(), &paths.time())?;
    }
    if let Some((suffix, _)) = further {
        settings.fs.rename(&aside.other(suffix), &paths.other(suffix))?;
    }
    settings.fs.sync_dir(paths.base())?;
    Ok(compacted)
}

/// Makes the copy; says whether there is a timefile, too.
fn copy_aside(
    paths: &FsPaths,
    settings: &Settings,
    htsize: Option<u64>,
    fsgen: i64,
    progress: OnProgress<'_>,
    further: Option<Build<'_>>,
) -> Result<(Compacted, bool)> {
    let guard = Guard::Owner { writer_lives: false };
    let old = Filesys::open_guarded(paths, Access::Write, settings, guard)?;
    let aside = paths.aside();
    open::remove_all(settings, &copies(paths))?;
    let create = like(&old, htsize.unwrap_or_else(|| roomy(old.index.keys())), fsgen);
    create.publish(&aside, settings)?;
    let mut new = Filesys::open_guarded(&aside, Access::Write, settings, guard)?;
    let mut files = old.files();
    let mut count = 0;
    while let Some(inode) = files.next_inode()? {
        copy(&old, &mut new, inode)?;
        count += 1;
        if count % 1024 == 0 {
            progress(Progress { stage: "copying", done: count, total: old.index.keys() });
        }
    }
    let (old_bytes, new_bytes) = (old.data.end(), new.data.end());
    let has_time = new.time.is_some();
    new.close()?;
    if let Some(build) = further {
        build(&aside, count)?;
    }
    Ok((Compacted { files: count, old_bytes, new_bytes }, has_time))
}

/// The parameters of a filesys, for one like it.
fn like(fs: &Filesys, htsize: u64, fsgen: i64) -> CreateFilesys {
    let sb = fs.data.superblock();
    CreateFilesys {
        sbsize: sb.sbsize(),
        small_sbsize: fs.index.superblock().sbsize(),
        fileincr: sb.value(Name::FILEINCR).unwrap_or(0).max(0),
        isz: fs.isz,
        htsize,
        cellsz: fs.index.cellsz(),
        have_dups: fs.have_dups,
        append_only: fs.time.as_ref().map(|time| time.timemp),
        fsgen,
        extra: sb.user_variables().collect(),
        index_extra: fs.index.superblock().user_variables().collect(),
        time_extra: fs.time.iter().flat_map(|time| time.kv.superblock().user_variables()).collect(),
    }
}

fn copy(old: &Filesys, new: &mut Filesys, inode: Inode) -> Result<()> {
    let (kind, mtime, name) = (char::from(inode.kind), Some(inode.mtime), inode.name.clone());
    let file = old.handle_of(inode)?;
    if file.size() <= ONE_PIECE {
        let contents = old.read_handle(&file)?;
        return new.put_file(&name, kind, mtime, &contents);
    }
    let mut copy = new.open_file_wr(&name, kind, WriteFlags { excl: true, mtime })?;
    let mut buf = vec![0; 1 << 20];
    let mut offset = 0;
    loop {
        let n = old.read_file(&file, offset, &mut buf)?;
        if n == 0 {
            return Ok(());
        }
        new.append_file(&mut copy, buf.get(..n).unwrap_or_default())?;
        offset += n as u64;
    }
}
