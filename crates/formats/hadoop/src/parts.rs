//! Which part a key belongs to, and which entries of a directory are parts.

use crate::{Result, java};
use std::path::{Path, PathBuf};
use trawl_io::Fs;

/// The part that Hadoop's `HashPartitioner` gives to a key with this hash code. Readers look into that part only.
pub fn part_of_hash(hash: i32, parts: u32) -> u32 {
    (hash & i32::MAX).cast_unsigned() % parts.max(1)
}

/// The part of a `Text` key, given its bytes without the length.
pub fn part_of_text(content: &[u8], parts: u32) -> u32 {
    part_of_hash(java::hash_bytes(content), parts)
}

/// `part-r-00003`: five digits at least.
pub fn part_name(n: u32) -> String {
    format!("part-r-{n:05}")
}

/// One part of an output directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its file or directory.
    pub path: PathBuf,
    /// Whether it is a directory: a MapFile.
    pub is_dir: bool,
}

/// Missing parts that are listed at most.
const MAX_MISSING: usize = 1000;

/// The parts of an output directory in Hadoop's order: sorted by name, without names that begin with `_` or `.`.
///
/// A key lies in the part that its hash names, so MapFiles are numbered without gaps. A part that is missing between others is
/// listed too: a reader that opens it fails, and does not pass over its keys or look for others' keys in the wrong part. Of
/// files, some jobs write only those that have records.
pub fn list_parts(fs: &dyn Fs, dir: &Path) -> Result<Vec<Part>> {
    listed(fs, dir, false)
}

/// The same for an output whose files are numbered without gaps as well.
pub fn list_numbered_parts(fs: &dyn Fs, dir: &Path) -> Result<Vec<Part>> {
    listed(fs, dir, true)
}

fn listed(fs: &dyn Fs, dir: &Path, with_files: bool) -> Result<Vec<Part>> {
    let hidden = |name: &std::ffi::OsStr| matches!(name.as_encoded_bytes().first(), Some(b'_' | b'.') | None);
    let mut entries: Vec<_> = fs.list(dir)?.into_iter().filter(|entry| !hidden(&entry.name)).collect();
    let is_part = |name: &std::ffi::OsStr| name.to_str().and_then(number_of).is_some();
    let mut lost = Vec::new();
    for (at, entry) in entries.iter_mut().enumerate() {
        // A listing does not follow links; to Hadoop, one to a directory is the part that it leads to.
        if !entry.is_dir && is_part(&entry.name) {
            match fs.metadata(&dir.join(&entry.name)) {
                Err(error) if error.is_not_found() => lost.push(at),
                found => entry.is_dir = found?.is_dir,
            }
        }
    }
    // One that leads nowhere is a part that is missing, of the kind of the others: those may all be links as well.
    let has_maps = entries.iter().any(|entry| entry.is_dir && is_part(&entry.name));
    for at in lost {
        if let Some(entry) = entries.get_mut(at) {
            entry.is_dir = has_maps;
        }
    }
    let mut numbers = Vec::new();
    for entry in &entries {
        let number = entry.name.to_str().and_then(number_of);
        numbers.extend(number.map(|(number, prefix)| (number, prefix, entry.is_dir)));
    }
    numbers.sort_unstable();
    let mut parts: Vec<_> =
        entries.iter().map(|entry| Part { path: dir.join(&entry.name), is_dir: entry.is_dir }).collect();
    if let Some((last, prefix, is_dir)) = numbers.iter().rev().find(|(_, _, is_dir)| *is_dir || with_files) {
        let missing = (0..*last).filter(|n| numbers.binary_search_by_key(n, |(number, ..)| *number).is_err());
        let missing: Vec<_> = missing.take(MAX_MISSING).collect();
        parts.extend(missing.iter().map(|n| Part { path: dir.join(format!("{prefix}{n:05}")), is_dir: *is_dir }));
        parts.sort_by(|a, b| a.path.cmp(&b.path));
    }
    Ok(parts)
}

/// The number of `part-r-00003` or `part-00003`, and what stands before it.
fn number_of(name: &str) -> Option<(u32, &str)> {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let prefix = name.strip_suffix(digits)?;
    let is_part = prefix == "part-" || prefix.starts_with("part-") && prefix.len() == 7 && prefix.ends_with('-');
    (is_part && digits.len() >= 5).then(|| digits.parse().ok()).flatten().map(|number| (number, prefix))
}

/// Finds out whether keys were spread over more parts than there are: then they all lie where a larger number of parts puts
/// them, which keys of a complete output do not.
#[derive(Debug)]
pub struct SpreadCheck {
    /// Numbers of parts that every key so far agrees with.
    possible: Vec<u32>,
    /// Different keys so far.
    keys: u64,
    /// The part and hash of the last one. A map may hold a key many times, one record after another: a web graph has one for
    /// each link of a page. Again it tells nothing.
    last: Option<(u32, i32)>,
}

/// Numbers of parts that are tried beyond those that there are.
const MAX_PARTS: u32 = 256;
/// Keys before anything is said: by chance, so many agree with twice the parts once in four billion times.
const ENOUGH: u64 = 32;

impl SpreadCheck {
    /// For an output of `parts` parts.
    pub fn new(parts: u32) -> Self {
        SpreadCheck { possible: (parts.saturating_add(1)..=MAX_PARTS).collect(), keys: 0, last: None }
    }

