//! No capture is read twice: an archive may have several names, and may be packed into another one that is read as well.

use crate::output::{self, Output};
use std::collections::HashSet;
use std::sync::Arc;
use trawl_archive::{Beside, Found, packed};
use trawl_io::{FileId, Fs};

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
    some_twice
}
