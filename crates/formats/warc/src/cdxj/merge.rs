//! Merges sorted indexes.

use crate::error::{At, Error, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{BufRead, Read};

/// A line longer than this is not one.
const MAX_LINE: u64 = 1 << 20;

/// Merges sorted indexes line by line, equal lines once; says how many lines came out. An input that is not sorted is an
/// error that names it: the result would not be either.
pub fn merge_cdxj(inputs: Vec<(String, Box<dyn BufRead>)>, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let mut inputs: Vec<Input> = inputs.into_iter().map(|(name, lines)| Input { name, lines, at: 0 }).collect();
    let mut heap = BinaryHeap::new();
    for (i, input) in inputs.iter_mut().enumerate() {
        if let Some(line) = input.next(b"")? {
            heap.push(Reverse((line, i)));
        }
    }
    let mut last: Option<Vec<u8>> = None;
    let mut count = 0;
    while let Some(Reverse((line, i))) = heap.pop() {
        if last.as_ref() != Some(&line) {
            each(&line)?;
            count += 1;
        }
        let next = match inputs.get_mut(i) {
            Some(input) => input.next(&line)?,
            None => None,
        };
        last = Some(line);
        if let Some(next) = next {
            heap.push(Reverse((next, i)));
        }
    }
    Ok(count)
}

struct Input {
    name: String,
    lines: Box<dyn BufRead>,
    at: u64,
}

impl Input {
    /// The next line that is not empty; it must not sort before `last`.
    fn next(&mut self, last: &[u8]) -> Result<Option<Vec<u8>>> {
        loop {
            let at = At { file: self.name.as_str().into(), offset: self.at, inside: 0 };
            let mut line = Vec::new();
            let n = (&mut self.lines)
                .take(MAX_LINE + 1)
                .read_until(b'\n', &mut line)
                .map_err(|source| Error::Io { at: at.clone(), source })?;
            if n == 0 {
                return Ok(None);
            }
            if n as u64 > MAX_LINE {
                return Err(Error::OverLimit { at, what: "CDXJ line", claimed: n as u64, limit: MAX_LINE });
            }
            self.at += n as u64;
            let end = line.iter().rposition(|b| !matches!(b, b'\n' | b'\r')).map_or(0, |i| i + 1);
            line.truncate(end);
            // The header lines of other tools sort before everything and are theirs, not ours.
            if line.is_empty() || line.starts_with(b"!") || line.starts_with(b" CDX ") {
                continue;
            }
            if line.as_slice() < last {
                return Err(Error::corrupt(at, "sorted lines", crate::error::shown(&line)));
            }
            return Ok(Some(line));
        }
    }
}
