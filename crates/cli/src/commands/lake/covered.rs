//! No capture is taken twice: archives whose captures a captures.parquet has are not read, nor is a package of archives that are, nor
//! a CDX index of them.

use super::ingest::base_uri;
use super::sources::{Expanded, NotFile, SourcePath, is_captures};
use crate::commands::captures::is_part;
use crate::commands::copies::{OPEN, unpacked};
use crate::system;
use anyhow::bail;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::{Beside, Found, archives_of, packed};
use trawl_ingest::source::Format;
use trawl_io::read_at::FileReader;
use trawl_io::{FileId, Fs, RealFs};
use trawl_lists as lists;
use trawl_store::KnownSource;

/// Why captures may be there twice.
const TWICE: &str = "archives of the same names are read beside it, but not all that it has, or other ones: captures that both have are added twice";

/// Takes out of the files what others among them stand for, and says so.
pub(super) fn settle(all: &mut Expanded) {
    let mut covered = covered(&all.files);
    let paths: BTreeSet<PathBuf> = all.files.iter().map(|file| file.path.clone()).collect();
    let is_read = |path: &Path| paths.contains(path);
    let files = std::mem::take(&mut all.files);
    // The archives that a package was made of lie in a directory beside it. The index of the package has their captures.
    for file in files.iter().filter(|file| is_package(file) && covered.contains_key(&file.path)).collect::<Vec<_>>() {
        for beside in packed_of(file, &is_read) {
            match beside {
                Beside::Same(path) => {
                    covered.entry(path).or_insert(None);
                }
                Beside::Grown(path) | Beside::Other(path) if !covered.contains_key(&path) => {
                    all.incomplete.push(NotFile { path: file.path.display().to_string(), why: TWICE });
                }
                _ => {}
            }
        }
    }
    let renamed = renamed(&files, &covered);
    // By whatever name it is reached, an archive is the one that the index lists.
    let ids: HashMap<FileId, Option<u64>> =
        covered.iter().filter_map(|(path, bytes)| Some((id_of(path)?, *bytes))).collect();
    let listed = |path: &Path| covered.get(path).or_else(|| ids.get(&id_of(path)?));
    let mut changed = Vec::new();
    for file in files {
        let shown = file.path.display().to_string();
        match listed(&file.path) {
            Some(Some(bytes)) if fs::metadata(&file.path).is_ok_and(|found| found.len() != *bytes) => {
                let why =
                    "changed since its index was made; only the index was read: `trawl captures rebuild` updates it";
                all.incomplete.push(NotFile { path: shown, why });
                changed.push(file.path);
            }
            Some(_) => {
                all.bases.extend(file.path.parent().map(base_uri));
                all.indexed.push(shown);
            }
            None if renamed.contains(&file.path) => {
                let why = "its index names another place; only the index was read: `trawl captures rebuild` updates it";
                all.incomplete.push(NotFile { path: shown, why });
                changed.push(file.path);
            }
            None => {
                let beside = if is_package(&file) { packed_of(&file, &is_read) } else { Vec::new() };
                if !beside.is_empty() && beside.iter().all(Beside::is_whole) {
                    all.not_files.push(NotFile { path: shown, why: "a copy of archives that are read" });
                    continue;
                }
                let why = "listed in the package, but not in it, or without a byte: its captures are missing";
                all.incomplete.extend(missing(&file).into_iter().map(|path| NotFile { path, why }));
                if beside.iter().any(|beside| *beside != Beside::Nothing) {
                    all.incomplete.push(NotFile { path: shown, why: TWICE });
                }
                all.files.push(file);
            }
        }
    }
    settle_cdx(all, &changed);
    tell_twins(all);
}

/// Names what may be another file that is read, packed otherwise: who compresses a file may keep both.
fn tell_twins(all: &mut Expanded) {
    let mut known: BTreeMap<PathBuf, &Path> = BTreeMap::new();
    for file in &all.files {
        if *known.entry(unpacked(&file.path)).or_insert(&file.path) != file.path {
            let why = "a file of the same name, but for how it is packed, is read as well: rows that both have are added twice";
            all.incomplete.push(NotFile { path: file.path.display().to_string(), why });
        }
    }
}

