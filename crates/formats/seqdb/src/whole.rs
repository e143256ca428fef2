//! Checking and repairing whatever a path names, by its magic and its neighbours.

use crate::filesys::{self, FsFindings, FsPaths, FsRepair};
use crate::findings::Findings;
use crate::hindex::{self, IndexFindings, Rebuilt};
use crate::inspect::{self, filesys_around};
use crate::kvseq::{self, KvFindings, KvRepair, lock_path};
use crate::map::{self, MapFiles};
use crate::perm::{self, PermFindings};
use crate::{Access, Error, Hindex, Kind, Kvseq, OnProgress, Perm, Result, Settings, aside, design, lock, pages};
use std::path::{Path, PathBuf};

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whole {
    /// A filesys.
    Filesys(FsPaths),
    /// A container of captures: a filesys with an index by URL.
    Pages(FsPaths),
    /// A kvseq with an index beside it.
    Map(MapFiles),
    /// A kvseq alone.
    Kvseq(PathBuf),
    /// An index, with its container if that lies beside it.
    Hindex(PathBuf, Option<PathBuf>),
    /// A perm file, with its container if that lies beside it.
    Perm(PathBuf, Option<PathBuf>),
}

/// What a check counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Counted {
    /// Files.
    Filesys(FsFindings),
    /// Entries.
    Kvseq(KvFindings),
    /// Keys.
    Hindex(IndexFindings),
    /// Pairs.
    Perm(PermFindings),
    /// Only the superblock could be checked, for want of the container.
    Superblock,
}

/// What a repair did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repaired {
    /// To a filesys, or a container of captures.
    Filesys(FsRepair),
    /// To a kvseq, alone or of a map.
    Kvseq(KvRepair),
    /// To an index.
    Hindex(Rebuilt),
    /// To a perm file, which has so many pairs now.
    Perm(u64),
}

impl Whole {
    /// Finds out what `path` names: one of the files, or a filesys as `BASE/NAME`.
    pub fn of(path: &Path, settings: &Settings) -> Result<Self> {
        let fs = &settings.fs;
        let is_file = fs.metadata(path).is_ok_and(|m| !m.is_dir);
        if !is_file {
            let paths = FsPaths::of(path)?;
            if fs.exists(&paths.data())? {
                return Self::filesys(paths, settings);
            }
            let missing = Error::FilesysNotFound(paths.data());
            return Self::around(path, settings)?.ok_or(missing);
        }
        // The file itself may be what is broken.
        if let Some(whole) = Self::around(path, settings)? {
            return Ok(whole);
        }
        let seen = inspect::inspect(path, settings)?;
        let stem = path.with_extension("");
        let beside = |suffix: &str| -> Result<Option<PathBuf>> {
            let other = aside::with_suffix(&stem, suffix);
            Ok(if fs.exists(&other)? { Some(other) } else { None })
        };
        match (seen.kind, seen.purpose.as_str()) {
            (_, design::PURPOSE_DATA | design::PURPOSE_INDEX | design::PURPOSE_TIME | design::PURPOSE_URLS) => {
                Self::filesys(FsPaths::of(&stem)?, settings)
            }
            (Kind::Kvseq, _) => Ok(match beside(design::HINDEX_SUFFIX)? {
                Some(hindex) if hindex != path => Whole::Map(MapFiles { kvseq: path.into(), hindex }),
                _ => Whole::Kvseq(path.into()),
            }),
            (Kind::Hindex, _) => Ok(Whole::Hindex(path.into(), beside(design::KVSEQ_SUFFIX)?)),
            (Kind::Perm, _) => Ok(Whole::Perm(path.into(), beside(design::KVSEQ_SUFFIX)?)),
        }
    }

    /// The filesys that the files around `path` say it is a part of.
    fn around(path: &Path, settings: &Settings) -> Result<Option<Self>> {
        match filesys_around(path, &*settings.fs) {
            Some(paths) if settings.fs.exists(&paths.data())? => Self::filesys(paths, settings).map(Some),
            _ => Ok(None),
        }
    }

