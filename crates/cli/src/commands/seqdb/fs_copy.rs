//! `trawl seqdb fs import` and `export`: directories in and out.

use super::fs::{Open, change, open};
use super::fs_edit::store;
use super::told;
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{show_bytes, show_count};
use anyhow::Context;
use serde_json::json;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};
use trawl_archive::seqdb::Text;
use trawl_seqdb::pages::url_index_path;
use trawl_seqdb::{Access, FileInfo, FileReader, Filesys, FsPaths, Settings, WriteFlags, design};

/// Bytes moved at once.
const CHUNK: usize = 1 << 20;

#[derive(Default)]
struct Imported {
    files: u64,
    bytes: u64,
    present: u64,
    skipped: u64,
}

/// Imports a directory.
pub fn import(fs: &Path, from: &Path, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let bar = Progress::start("import", None, out.quiet());
    let paths = FsPaths::of(fs)?;
    // The filesys may lie in the directory: it would be copied into itself, without end.
    let (urls, global) = (url_index_path(&paths), paths.global_lock());
    let own = [paths.data(), paths.index(), paths.time(), urls, paths.lock(), global];
    let own: Vec<_> = own.iter().filter_map(|path| fs::metadata(path).ok()).map(|m| (m.dev(), m.ino())).collect();
    let mut done = Imported::default();
    change(fs, settings, |target| {
        let mut todo = vec![from.to_owned()];
        while let Some(dir) = todo.pop() {
            let entries = fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
            let mut paths = entries.map(|e| Ok(e?.path())).collect::<io::Result<Vec<_>>>()?;
            paths.sort();
            for path in paths {
                let meta = path.symlink_metadata().with_context(|| format!("cannot read {}", path.display()))?;
                if meta.is_dir() {
                    todo.push(path);
                } else if !meta.is_file() || own.contains(&(meta.dev(), meta.ino())) {
                    done.skipped += 1;
                } else {
                    import_file(target, from, &path, meta.mtime(), &mut done)?;
                    bar.report(done.files, || format!("{} files, {}", show_count(done.files), show_bytes(done.bytes)));
                }
            }
        }
        Ok(())
    })?;
    drop(bar);
    let Imported { files, bytes, present, skipped } = done;
    let json = json!({"type": "imported", "files": files, "bytes": bytes, "present": present, "skipped": skipped});
    let bytes = show_bytes(bytes);
    told(out, &json, &format!("{files} files, {bytes}; {present} were there already, {skipped} skipped"))?;
    Ok(Status::from_findings(present + skipped > 0))
}

fn import_file(target: &mut Filesys, dir: &Path, path: &Path, mtime: i64, done: &mut Imported) -> anyhow::Result<()> {
    let name = path.strip_prefix(dir).unwrap_or(path).as_os_str().as_bytes();
    if target.contains(name)? {
        done.present += 1;
        return Ok(());
    }
    let source = fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let flags = WriteFlags { excl: true, mtime: Some(mtime).filter(|_| !target.is_append_only()) };
    let stored = store(target, name, design::TYPE_PLAIN, flags, Box::new(source));
    done.bytes += stored.with_context(|| path.display().to_string())?;
    done.files += 1;
    Ok(())
}

/// Exports to a directory.
pub fn export(fs: &Path, to: &Path, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let Open { fs: source, .. } = &open(fs, Access::Read, settings)?;
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let bar = Progress::start("export", None, out.quiet());
    let (mut stored, mut bytes, mut refused) = (0u64, 0u64, 0u64);
    let mut files = source.files();
    while let Some(info) = files.next_file()? {
        match export_file(source, &info, to)? {
            Ok(n) => {
                stored += 1;
                bytes += n;
            }
            Err(why) => {
                refused += 1;
                out.remark(&format!("refused: {}: {why}", Text(&info.name)));
            }
        }
        bar.report(stored, || format!("{} files, {}", show_count(stored), show_bytes(bytes)));
    }
    drop(bar);
    let json = json!({"type": "exported", "files": stored, "bytes": bytes, "refused": refused});
    told(out, &json, &format!("{stored} files, {}; {refused} refused", show_bytes(bytes)))?;
    Ok(Status::from_findings(refused > 0))
}

/// The first directory on the way to a file in `dir` that is a link. The last part is not looked at: what is there
/// already is never written to.
fn link_on_the_way(dir: &Path, relative: &Path) -> Option<PathBuf> {
    let mut path = dir.to_owned();
    relative.parent()?.components().find_map(|part| {
        path.push(part);
        path.symlink_metadata().is_ok_and(|meta| meta.is_symlink()).then(|| path.clone())
    })
}

/// Copies one file out; the inner error is a name that cannot be had, or contents that cannot be read.
fn export_file(source: &Filesys, info: &FileInfo, dir: &Path) -> anyhow::Result<Result<u64, String>> {
    let relative = PathBuf::from(std::ffi::OsString::from_vec(info.name.clone()));
    let plain = relative.components().all(|c| matches!(c, Component::Normal(_)));
    // `components` passes over `a//b`, `a/./b` and `a/`: they would come out under another name.
    let mut parts = info.name.split(|b| *b == b'/');
    if !plain || info.name.contains(&0) || parts.any(|part| part.is_empty() || part == b".") {
        return Ok(Err("not the name of a file in the directory".into()));
    }
    if let Some(link) = link_on_the_way(dir, &relative) {
        return Ok(Err(format!("{} is a link, which may lead out of the directory", link.display())));
    }
    // What cannot be read must not leave an empty file that looks like it.
    let mut contents = match source.open_listed(info) {
        Ok(file) => source.reader(file),
        Err(error) => return Ok(Err(error.to_string())),
    };
    let path = dir.join(relative);
    let created = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::File::create_new(&path));
    let mut file = match created {
        Ok(file) => file,
        // Two names may be a file and a directory, or too long for this file system.
        Err(error) if error.kind() != io::ErrorKind::StorageFull => return Ok(Err(error.to_string())),
        Err(error) => return Err(error).with_context(|| format!("cannot create {}", path.display())),
    };
    let copied = copy_out(&mut contents, &mut file);
    if !matches!(copied, Ok(Ok(()))) {
        // Nor a part of it. That it cannot even be removed is not the news.
        let _ = fs::remove_file(&path);
    }
    if let Err(error) = copied.with_context(|| format!("cannot write {}", path.display()))? {
        return Ok(Err(error.to_string()));
    }
    if let Ok(seconds) = u64::try_from(info.mtime)
        && let Some(time) = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    {
        // A time that the file system cannot hold is no reason to fail.
        let _ = file.set_modified(time);
    }
    Ok(Ok(contents.len()))
}

/// Copies the contents; the inner error is one of reading.
fn copy_out(contents: &mut FileReader<'_>, file: &mut fs::File) -> io::Result<io::Result<()>> {
    let mut buf = vec![0; CHUNK];
    loop {
        match contents.read(&mut buf) {
            Ok(0) => return Ok(Ok(())),
            Ok(n) => file.write_all(&buf[..n])?,
            Err(error) => return Ok(Err(error)),
        }
    }
}