/// Leaves out CDX indexes of archives that are read themselves, or of which an index of captures is read, `changed` as they may
/// be: those say more.
fn settle_cdx(all: &mut Expanded, changed: &[PathBuf]) {
    let archives = all.files.iter().map(|file| file.path.as_path()).chain(all.indexed.iter().map(Path::new));
    let archives = archives.chain(changed.iter().map(PathBuf::as_path)).filter(|path| is_archive(path));
    let archives: BTreeSet<String> = archives.map(|path| base(&unpacked(path))).collect();
    if archives.is_empty() {
        return;
    }
    for file in std::mem::take(&mut all.files) {
        let (mut read, mut others) = (0u64, 0u64);
        // What was named, and is not only found, was asked for.
        if let Some(format) = file.found.then(|| cdx_format(&file)).flatten() {
            each_archive(&file.path, format, &mut |name| {
                let name = base(&unpacked(Path::new(name)));
                *(if archives.contains(&name) { &mut read } else { &mut others }) += 1;
            });
        }
        let path = file.path.display().to_string();
        match (read, others) {
            (1.., 0) => all.not_files.push(NotFile { path, why: "an index of archives that are read" }),
            (1.., _) => {
                let why = "an index that also names archives that are read: their captures are added twice";
                all.incomplete.push(NotFile { path, why });
                all.files.push(file);
            }
            _ => all.files.push(file),
        }
    }
}

