//! Checking, repairing and changing a container of captures: its filesys, and the index by URL.

use super::{Pages, Urls, name, url_index};
use crate::filesys::inode::Inode;
use crate::filesys::{self, Compacted, Filesys, FsPaths, FsRepair, LockedFs, verify_index};
use crate::findings::Findings;
use crate::superblock::Name;
use crate::{Access, Error, Keys, Kvseq, OnProgress, Result, Settings, hindex};
use std::path::Path;

/// Takes a container back to where its data file ended at `end`, as [`Pages::sync`] returned it: for a caller whose own
/// journal says what counts. Both indexes are rebuilt, unless nothing has to be done.
pub fn cut(paths: &FsPaths, settings: &Settings, end: u64, progress: OnProgress<'_>) -> Result<FsRepair> {
    if let Ok(pages) = Pages::open(paths, Access::Write, settings)
        && pages.fs.data().end() == end
    {
        return Ok(FsRepair { files: pages.len(), urls: pages.url_count(), ..FsRepair::default() });
    }
    filesys::cut(paths, settings, end, progress)
}

/// Compacts the filesys (see [`filesys::compact`]) and its index by URL.
pub fn compact(paths: &FsPaths, settings: &Settings, fsgen: i64, progress: OnProgress<'_>) -> Result<Compacted> {
    filesys::compact(paths, settings, None, fsgen, progress)
}

/// Lets `act` change the filesys of a container, and rebuilds the index by URL, whatever came of it. Who cannot have the
/// container alone is refused before anything is changed; a crash in between asks for a repair.
pub fn edit<T, E: From<Error>>(
    paths: &FsPaths,
    settings: &Settings,
    act: impl FnOnce(&mut Filesys) -> Result<T, E>,
    progress: OnProgress<'_>,
) -> Result<T, E> {
    let _locked = LockedFs::take(paths, settings)?;
    let mut fs = Filesys::open_as(paths, Access::Write, settings, false)?;
    let urls = paths.urls();
    hindex::mark(&urls, false, settings)?;
    let done = act(&mut fs);
    let rebuilt = rebuild_urls(fs.data(), &urls, &urls, fs.index().keys(), progress);
    let closed = fs.close();
    let done = done?;
    rebuilt?;
    closed?;
    Ok(done)
}

/// Builds the index by URL of a data file anew: the newest capture of each. What users noted in that at `like` stays.
pub(crate) fn rebuild_urls(
    data: &Kvseq,
    to: &Path,
    like: &Path,
    captures: u64,
    progress: OnProgress<'_>,
) -> Result<u64> {
    let settings = &data.file.settings;
    let create = url_index(data.superblock().value(Name::FSGEN)).in_place_of(like, captures, settings);
    Ok(hindex::build(create, to, &Urls(data), None, true, settings, progress)?.0.keys)
}

/// Checks the index by URL; faults go to `findings`.
pub(crate) fn verify_urls(
    paths: &FsPaths,
    data: &Kvseq,
    settings: &Settings,
    findings: &mut Findings,
    progress: OnProgress<'_>,
) -> Result<()> {
    let (path, keys) = (paths.urls(), Urls(data));
    let Some(urls) = verify_index(&path, &keys, settings, findings, progress)? else { return Ok(()) };
    let mut outdated = 0u64;
    let checked = keys.each(&mut |capture| {
        if capture.deleted {
            return Ok(());
        }
        let newest = match urls.find(&keys, capture.key)? {
            Some(ptr) => name::split(&Inode::load(data, ptr)?.name).map(|newest| super::rank(newest.time)),
            None => None,
        };
        outdated += u64::from(newest.is_none_or(|newest| newest < capture.rank));
        Ok(())
    });
    if let Err(e) = checked {
        findings.take(e)?;
    }
    if outdated > 0 {
        findings.fault(&path, 0, "the newest capture of each URL", format!("{outdated} captures that are newer"));
    }
    Ok(())
}
