//! Patterns of paths, for those whose shell did not expand them: `*`, `?`, `[a-z]`, `[!a]`, and `**` for any depth.

use std::io;
use std::path::{Component, Path, PathBuf};

/// Directories below one another that `**` looks into at most.
const MAX_DEPTH: usize = 64;

/// Whether a path has a wildcard.
pub fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

/// Everything a pattern matches, sorted. Names that begin with a dot match only where the pattern says so. A pattern that
/// ends with `/` matches directories only.
pub fn expand(pattern: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let text = match part {
            Component::Normal(text) => text.to_string_lossy().into_owned(),
            fixed => {
                found.iter_mut().for_each(|path| path.push(fixed));
                continue;
            }
        };
        let mut next = Vec::new();
        for path in found {
            if text == "**" {
                below(&path, MAX_DEPTH, &mut next)?;
            } else if is_pattern(Path::new(&text)) {
                let names = names(&path)?.into_iter().filter(|name| matches(&text, name));
                next.extend(names.map(|name| path.join(name)));
            } else if path.join(&text).exists() {
                next.push(path.join(&text));
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

/// What is in a directory; nothing if it is none.
fn names(dir: &Path) -> io::Result<Vec<String>> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    std::fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// The directory and all directories below it.
fn below(dir: &Path, depth: usize, out: &mut Vec<PathBuf>) -> io::Result<()> {
    out.push(dir.to_owned());
    for name in names(dir)?.into_iter().filter(|name| !name.starts_with('.')) {
        let path = dir.join(name);
        if depth > 0 && path.is_dir() && !path.is_symlink() {
            below(&path, depth - 1, out)?;
        }
    }
    Ok(())
}

/// Whether a name fits a pattern without slashes.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // The last star seen, and how much of the name it stands for: on a mismatch it takes one character more.
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some('?') => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            Some('[') => {
                if let Some((true, after)) = class(&pattern, p, name[n]) {
                    (p, n) = (after, n + 1);
                    continue;
                }
            }
            Some(c) if *c == name[n] => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            _ => {}
        }
        match star {
            None => return false,
            Some((at, taken)) => {
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether a character is in the class that begins at `at`, and where the pattern goes on; `None` if the class never ends.
fn class(pattern: &[char], at: usize, c: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(at + 1), Some('!' | '^'));
    let start = at + 1 + usize::from(negated);
    let end = start + 1 + pattern.get(start + 1..)?.iter().position(|c| *c == ']')?;
    let (mut i, mut found) = (start, false);
    while i < end {
        if i + 2 < end && pattern[i + 1] == '-' {
            found |= (pattern[i]..=pattern[i + 2]).contains(&c);
            i += 3;
        } else {
            found |= pattern[i] == c;
            i += 1;
        }
    }
    Some((found != negated, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, fits) in [
            ("*", "a", true),
            ("*", ".a", false),
            (".*", ".a", true),
            ("*.txt", "a.txt", true),
            ("*.txt", "a.txt.gz", false),
            ("a*b*c", "aXbYbc", true),
            ("a*b*c", "aXbYb", false),
            ("?", "", false),
            ("?b", "ab", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]x", "]x", true),
            ("[x", "[x", false),
            ("ü?", "üß", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn paths_fit_patterns() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["runs/a/x.txt", "runs/b/x.txt", "runs/b/deep/y.txt", "runs/x.txt", "other/x.txt"] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let all = expand(&dir.path().join(pattern)).unwrap();
            all.iter().map(|p| p.strip_prefix(dir.path()).unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(found("runs/*/"), ["runs/a", "runs/b"]);
        assert_eq!(found("*/x.txt"), ["other/x.txt", "runs/x.txt"]);
        assert_eq!(found("runs/**/*.txt"), ["runs/a/x.txt", "runs/b/deep/y.txt", "runs/b/x.txt", "runs/x.txt"]);
        assert_eq!(found("runs/[a]/?.txt"), ["runs/a/x.txt"]);
        assert!(found("none/*").is_empty());
    }
}
