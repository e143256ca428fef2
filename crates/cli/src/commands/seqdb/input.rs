//! Pairs from a file: lines with tabs, or netstrings.

use anyhow::{Context, bail};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The longest line or netstring that is read.
const MAX_BYTES: u64 = 1 << 30;

/// Opens a file; `-` is stdin.
pub fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, file)))
}

/// One line: a key, a tab, a value that may hold further tabs. `None` at the end.
pub fn tab_line(input: &mut dyn BufRead, line: &mut Vec<u8>, number: u64) -> anyhow::Result<Option<usize>> {
    if !read_line(input, line, MAX_BYTES).with_context(|| format!("line {number}"))? {
        return Ok(None);
    }
    match line.iter().position(|b| *b == b'\t') {
        Some(tab) => Ok(Some(tab)),
        None => bail!("line {number}: expected a key, a tab and a value, found no tab"),
    }
}

/// A line of up to `limit` bytes, without its end. `false` if there is none.
fn read_line(input: &mut dyn BufRead, line: &mut Vec<u8>, limit: u64) -> anyhow::Result<bool> {
    line.clear();
    let read = input.take(limit + 1).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() as u64 > limit {
        bail!("longer than {limit} bytes");
    }
    Ok(read > 0)
}

/// One netstring, `LENGTH:BYTES,`. `None` at the end.
pub fn netstring(input: &mut dyn BufRead, into: &mut Vec<u8>, number: u64) -> anyhow::Result<Option<()>> {
    let mut digits = Vec::new();
    input.take(12).read_until(b':', &mut digits)?;
    if digits.is_empty() {
        return Ok(None);
    }
    let wrong = |found: &str| anyhow::anyhow!("netstring {number}: expected LENGTH:BYTES, found {found}");
    let len = digits.strip_suffix(b":").and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| d.parse::<u64>().ok());
    let len = len.ok_or_else(|| wrong("no length"))?;
    if len > MAX_BYTES {
        bail!("netstring {number}: {len} bytes are over the limit of {MAX_BYTES}");
    }
    into.clear();
    input.take(len).read_to_end(into)?;
    let mut comma = [0];
    if into.len() as u64 != len || input.read(&mut comma)? != 1 || comma != [b','] {
        return Err(wrong("no comma after the bytes"));
    }
    Ok(Some(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_netstrings() {
        let mut line = Vec::new();
        let mut input: &[u8] = b"a\tb\tc\n\t\nlast\t";
        assert_eq!(tab_line(&mut input, &mut line, 1).unwrap(), Some(1));
        assert_eq!(line, b"a\tb\tc");
        assert_eq!(tab_line(&mut input, &mut line, 2).unwrap(), Some(0));
        assert_eq!(tab_line(&mut input, &mut line, 3).unwrap(), Some(4));
        assert_eq!(tab_line(&mut input, &mut line, 4).unwrap(), None);
        assert!(tab_line(&mut &b"no tab\n"[..], &mut line, 1).is_err());

        let mut input: &[u8] = b"four\nfive5\n";
        assert!(read_line(&mut input, &mut line, 4).unwrap() && line == b"four");
        assert!(read_line(&mut input, &mut line, 4).is_err());

        let mut input: &[u8] = b"3:a,b,0:,";
        assert!(netstring(&mut input, &mut line, 1).unwrap().is_some() && line == b"a,b");
        assert!(netstring(&mut input, &mut line, 2).unwrap().is_some() && line.is_empty());
        assert!(netstring(&mut input, &mut line, 3).unwrap().is_none());
        for bad in [&b"3:ab,"[..], b"x:a,", b"1:a", b"1:ab", b"99999999999999:"] {
            assert!(netstring(&mut &bad[..], &mut line, 1).is_err(), "{bad:?}");
        }
    }
}
