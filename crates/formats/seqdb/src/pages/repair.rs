//! Checking and repairing a container of captures: its filesys, and the index by URL.

use super::{Pages, Urls, name, url_index, url_index_path};
use crate::design::URL_INDEX_SUFFIX;
use crate::filesys::inode::{FsKey, Inode};
use crate::filesys::{self, Compacted, FsFindings, FsPaths, FsRepair, lock_alone, lock_existing};
use crate::findings::Findings;
use crate::hindex::{self, Builder, CreateHindex, Hindex, Subject, Take, roomy, verify_over};
use crate::open::{self, Guard};
use crate::superblock::Name;
use crate::{Access, Kind, Kvseq, OnProgress, Result, Settings, h64};

/// What a repair did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PagesRepair {
    /// To the filesys.
    pub filesys: FsRepair,
    /// URLs in the rebuilt index.
    pub urls: u64,
}

/// Repairs the filesys (see [`filesys::repair`]) and rebuilds the index by URL.
pub fn repair(paths: &FsPaths, settings: &Settings, salvage: bool, progress: OnProgress<'_>) -> Result<PagesRepair> {
    let _alone = lock_alone(paths, settings)?;
    let _lock = lock_existing(paths, settings)?;
    let urls = url_index_path(paths);
    // What was in use may point to what is taken back.
    if Hindex::open_anyway(&urls, Access::Read, settings).is_ok_and(|index| index.is_in_use()) {
        hindex::lead_astray(&urls, settings)?;
    }
    let filesys = filesys::repair_locked(paths, settings, salvage, progress)?;
    let urls = rebuild_urls(paths, paths, settings, filesys.files, progress)?;
    Ok(PagesRepair { filesys, urls })
}

/// Takes a container back to where its data file ended at `end`, as [`Pages::sync`] returned it: for a caller whose own
/// journal says what counts. Both indexes are rebuilt, unless nothing has to be done.
pub fn cut(paths: &FsPaths, settings: &Settings, end: u64, progress: OnProgress<'_>) -> Result<PagesRepair> {
    if let Ok(pages) = Pages::open(paths, Access::Write, settings)
        && pages.fs.data().end() == end
    {
        let filesys = FsRepair { files: pages.len(), ..FsRepair::default() };
        return Ok(PagesRepair { filesys, urls: pages.url_count() });
    }
    let _alone = lock_alone(paths, settings)?;
    let _lock = lock_existing(paths, settings)?;
    hindex::lead_astray(&url_index_path(paths), settings)?;
    let filesys = filesys::cut_locked(paths, settings, end, progress)?;
    let urls = rebuild_urls(paths, paths, settings, filesys.files, progress)?;
    Ok(PagesRepair { filesys, urls })
}

/// Compacts the filesys (see [`filesys::compact`]) and its index by URL.
pub fn compact(paths: &FsPaths, settings: &Settings, fsgen: i64, progress: OnProgress<'_>) -> Result<Compacted> {
    let _alone = lock_alone(paths, settings)?;
    let _lock = lock_existing(paths, settings)?;
    let build = |new: &FsPaths, captures| rebuild_urls(new, paths, settings, captures, progress).map(|_| ());
    filesys::compact_locked(paths, settings, None, fsgen, progress, Some((URL_INDEX_SUFFIX, &build)))
}