    /// The filesys of that name, whatever its files say of themselves.
    pub fn filesys(paths: FsPaths, settings: &Settings) -> Result<Self> {
        Ok(if pages::has_urls(&paths, settings)? { Whole::Pages(paths) } else { Whole::Filesys(paths) })
    }

    /// Checks everything that belongs to it; faults go to `findings`. Refused while a process writes: what is half there
    /// is not a fault.
    pub fn verify(&self, settings: &Settings, findings: &mut Findings, progress: OnProgress<'_>) -> Result<Counted> {
        let (path, container) = match self {
            Whole::Filesys(paths) | Whole::Pages(paths) => {
                return Ok(Counted::Filesys(filesys::verify(paths, settings, findings, progress)?));
            }
            Whole::Map(files) => return Ok(Counted::Kvseq(map::verify(files, settings, findings, progress)?)),
            Whole::Kvseq(path) => return Ok(Counted::Kvseq(map::verify(&**path, settings, findings, progress)?)),
            Whole::Hindex(path, container) | Whole::Perm(path, container) => (path, container),
        };
        let files = [path].into_iter().chain(container);
        files.into_iter().try_for_each(|path| lock::refuse_written(settings, &lock_path(path)))?;
        let kv = container.as_ref().map(|container| Kvseq::open(container, Access::Read, settings)).transpose()?;
        Ok(match (self, kv) {
            (Whole::Hindex(..), Some(kv)) => Counted::Hindex(hindex::verify(path, &kv, settings, findings, progress)?),
            (_, Some(kv)) => Counted::Perm(perm::verify(path, &kv, settings, findings)?),
            (_, None) => {
                let opened = match self {
                    Whole::Hindex(..) => Hindex::open(path, Access::Read, settings).map(|_| ()),
                    _ => Perm::open(path, Access::Read, settings).map(|_| ()),
                };
                opened.or_else(|e| findings.take(e))?;
                Counted::Superblock
            }
        })
    }

