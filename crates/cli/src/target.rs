//! Where results go: never over what they are made from.

use crate::system;
use anyhow::bail;
use std::path::{Path, PathBuf};

/// Refuses a target that is one of the inputs, whatever it is called and whichever links lead to it, or that lies inside one.
pub fn refuse_inputs<'a>(target: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> anyhow::Result<()> {
    let place = place_of(target);
    for input in inputs {
        let Ok(real) = input.canonicalize() else { continue };
        if place.starts_with(&real) || is_same(target, &real) {
            let (target, input) = (target.display(), input.display());
            bail!("{target} would be written over {input}, which is read: choose another name");
        }
    }
    Ok(())
}

/// Refuses a target that is an archive already: what replaces a file without asking must not replace that one by mistake.
pub fn refuse_archive(target: &Path) -> anyhow::Result<()> {
    if !target.exists() {
        return Ok(());
    }
    let (fs, registry) = system::archives();
    match registry.detect(&fs, target)? {
        Some(format) if !format.is_index() => {
            bail!("{} is an archive ({}): choose another name", target.display(), format.name())
        }
        _ => Ok(()),
    }
}

/// The path without links and dots, of a file that need not be there yet.
fn place_of(target: &Path) -> PathBuf {
    if let Ok(real) = target.canonicalize() {
        return real;
    }
    let dir = target.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (dir.canonicalize(), target.file_name()) {
        (Ok(dir), Some(name)) => dir.join(name),
        _ => target.to_owned(),
    }
}

/// Whether two names are of one file: hard links, too.
fn is_same(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_known_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::write(dir.join("a"), "x").unwrap();
        std::fs::create_dir(dir.join("d")).unwrap();
        std::fs::hard_link(dir.join("a"), dir.join("hard")).unwrap();
        std::os::unix::fs::symlink("a", dir.join("soft")).unwrap();
        std::os::unix::fs::symlink("d", dir.join("e")).unwrap();
        let a = dir.join("a");
        let refused = |target: &str, input: &Path| refuse_inputs(&dir.join(target), [input]).is_err();
        for target in ["a", "d/../a", "./a", "hard", "soft", "e/../a"] {
            assert!(refused(target, &a), "{target}");
        }
        assert!(
            refused("a", &dir.join("soft")) && refused("d/new", &dir.join("d")) && refused("e/new", &dir.join("d"))
        );
        assert!(!refused("b", &a) && !refused("dd", &dir.join("d")) && !refused("a", &dir.join("none")));
    }
}
