//! What a dataset knows of its sources, and what their file system says of them.
//!
//! A source is known by its bytes, which must be read for that. Where size, time of change and inode are what they were
//! when the bytes were read, the bytes are taken to be the same, as rsync and make do it.

use super::Format;
use std::path::Path;
use trawl_archive::Registry;
use trawl_io::Fs;
use trawl_model::UnixMillis;
use trawl_store::{KnownSource, Stamp};

/// A file that changed so shortly before it was read may change again without another time being shown: file systems
/// count in steps, some of two seconds.
const SETTLED_NS: i64 = 2_000_000_000;

/// What is known before a file is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Opening<'a> {
    /// The formats of archives there are; the usual ones if absent.
    pub registry: Option<&'a Registry>,
    /// Its format, if it is not to be found by name and first bytes.
    pub format: Option<Format>,
    /// How it is read, if it is a list and not as usual.
    pub options: Option<&'a trawl_lists::Options>,
    /// What it is known by if not by its path: for what was read from a pipe, say.
    pub name: Option<&'a str>,
    /// Other processes can open its path, although it is known by another name.
    pub is_shared: bool,
    /// The sources that the dataset has, sorted; without them a source is taken for a new one.
    pub known: Option<&'a [KnownSource]>,
    /// What time it is, for telling what changed just now.
    pub now: UnixMillis,
    /// Read every file, also one of which the file system says what it said before.
    pub rehash: bool,
}

/// The sources of one name.
pub(crate) fn of_name<'a>(known: &'a [KnownSource], uri: &str) -> &'a [KnownSource] {
    let from = known.partition_point(|known| *known.identity.uri < *uri);
    let known = known.get(from..).unwrap_or_default();
    known.get(..known.partition_point(|known| *known.identity.uri == *uri)).unwrap_or_default()
}

/// What crawlers add to the name of an archive while they write it.
pub(crate) const UNFINISHED: &str = ".open";

/// The sources that an archive was while it was still being written, under the name that it had then. As long as there is a file of
/// that name, that file is them.
pub(super) fn before_rename<'a>(fs: &dyn Fs, known: &'a [KnownSource], uri: &str) -> &'a [KnownSource] {
    let unfinished = format!("{uri}{UNFINISHED}");
    let found = of_name(known, &unfinished);
    if found.is_empty() || fs.metadata(Path::new(&unfinished)).is_ok() { &[] } else { found }
}

/// The size of a file and what the file system says of it, if that says anything.
pub(super) fn stamp_of(fs: &dyn Fs, path: &Path) -> Option<(u64, Stamp)> {
    let found = fs.metadata(path).ok()?;
    Some((found.len, Stamp { modified_ns: found.modified_ns?, inode: found.id.inode }))
}

/// Whether a change after `now` would show.
pub(super) fn is_settled(stamp: Stamp, now: UnixMillis) -> bool {
    stamp.modified_ns.checked_add(SETTLED_NS).is_some_and(|settled| settled / 1_000_000 < now.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seconds_later_a_change_would_show() {
        let stamp = Stamp { modified_ns: 1_000_000_000, inode: 1 };
        let settled = [0, 1000, 3000, 3001].map(|now| is_settled(stamp, UnixMillis(now)));
        assert_eq!(settled, [false, false, false, true]);
        assert!(!is_settled(Stamp { modified_ns: i64::MAX, inode: 1 }, UnixMillis(i64::MAX)));
    }
}
