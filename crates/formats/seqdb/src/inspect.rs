//! What a container file says of itself, for a person, and what the files around it say of it.

use crate::aside::dir_of;
use crate::design::{
    DATA_SUFFIX, INDEX_SUFFIX, PURPOSE_DATA, PURPOSE_INDEX, PURPOSE_TIME, PURPOSE_URLS, TIME_SUFFIX, URL_INDEX_SUFFIX,
};
use crate::file::read_up_to;
use crate::filesys::FsPaths;
use crate::kind::{HEAD_BYTES, purpose_of};
use crate::kvseq::Repr;
use crate::lock::{self, Locks};
use crate::superblock::{Name, Purpose};
use crate::{Access, Kind, Result, Settings, Superblock, design, file};
use std::fmt;
use std::path::{Path, PathBuf};
use trawl_io::{Fs, Mode};
use trawl_model::UnixMillis;

/// One variable and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: i64,
    /// What the value means, where that is known.
    pub remark: Option<String>,
}

/// What is known of a file without reading its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub kind: Kind,
    /// What it is for; empty if it does not say.
    pub purpose: String,
    /// Bytes the file has.
    pub unix_bytes: u64,
    /// Bytes that mean something: FILESIZE.
    pub bytes: u64,
    /// Whether it was closed properly; nothing if the file cannot tell.
    pub clean: Option<bool>,
    /// Who is writing it at this moment.
    pub writer: Option<String>,
    /// All variables, in their order.
    pub variables: Vec<Variable>,
}

/// Reads the superblock of a container file of any kind.
pub fn inspect(path: &Path, settings: &Settings) -> Result<Inspection> {
    let file = settings.fs.open(path, trawl_io::Mode::Read)?;
    let sb = file::read_superblock(&*file, Access::Read)?;
    let unix_bytes = file.len()?;
    let bytes = sb.length(Name::FILESIZE)?.unwrap_or(unix_bytes);
    let clean = sb.length(Name::SYNCSIZE)?.map(|synced| synced == bytes && bytes <= unix_bytes);
    Ok(Inspection {
        path: path.into(),
        kind: sb.kind(),
        purpose: sb.purpose().to_string(),
        unix_bytes,
        bytes,
        clean,
        // A lock that cannot be looked at does not keep the file from being looked at.
        writer: lock::writer(settings, &lock_of(path, &sb, settings)?).unwrap_or_default(),
        variables: variables(&sb),
    })
}

/// The lock that a writer of a file has: that of the filesys, if it is a part of one.
pub(crate) fn lock_of(path: &Path, sb: &Superblock, settings: &Settings) -> Result<PathBuf> {
    let part = part_of(path, sb, settings)?;
    Ok(part.as_ref().map_or_else(|| crate::kvseq::lock_path(path), FsPaths::lock))
}

/// All variables of a superblock with their meanings.
pub fn variables(sb: &Superblock) -> Vec<Variable> {
    let variable = |(name, value): (Name, i64)| Variable { name: name.to_string(), value, remark: remark(name, value) };
    sb.variables().map(variable).collect()
}

fn remark(name: Name, value: i64) -> Option<String> {
    match name {
        Name::FORMAT => Kind::from_format(value).map(|kind| kind.to_string()),
        Name::PURPOSE => Some(Purpose::from_value(value)).filter(|p| !p.is_none()).map(|p| p.to_string()),
        Name::HTALGO if value == design::HTALGO_MD5 => Some("MD5".into()),
        Name::KEYREPR | Name::VALREPR => Repr::from_value(value).map(|repr| repr.to_string()),
        Name::KVDELFL if value == 1 => Some("entries have delete flags".into()),
        Name::CELLSZ if value == 1 => Some("plain".into()),
        Name::CELLSZ if value == 2 => Some("with stored hashes".into()),
        Name::HAVEAO if value == 1 => Some("append-only".into()),
        Name::HAVEDUPS if value == 1 => Some("deletions in the index only".into()),
        Name::SYNCTIME => value.checked_mul(1000).map(|ms| UnixMillis(ms).rfc3339_seconds()),
        _ => None,
    }
}

/// A heading, then a line for each variable: two blanks, the name in 8 columns, a colon, the number in 19, a remark.
impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Superblock of {}:", self.path.display())?;
        for Variable { name, value, remark } in &self.variables {
            match remark {
                Some(remark) => writeln!(f, "  {name:<8}: {value:>19} ({remark})")?,
                None => writeln!(f, "  {name:<8}: {value:>19}")?,
            }
        }
        Ok(())
    }
}

/// Sets variables of a file that no process is writing. The result is checked before it is written.
pub fn set_variables(path: &Path, changes: &[(String, i64)], settings: &Settings) -> Result<()> {
    // A file of a filesys has the lock of the filesys, which stays; others have one of their own for the time.
    let part = filesys_of(path, settings)?;
    let mut locks = Locks::take(settings, [writer_lock(path, settings)?])?;
    let file = settings.fs.open(path, trawl_io::Mode::Write)?;
    lock::claim(settings, &*file)?;
    let mut sb = file::read_superblock(&*file, Access::Write)?;
    for (name, value) in changes {
        sb.set(name, *value)?;
    }
    let bytes = sb.encode();
    Superblock::decode(path, &sb.encode_full())?;
    if part.is_some() {
        crate::filesys::inode_area(&sb)?;
    }
    file.write_at(0, &bytes)?;
    file.sync_data()?;
    if part.is_none() { locks.release(settings) } else { Ok(()) }
}

/// The filesys that a container file is a part of, if it is of one.
pub fn filesys_of(path: &Path, settings: &Settings) -> Result<Option<FsPaths>> {
    part_of(path, &file::superblock_of(path, settings)?, settings)
}

