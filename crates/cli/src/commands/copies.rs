//! No capture is read twice: an archive may have several names, and may be packed into another one that is read as well.

use crate::output::{self, Output};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::{Beside, Found, packed};
use trawl_io::{FileId, Fs};

/// What the name of an archive ends in while a crawler writes it.
pub const OPEN: &str = ".open";

/// The path of a file without the endings that it has while it is written and for its compression.
pub fn unpacked(path: &Path) -> PathBuf {
    // Of names that are not UTF-8, what stands for them may be the same.
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return path.to_owned() };
    let whole = name.strip_suffix(OPEN).unwrap_or(name);
    let bare = [".gz", ".zst"].iter().find_map(|ending| whole.strip_suffix(ending)).unwrap_or(whole);
    path.with_file_name(bare)
}

/// Leaves out further names of the same archives, and packages of archives that are among them. Says so, and tells whether some captures
/// may be read twice all the same.
pub fn leave_out(fs: &Arc<dyn Fs>, files: &mut Vec<Found>, out: &mut Output) -> bool {
    let mut ids: HashSet<FileId> = HashSet::new();
    // What is not there is reported when it is read.
    files.retain(|found| fs.metadata(&found.path).map_or(true, |seen| ids.insert(seen.id)));
    let mut some_twice = false;
    files.retain(|found| {
        let beside = packed(fs, found, &|path| fs.metadata(path).is_ok_and(|seen| ids.contains(&seen.id)));
        let path = found.path.display();
        let is_copy = !beside.is_empty() && beside.iter().all(Beside::is_whole);
        if is_copy {
            out.remark(&format!("skipped {path}: it is a copy of archives beside it"));
        } else if beside.iter().any(|beside| *beside != Beside::Nothing) {
            some_twice = true;
            output::complain(&format!(
                "archives of the same names are read beside {path}, but not all that it has, or other ones: captures that both have are \
                 read twice; name one of them"
            ));
        }
        !is_copy
    });
    let mut known: BTreeMap<PathBuf, &Path> = BTreeMap::new();
    for Found { path, .. } in &*files {
        let other = *known.entry(unpacked(path)).or_insert(path);
        if other != path {
            some_twice = true;
            let (path, other) = (path.display(), other.display());
            output::complain(&format!(
                "{path} and {other} have the same name, but for how they are packed: captures that both have are read twice; name one of \
                 them"
            ));
        }
    }
    some_twice
}
