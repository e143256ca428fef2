//! Patterns of paths, for those whose shell did not expand them.

use anyhow::Context;
use glob::{MatchOptions, Pattern};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

/// Directories below one another that `**` looks into at most.
const MAX_DEPTH: usize = 64;

/// Whether a path has a wildcard.
pub fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

/// Everything a pattern matches, sorted: for those whose shell did not expand it. Names that begin with a dot match only where
/// the pattern says so; a pattern that ends with `/` matches directories only.
///
/// The crate's own walk is not used: it follows links in circles below `**`, and panics at names that are not UTF-8.
pub fn expand(pattern: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = part.as_os_str().to_string_lossy();
        let mut next = Vec::new();
        for path in found {
            match part {
                Component::Normal(_) if text == "**" => below(&path, MAX_DEPTH, &mut next)?,
                Component::Normal(_) if is_pattern(part.as_ref()) => {
                    let wanted = Pattern::new(&text).with_context(|| format!("pattern {}", pattern.display()))?;
                    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::new() };
                    let names =
                        names(&path)?.into_iter().filter(|name| wanted.matches_with(&name.to_string_lossy(), options));
                    next.extend(names.map(|name| path.join(name)));
                }
                _ => next.extend([path.join(part)].into_iter().filter(|path| path.exists())),
            }
        }
        found = next;
    }
    if pattern.to_string_lossy().ends_with('/') {
        found.retain(|path| path.is_dir());
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// What is in a directory; nothing if it is not one.
fn names(dir: &Path) -> io::Result<Vec<OsString>> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// The directory and all directories below it. Links are not followed: they may lead in a circle.
fn below(dir: &Path, depth: usize, out: &mut Vec<PathBuf>) -> io::Result<()> {
    out.push(dir.to_owned());
    for name in names(dir)?.into_iter().filter(|name| !name.as_encoded_bytes().starts_with(b".")) {
        let path = dir.join(name);
        if depth > 0 && path.is_dir() && !path.is_symlink() {
            below(&path, depth - 1, out)?;
        }
    }
    Ok(())
}