    /// Takes a key of a part.
    pub fn add(&mut self, content: &[u8], part: u32) {
        if self.possible.is_empty() {
            return;
        }
        let hash = java::hash_bytes(content);
        if self.last.replace((part, hash)) != Some((part, hash)) {
            self.keys += 1;
            self.possible.retain(|parts| part_of_hash(hash, *parts) == part);
        }
    }

    /// Whether no key that may come could tell of missing parts any more.
    pub fn is_decided(&self) -> bool {
        self.possible.is_empty()
    }

    /// The least number of parts that all keys agree with, if there were enough of them to tell.
    pub fn parts_at_least(&self) -> Option<u32> {
        self.possible.first().copied().filter(|_| self.keys >= ENOUGH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use trawl_io::fault::FaultFs;

    #[test]
    fn a_gap_between_maps_is_listed() {
        let fs: Arc<dyn Fs> = FaultFs::new().shared();
        let names = |of: &[&str]| {
            let dir = PathBuf::from(format!("/{}", of.join("+")));
            fs.create_dir_all(&dir).unwrap();
            of.iter().for_each(|name| fs.create_dir_all(&dir.join(name)).unwrap());
            let parts = list_parts(&*fs, &dir).unwrap();
            parts.iter().map(|p| p.path.file_name().unwrap().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&["part-r-00001"]), ["part-r-00000", "part-r-00001"]);
        assert_eq!(names(&["part-00000", "part-00002"]), ["part-00000", "part-00001", "part-00002"]);
        assert_eq!(names(&["part-r-00000", "part-r-00001"]).len(), 2);
        assert_eq!(names(&["data", "current"]), ["current", "data"]);
        assert_eq!(names(&["part-r-4000000000"]).len(), MAX_MISSING + 1);
    }

    #[test]
    fn a_gap_between_files_is_listed_where_there_can_be_none() {
        let fs: Arc<dyn Fs> = FaultFs::new().shared();
        let dir = Path::new("/list");
        fs.create_dir_all(dir).unwrap();
        for name in ["part-r-00000", "part-r-00002", "_SUCCESS"] {
            fs.open(&dir.join(name), trawl_io::Mode::CreateNew).unwrap();
        }
        assert_eq!(list_parts(&*fs, dir).unwrap().len(), 2);
        let parts = list_numbered_parts(&*fs, dir).unwrap();
        assert_eq!(parts.get(1), Some(&Part { path: dir.join("part-r-00001"), is_dir: false }));
        // A file that stands where a MapFile should is there, and not missing.
        fs.create_dir_all(&dir.join("part-r-00003")).unwrap();
        let parts = list_parts(&*fs, dir).unwrap();
        assert_eq!(parts.iter().map(|part| part.is_dir).collect::<Vec<_>>(), [false, true, false, true]);
    }

    #[test]
    fn a_link_to_a_part_is_the_part() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("db/part-r-00001")).unwrap();
        std::fs::create_dir_all(path("elsewhere")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", path("db/part-r-00000")).unwrap();
        std::os::unix::fs::symlink("../nowhere", path("db/part-r-00002")).unwrap();
        let parts = list_parts(&trawl_io::RealFs, &path("db")).unwrap();
        assert_eq!(parts.iter().map(|part| part.is_dir).collect::<Vec<_>>(), [true; 3]);
    }

    /// Parts on several disks, one of which is not there.
    #[test]
    fn a_link_that_leads_nowhere_is_a_part_where_all_are_links() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("db")).unwrap();
        std::fs::create_dir_all(path("elsewhere")).unwrap();
        std::os::unix::fs::symlink("../nowhere", path("db/part-r-00000")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", path("db/part-r-00001")).unwrap();
        let parts = list_parts(&trawl_io::RealFs, &path("db")).unwrap();
        assert_eq!(parts.iter().map(|part| part.is_dir).collect::<Vec<_>>(), [true; 2]);
    }

    #[test]
    fn keys_tell_of_a_part_that_is_missing_at_the_end() {
        let keys: Vec<String> = (0..200).map(|n| format!("http://h{n}.example/")).collect();
        for (of, there) in [(1, 1), (2, 1), (3, 2), (3, 3), (8, 7)] {
            let mut check = SpreadCheck::new(there);
            for key in &keys {
                let part = part_of_text(key.as_bytes(), of);
                if part < there {
                    check.add(key.as_bytes(), part);
                }
            }
            assert_eq!(check.parts_at_least(), (of != there).then_some(of), "{there} of {of}");
        }
    }

    #[test]
    fn a_key_that_comes_again_tells_nothing_of_missing_parts() {
        // A home page in a web graph: a record for each of the links to it, before those of any other page.
        let mut check = SpreadCheck::new(1);
        let keys = (0..).map(|n| format!("http://h{n}.example/"));
        let even: Vec<String> = keys.filter(|key| part_of_text(key.as_bytes(), 2) == 0).take(40).collect();
        for key in even.iter().take(3) {
            (0..100).for_each(|_| check.add(key.as_bytes(), 0));
        }
        assert_eq!(check.parts_at_least(), None);
        even.iter().for_each(|key| check.add(key.as_bytes(), 0));
        assert_eq!(check.parts_at_least(), Some(2));
    }
}