/// The lock that a writer of the file at `path` has.
pub(crate) fn writer_lock(path: &Path, settings: &Settings) -> Result<PathBuf> {
    lock_of(path, &file::superblock_of(path, settings)?, settings)
}

fn part_of(path: &Path, sb: &Superblock, settings: &Settings) -> Result<Option<FsPaths>> {
    match sb.purpose().to_string().as_str() {
        design::PURPOSE_DATA | design::PURPOSE_INDEX | design::PURPOSE_TIME | design::PURPOSE_URLS => {
            FsPaths::of(&path.with_extension("")).map(Some)
        }
        _ => Ok(filesys_around(path, &*settings.fs)),
    }
}

/// The files of a filesys, and what each says of itself.
const PARTS: [(&str, &str); 4] = [
    (DATA_SUFFIX, PURPOSE_DATA),
    (INDEX_SUFFIX, PURPOSE_INDEX),
    (TIME_SUFFIX, PURPOSE_TIME),
    (URL_INDEX_SUFFIX, PURPOSE_URLS),
];

/// The filesys that `path` is a part of by its name, if another of its files says that there is one. The file itself is
/// not asked: it may be broken, or missing.
pub fn filesys_around(path: &Path, fs: &dyn Fs) -> Option<FsPaths> {
    let suffix = path.extension()?.to_str()?;
    let paths = FsPaths::new(dir_of(path), path.file_stem()?.to_str()?).ok()?;
    let others = PARTS.iter().filter(|(other, _)| *other != suffix);
    // All of them are others if the suffix is none of ours.
    let is_part = others.clone().count() < PARTS.len();
    (is_part && others.into_iter().any(|(other, purpose)| says(&paths.file(other), purpose, fs))).then_some(paths)
}

/// Whether there is a file that says it is for `purpose`.
fn says(path: &Path, purpose: &str, fs: &dyn Fs) -> bool {
    let head = fs.open(path, Mode::Read).ok().and_then(|file| read_up_to(&*file, 0, HEAD_BYTES).ok());
    head.and_then(|head| purpose_of(&head)).is_some_and(|found| found.to_string() == purpose)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, CreateFilesys, CreateKvseq};
    use trawl_io::fault::FaultFs;

    #[test]
    fn shown_as_the_original_tool_does() {
        let disk = FaultFs::new();
        let clock = Clock::fixed(UnixMillis(1_200_913_506_000));
        let settings = Settings::new(clock, "test").on(disk.shared());
        let path = Path::new("/f");
        let create = CreateKvseq { sbsize: 256, purpose: Purpose::new("TEST").unwrap(), ..Default::default() };
        create.create(path, &settings).unwrap().close().unwrap();
        let text = inspect(path, &settings).unwrap().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "Superblock of /f:");
        assert_eq!(lines[1], "  SBSIZE  :                 256");
        assert_eq!(lines[2], "  FORMAT  :                  16 (kvseq)");
        assert_eq!(lines[3], "  PURPOSE : 6072351292821340160 (TEST)");
        assert_eq!(lines[7], "  SYNCTIME:          1200913506 (2008-01-21T11:05:06Z)");
        assert_eq!(lines[8], "  KEYREPR :                   0 (int8)");

        set_variables(path, &[("MINE".into(), 7), ("ALIGN".into(), 8)], &settings).unwrap();
        let again = inspect(path, &settings).unwrap();
        assert_eq!(again.clean, Some(true));
        assert_eq!(again.variables.last().unwrap().value, 7);
        assert!(set_variables(path, &[("SBSIZE".into(), 512)], &settings).is_err());
        assert_eq!(filesys_of(path, &settings).unwrap(), None);
    }

    #[test]
    fn a_part_of_a_filesys_has_the_lock_of_the_filesys() {
        let disk = FaultFs::new();
        let settings = Settings::new(Clock::fixed(UnixMillis(0)), "me").on(disk.shared());
        let paths = FsPaths::new(Path::new("/"), "fs").unwrap();
        let fs = CreateFilesys::new(1).create(&paths, &settings).unwrap();
        let change = || set_variables(&paths.index(), &[("MINE".into(), 7)], &settings);
        assert!(matches!(change(), Err(crate::Error::LockFailed(_))));
        fs.close().unwrap();
        change().unwrap();
        assert_eq!(filesys_of(&paths.time().with_file_name("fs.idx"), &settings).unwrap(), Some(paths.clone()));
        assert!(settings.fs.exists(&paths.lock()).unwrap(), "the lock of a filesys stays");
    }

    #[test]
    fn the_others_tell() {
        let disk = FaultFs::new();
        let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
        let paths = FsPaths::new(Path::new("/"), "fs").unwrap();
        CreateFilesys::new(1).create(&paths, &settings).unwrap().close().unwrap();
        CreateKvseq::default().create(Path::new("/words.data"), &settings).unwrap().close().unwrap();
        CreateKvseq::default().create(Path::new("/words.idx"), &settings).unwrap().close().unwrap();
        let around = |path: &str| filesys_around(Path::new(path), &*settings.fs);
        for part in ["/fs.data", "/fs.idx", "/fs.time", "/fs.urls"] {
            assert_eq!(around(part), Some(paths.clone()), "{part}");
        }
        for other in ["/fs", "/fs.lock", "/fs.kvseq", "/words.data", "/words.idx", "/none.data", "/", "/.data"] {
            assert_eq!(around(other), None, "{other}");
        }
        disk.shared().remove_file(&paths.index()).unwrap();
        assert_eq!(around("/fs.data"), None, "nobody else is left to say so");
        assert_eq!(around("/fs.idx"), Some(paths));
    }
}