    /// Repairs it: back to the last sync, or with `salvage` as far as entries are whole; indexes are rebuilt.
    pub fn repair(&self, settings: &Settings, salvage: bool, progress: OnProgress<'_>) -> Result<Repaired> {
        Ok(match self {
            Whole::Filesys(paths) | Whole::Pages(paths) => {
                Repaired::Filesys(filesys::repair(paths, settings, salvage, progress)?)
            }
            Whole::Map(files) => Repaired::Kvseq(map::repair(files, settings, salvage, progress)?.kvseq),
            Whole::Kvseq(path) => Repaired::Kvseq(kvseq::repair(path, settings, salvage)?),
            Whole::Perm(path, _) => Repaired::Perm(perm::repair(path, settings)?),
            Whole::Hindex(path, Some(container)) => {
                let kv = Kvseq::open(container, Access::Read, settings)?;
                Repaired::Hindex(hindex::rebuild(path, &kv, None, None, settings, progress)?)
            }
            Whole::Hindex(path, None) => {
                return Err(Error::refused(path, "an index is rebuilt from its container, which is not beside it"));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, CreateFilesys, CreateHindex, CreateKvseq, CreatePages, CreatePerm, Map, silent};
    use trawl_io::fault::FaultFs;
    use trawl_model::UnixMillis;

    #[test]
    fn a_path_is_enough() {
        let disk = FaultFs::new();
        let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
        let map = MapFiles::named(Path::new("/map"));
        let mut both = Map::create(&map, &CreateKvseq::default(), &CreateHindex::default(), &settings).unwrap();
        both.put(b"a", b"1").unwrap();
        both.close().unwrap();
        let kv = Kvseq::open(&map.kvseq, Access::Read, &settings).unwrap();
        let mut perm = CreatePerm::default().create(Path::new("/map.perm"), &settings).unwrap();
        perm.build(&kv).unwrap();
        perm.close().unwrap();
        CreateKvseq::default().create(Path::new("/alone"), &settings).unwrap().close().unwrap();
        let paths = |name| FsPaths::new(Path::new("/"), name).unwrap();
        CreateFilesys::new(1).create(&paths("fs"), &settings).unwrap().close().unwrap();
        CreatePages::new(1).create(&paths("pages"), &settings).unwrap().close().unwrap();
        let expected = [
            ("/map.kvseq", Whole::Map(map.clone())),
            ("/map.hindex", Whole::Hindex(map.hindex.clone(), Some(map.kvseq.clone()))),
            ("/map.perm", Whole::Perm("/map.perm".into(), Some(map.kvseq.clone()))),
            ("/alone", Whole::Kvseq("/alone".into())),
            ("/fs", Whole::Filesys(paths("fs"))),
            ("/fs.data", Whole::Filesys(paths("fs"))),
            ("/fs.idx", Whole::Filesys(paths("fs"))),
            ("/pages", Whole::Pages(paths("pages"))),
            ("/pages.urls", Whole::Pages(paths("pages"))),
            ("/pages.time", Whole::Pages(paths("pages"))),
        ];
        for (path, whole) in expected {
            let found = Whole::of(Path::new(path), &settings).unwrap();
            assert_eq!(found, whole, "{path}");
            let mut findings = Findings::new();
            found.verify(&settings, &mut findings, &silent).unwrap();
            assert!(findings.is_sound() && findings.warnings() == 0, "{path}: {:?}", findings.list());
            found.repair(&settings, false, &silent).unwrap();
        }
        assert!(matches!(Whole::of(Path::new("/none"), &settings), Err(Error::FilesysNotFound { .. })));
    }

    /// Takes every file but the data file away, breaks it, or lets it claim to be something else.
    #[test]
    fn a_filesys_is_known_by_what_is_left_of_it() {
        type Harm = fn(&Path, &Settings);
        let lose: Harm = |path, settings| settings.fs.remove_file(path).unwrap();
        let breaks: Harm = |path, settings| {
            settings.fs.open(path, trawl_io::Mode::Write).unwrap().write_at(0, b"?").unwrap();
        };
        let claim: Harm = |path, settings| inspect::set_variables(path, &[("PURPOSE".into(), 7)], settings).unwrap();
        let paths = FsPaths::new(Path::new("/"), "c").unwrap();
        for (part, harm, repairable) in [
            ("idx", lose, true),
            ("time", lose, true),
            ("urls", lose, true),
            ("idx", breaks, true),
            ("time", breaks, true),
            ("urls", breaks, true),
            ("data", breaks, false),
            ("data", claim, true),
        ] {
            let disk = FaultFs::new();
            let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
            let mut pages = CreatePages::new(1).create(&paths, &settings).unwrap();
            pages.append(b"http://a/", UnixMillis(1), crate::Form::Plain, b"event").unwrap();
            pages.close().unwrap();
            let path = paths.file(part);
            harm(&path, &settings);
            let whole = Whole::of(&path, &settings).unwrap();
            assert_eq!(whole, Whole::Pages(paths.clone()), "{part}");
            assert_eq!(Whole::of(&paths.data(), &settings).unwrap(), whole, "{part}");
            let check = || {
                let mut findings = Findings::new();
                whole.verify(&settings, &mut findings, &silent).unwrap();
                findings.is_sound()
            };
            assert!(!check(), "{part}");
            assert_eq!(whole.repair(&settings, false, &silent).is_ok(), repairable, "{part}");
            assert_eq!(check(), repairable, "{part}");
            if repairable {
                let pages = crate::Pages::open(&paths, Access::Read, &settings).unwrap();
                assert_eq!(pages.newest(b"http://a/").unwrap().unwrap().event, b"event");
            }
        }
    }
}
