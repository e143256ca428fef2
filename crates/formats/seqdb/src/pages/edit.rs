//! Changing the files of a container of captures by hand.

use super::repair::rebuild_urls;
use super::url_index_path;
use crate::filesys::{Filesys, FsPaths, lock_alone};
use crate::open::{self, Guard};
use crate::{Access, Error, OnProgress, Settings, hindex};

/// Lets `act` change the filesys of a container, and rebuilds the index by URL, whatever came of it. Who cannot have the
/// container alone is refused before anything is changed; a crash in between asks for a repair.
pub fn edit<T, E: From<Error>>(
    paths: &FsPaths,
    settings: &Settings,
    act: impl FnOnce(&mut Filesys) -> Result<T, E>,
    progress: OnProgress<'_>,
) -> Result<T, E> {
    let _alone = lock_alone(paths, settings)?;
    let _lock = open::lock(settings, &paths.lock())?;
    let mut fs = Filesys::open_guarded(paths, Access::Write, settings, Guard::Owner { writer_lives: false })?;
    hindex::distrust(&url_index_path(paths), settings)?;
    let done = act(&mut fs);
    let files = fs.index().keys();
    let closed = fs.close().and_then(|()| rebuild_urls(paths, paths, settings, files, progress));
    let done = done?;
    closed?;
    Ok(done)
}
