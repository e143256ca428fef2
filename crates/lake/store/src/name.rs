//! Names and paths that come from outside: checked before they touch a store.

use crate::{Error, Result};

/// Longest path inside a lake; object stores allow 1024 bytes.
pub const MAX_PATH_LEN: usize = 900;

const PATH: &str = "a relative path of letters, digits and . _ - = between single slashes, no part starting with a dot";
const NAME: &str = "a name of 1 to 128 letters, digits, '.', '_', '-', not starting with a dot";

/// Checks a path inside a lake: relative, `/` between parts, no part empty or starting with a dot (so neither `..` nor a
/// file that is being written), only `[A-Za-z0-9._=-]`.
pub fn check_path(path: &str) -> Result<()> {
    let fits = path.len() <= MAX_PATH_LEN && path.split('/').all(|part| part_fits(part, |b| b == b'='));
    if fits { Ok(()) } else { Err(Error::bad_name(PATH, path)) }
}

/// Checks one part of a path that somebody else chose: a segment id, a writer id, a part name.
pub fn check_name(name: &str) -> Result<()> {
    let fits = name.len() <= 128 && part_fits(name, |_| false);
    if fits { Ok(()) } else { Err(Error::bad_name(NAME, name)) }
}

fn part_fits(part: &str, also: impl Fn(u8) -> bool) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-') || also(b);
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_paths_pass() {
        for good in ["a", "urls/dataset_id=1/domain_prefix=all/part-0.parquet", "index/2025-10-20/domains.txt.zst"] {
            assert!(check_path(good).is_ok(), "{good}");
        }
        let long = "a/".repeat(500) + "a";
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "a/",
            "a//b",
            "..",
            "a/../b",
            "a/./b",
            ".tmp",
            "a/.tmp",
            "a\\b",
            "a b",
            "a\0b",
            "a\nb",
            "é",
            "{shard}",
            "C:x",
            &long,
        ] {
            assert!(check_path(bad).is_err(), "{bad:?}");
        }
        assert!(check_name("2026-01-01T00.w-1").is_ok());
        for bad in ["", "a/b", "a=b", "..", ".x", "a b"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