/// Builds the index by URL anew: the newest capture of each. What users noted in that of `like` stays.
pub(super) fn rebuild_urls(
    paths: &FsPaths,
    like: &FsPaths,
    settings: &Settings,
    captures: u64,
    progress: OnProgress<'_>,
) -> Result<u64> {
    let guard = Guard::Owner { writer_lives: false };
    let data = Kvseq::open_guarded(&paths.data(), Access::Read, settings, guard)?;
    let fsgen = data.superblock().value(Name::FSGEN);
    let mut create = CreateHindex { htsize: roomy(captures), ..url_index(fsgen.unwrap_or(0)) };
    // A data file without the number has indexes without it.
    create.extra.retain(|(name, _)| *name != Name::FSGEN || fsgen.is_some());
    if let Ok(old) = open::open(settings, &url_index_path(like), Access::Read, Kind::Hindex) {
        create.extra.extend(old.sb.user_variables());
    }
    let path = url_index_path(paths);
    let mut builder = Builder::new(create, &path, settings, progress);
    each_capture(&data, &mut |ptr, deleted, parts| {
        if deleted {
            return Ok(());
        }
        // As an unsigned number, in the order of times.
        let rank = parts.time.0.wrapping_sub(i64::MIN).cast_unsigned();
        builder.push_ranked(h64(parts.url), ptr, rank)
    })?;
    Ok(builder.finish(Some(&Urls(&data)), &mut |_| Ok(()), true)?.keys)
}

/// Hands over every capture that has a URL: its inode's pointer, whether it is deleted, the parts of its name.
fn each_capture(data: &Kvseq, take: &mut dyn FnMut(u64, bool, name::Parts<'_>) -> Result<()>) -> Result<()> {
    let mut scan = data.scan().with_deleted().keys_only();
    while let Some(item) = scan.next_entry()? {
        if !matches!(FsKey::decode(item.key), Some(FsKey::Inode { .. })) {
            continue;
        }
        let inode = match item.value {
            Some(value) => Inode::decode(item.ptr, item.deleted, item.key, value).ok(),
            None => Inode::load(data, item.ptr).ok(),
        };
        let Some(inode) = inode else { continue };
        if let Some(parts) = name::split(&inode.name).filter(|parts| !parts.url.is_empty()) {
            take(item.ptr, item.deleted, parts)?;
        }
    }
    Ok(())
}

struct Captures<'a>(&'a Kvseq);

impl Subject for Captures<'_> {
    fn each(&self, take: Take<'_>) -> Result<()> {
        each_capture(self.0, &mut |ptr, deleted, parts| take(ptr, deleted, parts.url))
    }

    fn expects_all(&self) -> bool {
        false
    }
}

/// Checks the filesys and the index by URL; faults go to `findings`.
pub fn verify(
    paths: &FsPaths,
    settings: &Settings,
    findings: &mut Findings,
    progress: OnProgress<'_>,
) -> Result<FsFindings> {
    let counted = filesys::verify(paths, settings, findings, progress)?;
    let Ok(data) = Kvseq::open_anyway(&paths.data(), None, Access::Read, settings) else { return Ok(counted) };
    let path = url_index_path(paths);
    if !settings.fs.exists(&path)? {
        findings.fault(&path, 0, "an index by URL", "no file");
        return Ok(counted);
    }
    let searchable = verify_over(&path, &Captures(&data), settings, findings, progress)?.is_searchable();
    let Ok(urls) = Hindex::open_anyway(&path, Access::Read, settings) else { return Ok(counted) };
    let fsgen = data.superblock().value(Name::FSGEN);
    if urls.superblock().value(Name::FSGEN) != fsgen {
        findings.fault(&path, 0, "the FSGEN of the data file", "another");
    }
    if !searchable {
        return Ok(counted);
    }
    let mut outdated = 0u64;
    let checked = each_capture(&data, &mut |_, deleted, parts| {
        if deleted {
            return Ok(());
        }
        let newest = match urls.find(&Urls(&data), parts.url)? {
            Some(ptr) => name::split(&Inode::load(&data, ptr)?.name).map(|newest| newest.time),
            None => None,
        };
        outdated += u64::from(newest.is_none_or(|newest| newest < parts.time));
        Ok(())
    });
    if let Err(e) = checked {
        findings.take(e)?;
    }
    if outdated > 0 {
        findings.fault(&path, 0, "the newest capture of each URL", format!("{outdated} captures that are newer"));
    }
    Ok(counted)
}