fn base(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_archive(path: &Path) -> bool {
    let name = base(path).to_ascii_lowercase();
    let name = name.strip_suffix(OPEN).unwrap_or(&name);
    [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"].iter().any(|ending| name.ends_with(ending))
}

/// The format of a CDX index, by its name or by what named it.
fn cdx_format(file: &SourcePath) -> Option<lists::Format> {
    match (file.format, lists::extension(&file.path).as_deref()) {
        (Some(Format::List(format @ (lists::Format::Cdx | lists::Format::Cdxj))), _) => Some(format),
        (_, Some("cdx" | "cdxj")) => {
            let fs: Arc<dyn Fs> = Arc::new(RealFs);
            let format = lists::look(&fs, &file.path).ok()?.format;
            format.filter(|format| matches!(format, lists::Format::Cdx | lists::Format::Cdxj))
        }
        _ => None,
    }
}

/// Tells the name of the archive of every line. What cannot be read is reported when the index itself is.
fn each_archive(path: &Path, format: lists::Format, each: &mut dyn FnMut(&str)) {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let Ok(source) = lists::open(&fs, path, Some(format), &lists::Options::default()) else { return };
    for split in source.splits(u64::MAX).unwrap_or_default() {
        let _ = source.read(split, &mut |_, item| {
            if let Some(place) = item.ok().and_then(|record| record.place) {
                each(&base(Path::new(&*place.file)));
            }
            Ok(())
        });
    }
}

/// Refuses an index of captures that the dataset has taken already, from another index or from the archives themselves. What rows
/// of it are new is unknown: an index is written anew when a crawl continues. Where it `replaces` what it was, that goes.
pub(super) fn refuse_again(
    known: &[KnownSource],
    index: &Path,
    indexed: &[String],
    replaces: bool,
) -> anyhow::Result<()> {
    if !is_captures(index) {
        return Ok(());
    }
    let is_whole = |path: &Path| !is_part(&base(path));
    let again = |path: &Path| {
        let beside = path.parent() == index.parent() && path.extension() == index.extension();
        let is_index = beside && base(path).starts_with("captures");
        // An index of one archive says nothing of the others.
        let same = is_index && (path == index && !replaces || is_whole(path) != is_whole(index));
        same || indexed
            .iter()
            .any(|archive| path == Path::new(archive) || path == Path::new(&format!("{archive}.open")))
    };
    match known.iter().find(|known| again(Path::new(&known.identity.uri))) {
        None => Ok(()),
        Some(known) => bail!(
            "the dataset has taken {}, and {} has captures of the same archives: they would be added twice. --replace \
             replaces the whole dataset by what is there now",
            known.identity.uri,
            index.display()
        ),
    }
}

/// What the indexes among some files cover, and how long it was then.
fn covered(files: &[SourcePath]) -> BTreeMap<PathBuf, Option<u64>> {
    let mut covered = BTreeMap::new();
    // An index alone need not be asked: it may have any number of rows.
    let indexes: Vec<_> = files.iter().filter(|file| is_captures(&file.path)).collect();
    for index in indexes.iter().filter(|_| indexes.len() < files.len()) {
        covered.extend(listed(&index.path));
    }
    covered
}

/// The archives that were moved, renamed or packed otherwise since an index listed them. Of those that are listed and not there any
/// more, one has the same length, or the same name in the same directory but for the ending of its compression.
fn renamed(files: &[SourcePath], covered: &BTreeMap<PathBuf, Option<u64>>) -> BTreeSet<PathBuf> {
    let gone: Vec<_> = covered.iter().filter(|(path, _)| !path.exists()).collect();
    let lengths: BTreeSet<u64> = gone.iter().filter_map(|(_, bytes)| **bytes).collect();
    let names: BTreeSet<PathBuf> = gone.iter().map(|(path, _)| unpacked(path)).collect();
    let is_one = |path: &Path| {
        names.contains(&unpacked(path)) || fs::metadata(path).is_ok_and(|found| lengths.contains(&found.len()))
    };
    let archives = files.iter().filter(|file| is_archive(&file.path) || is_package(file)).map(|file| &file.path);
    archives.filter(|path| !covered.contains_key(*path) && is_one(path.as_path())).cloned().collect()
}

/// The archives that an index lists, and how long they were then. One that cannot be read is reported when its rows are taken.
fn listed(index: &Path) -> impl Iterator<Item = (PathBuf, Option<u64>)> {
    let archives = FileReader::open(index).ok().and_then(|file| archives_of(Arc::new(file)).ok());
    archives.unwrap_or_default().into_iter().map(move |archive| {
        let path = index.with_file_name(&archive.name);
        (path.canonicalize().unwrap_or(path), archive.bytes)
    })
}

/// The archives whose captures a dataset has from an index beside them, and that index. One that changed since it was taken tells
/// nothing of what it was.
pub(super) fn taken_by_index(known: &[KnownSource], files: &[SourcePath]) -> BTreeMap<PathBuf, PathBuf> {
    let archives = files.iter().map(|file| file.path.as_path()).filter(|path| is_archive(path));
    let dirs: BTreeSet<&Path> = archives.filter_map(Path::parent).collect();
    let mut taken = BTreeMap::new();
    for identity in known.iter().map(|known| &known.identity) {
        let index = Path::new(&identity.uri);
        let is_same = || fs::metadata(index).is_ok_and(|found| found.len() == identity.size);
        if index.parent().is_some_and(|dir| dirs.contains(dir)) && is_captures(index) && is_same() {
            taken.extend(listed(index).map(|(archive, _)| (archive, index.to_owned())));
        }
    }
    taken
}

/// Refuses an archive whose captures the dataset has taken from an index of it.
pub(super) fn refuse_indexed(taken: &BTreeMap<PathBuf, PathBuf>, archive: &Path) -> anyhow::Result<()> {
    match taken.get(archive) {
        None => Ok(()),
        Some(index) => bail!(
            "the dataset has taken the captures of {} from {}: they would be added twice. Name the index, or its directory, instead",
            archive.display(),
            index.display()
        ),
    }
}

fn is_package(file: &SourcePath) -> bool {
    file.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("wacz"))
}

/// What a package says it has, and does not have. One that cannot be opened is reported when it is read.
fn missing(file: &SourcePath) -> Vec<String> {
    if !is_package(file) {
        return Vec::new();
    }
    let (fs, registry) = system::archives();
    let format = registry.detect(&fs, &file.path).ok().flatten();
    let archive = format.and_then(|format| format.open(&trawl_archive::Opening::new(&fs, &file.path)).ok());
    let named = |inside: &String| format!("{}: {inside}", file.path.display());
    archive.map(|archive| archive.missing().iter().map(named).collect()).unwrap_or_default()
}

/// The archives in a package, and what of each of them lies beside it.
fn packed_of(file: &SourcePath, is_read: &dyn Fn(&Path) -> bool) -> Vec<Beside> {
    let (fs, registry) = system::archives();
    let format = registry.detect(&fs, &file.path).ok().flatten();
    format.map(|format| packed(&fs, &Found { path: file.path.clone(), format }, is_read)).unwrap_or_default()
}

/// Which file is at a path, whatever its name.
fn id_of(path: &Path) -> Option<FileId> {
    RealFs.metadata(path).ok().map(|found| found.id)
}
