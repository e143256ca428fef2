//! One data page: which rows have a value, and the values.

use super::decode::MAX_PAGE_BYTES;
use crate::column::{Column, Kind};
use crate::page::{
    DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, Found, PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY,
    delta, levels,
};
use crate::values::{Gathering, Texts};
use std::ops::Range;
use trawl_io::slice::SliceReader;

/// The values of a dictionary page.
pub(super) enum Dictionary {
    Numbers(Vec<i64>),
    /// Where each text stands in the page. One allocation: a dictionary of archive files has thousands, of which a page of rows
    /// needs a few.
    Texts(Vec<u8>, Vec<Range<usize>>),
}

impl Dictionary {
    pub fn new(column: Column, raw: &[u8], count: usize) -> Found<Self> {
        // Every value takes bytes, so the count is bounded by them.
        if count > raw.len() {
            return Err(format!("{count} values in a dictionary of {} bytes", raw.len()).into());
        }
        let mut reader = SliceReader::new(raw);
        Ok(match column.kind() {
            Kind::Text => {
                let mut texts = Vec::with_capacity(count);
                for _ in 0..count {
                    let len = plain_text(&mut reader)?.len();
                    let end = raw.len() - reader.rest().len();
                    texts.push(end - len..end);
                }
                Dictionary::Texts(raw.to_vec(), texts)
            }
            kind => {
                let numbers = (0..count).map(|_| plain_number(&mut reader, kind));
                Dictionary::Numbers(numbers.collect::<Found<_>>()?)
            }
        })
    }
}

fn plain_text<'a>(reader: &mut SliceReader<'a>) -> Found<&'a [u8]> {
    let len = reader.u32("length")?;
    Ok(reader.take(len as usize, "text")?)
}

fn plain_number(reader: &mut SliceReader<'_>, kind: Kind) -> Found<i64> {
    if kind == Kind::Int32 {
        return Ok(i64::from(reader.u32("number")?.cast_signed()));
    }
    Ok(reader.i64("number")?)
}

pub(super) struct Page<'a> {
    pub column: Column,
    pub rows: usize,
    pub encoding: u32,
    pub dictionary: Option<&'a Dictionary>,
}

/// Which values of a page are wanted: `count` are there, `take` of them after the first `skip`.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    count: usize,
    skip: usize,
    take: usize,
}

/// Which rows have a value, as runs: (has one, how many rows).
type Runs = Vec<(bool, usize)>;

impl Page<'_> {
    /// Appends an entry for each row of `window`. What comes before is stepped over as cheaply as its encoding allows.
    pub fn decode(&self, raw: &[u8], window: Range<usize>, out: &mut Gathering) -> Found<()> {
        let mut reader = SliceReader::new(raw);
        let mut runs = Runs::new();
        if self.column.nullable() {
            let len = reader.u32("levels")?;
            let levels = reader.take(len as usize, "levels")?;
            levels::hybrid(levels, 1, self.rows, |level, n| match runs.last_mut() {
                Some((present, rows)) if *present == (level == 1) => *rows += n,
                _ => runs.push((level == 1, n)),
            })?;
        } else {
            runs.push((true, self.rows));
        }
        let values = |runs: &Runs| runs.iter().filter(|(present, _)| *present).map(|(_, n)| n).sum();
        let count = values(&runs);
        let before = cut(&runs, 0..window.start);
        let runs = cut(&runs, window);
        let wanted = Wanted { count, skip: values(&before), take: values(&runs) };
        match out {
            Gathering::Numbers(numbers) => {
                let values = self.numbers(&mut reader, wanted)?;
                let mut rest = &values[..];
                for (present, n) in runs {
                    if present {
                        let (now, later) = rest.split_at_checked(n).ok_or("fewer numbers than rows")?;
                        numbers.append_slice(now);
                        rest = later;
                    } else {
                        numbers.append_nulls(n);
                    }
                }
            }
            Gathering::Texts(texts) => {
                let mut to = Spread { texts, runs: runs.into_iter(), left: 0 };
                self.texts(&mut reader, wanted, &mut to)?;
                to.finish();
            }
        }
        Ok(())
    }

    fn numbers(&self, reader: &mut SliceReader<'_>, wanted: Wanted) -> Found<Vec<i64>> {
        let Wanted { count, skip, take } = wanted;
        let kind = self.column.kind();
        let mut out = Vec::with_capacity(take);
        match self.encoding {
            _ if take == 0 => {}
            PLAIN => {
                let width = if kind == Kind::Int32 { 4 } else { 8 };
                reader.take(skip * width, "numbers")?;
                for _ in 0..take {
                    out.push(plain_number(reader, kind)?);
                }
            }
            DELTA_BINARY_PACKED => {
                // Differences of 32-bit numbers wrap at 32 bits.
                let narrow = |n: i64| if kind == Kind::Int32 { i64::from(n as i32) } else { n };
                let mut before = skip;
                delta::numbers(reader, count, |n| match before.checked_sub(1) {
                    Some(less) => before = less,
                    None if out.len() < take => out.push(narrow(n)),
                    None => {}
                })?;
            }
            PLAIN_DICTIONARY | RLE_DICTIONARY => {
                let Some(Dictionary::Numbers(dictionary)) = self.dictionary else { return Err(NO_DICTIONARY.into()) };
                keys(reader, dictionary, wanted, |value, n| {
                    out.extend(std::iter::repeat_n(*value, n));
                    Ok(())
                })?;
            }
            other => return Err(format!("encoding {other} of numbers").into()),
        }
        Ok(out)
    }

    fn texts(&self, reader: &mut SliceReader<'_>, wanted: Wanted, to: &mut Spread<'_>) -> Found<()> {
        let Wanted { count, skip, take } = wanted;
        match self.encoding {
            _ if take == 0 => {}
            PLAIN => {
                for _ in 0..skip {
                    plain_text(reader)?;
                }
                for _ in 0..take {
                    to.push(plain_text(reader)?)?;
                }
            }
            PLAIN_DICTIONARY | RLE_DICTIONARY => {
                let Some(Dictionary::Texts(bytes, texts)) = self.dictionary else { return Err(NO_DICTIONARY.into()) };
                keys(reader, texts, wanted, |place, n| {
                    let text = bytes.get(place.clone()).ok_or("a text outside its dictionary")?;
                    (0..n).try_for_each(|_| to.push(text))
                })?;
            }
            DELTA_LENGTH_BYTE_ARRAY => {
                let lengths = delta::lengths(reader, count, MAX_PAGE_BYTES)?;
                let before: usize = lengths.iter().take(skip).map(|len| *len as usize).sum();
                reader.take(before, "texts")?;
                for len in lengths.into_iter().skip(skip).take(take) {
                    to.push(reader.take(len as usize, "text")?)?;
                }
            }
            DELTA_BYTE_ARRAY => {
                let prefixes = delta::lengths(reader, count, usize::MAX)?;
                let suffixes = delta::lengths(reader, count, MAX_PAGE_BYTES)?;
                let mut shared = Shared { prefixes: &prefixes, suffixes: &suffixes, bytes: reader.rest() };
                shared.push(skip, take, to)?;
            }
            other => return Err(format!("encoding {other} of texts").into()),
        }
        Ok(())
    }
}

/// The part of `runs` that covers the rows of `window`.
fn cut(runs: &Runs, window: Range<usize>) -> Runs {
    let mut at = 0;
    let mut out = Runs::new();
    for (present, n) in runs {
        let (start, end) = (window.start.max(at), window.end.min(at + n));
        if start < end {
            out.push((*present, end - start));
        }
        at += n;
    }
    out
}

/// Hands out the wanted values of a dictionary, run by run.
fn keys<T>(
    reader: &mut SliceReader<'_>,
    dictionary: &[T],
    Wanted { skip, take, .. }: Wanted,
    mut each: impl FnMut(&T, usize) -> Found<()>,
) -> Found<()> {
    let width = reader.u8("bit width")?;
    let (mut before, mut failed) = (skip, Ok(()));
    levels::hybrid(reader.rest(), u32::from(width), skip + take, |key, n| {
        let stepped = before.min(n);
        before -= stepped;
        if failed.is_ok() && n > stepped {
            failed = match dictionary.get(key as usize) {
                Some(value) => each(value, n - stepped),
                None => Err(format!("key {key} of a dictionary of {} values", dictionary.len()).into()),
            };
        }
    })?;
    failed
}

/// Texts that share their beginnings with the one before.
struct Shared<'a> {
    prefixes: &'a [u32],
    suffixes: &'a [u32],
    bytes: &'a [u8],
}

impl Shared<'_> {
    fn push(&mut self, skip: usize, take: usize, to: &mut Spread<'_>) -> Found<()> {
        let mut at: usize = self.suffixes.iter().take(skip).map(|len| *len as usize).sum();
        let mut last = self.text_before(skip, at)?;
        let lengths = self.prefixes.iter().zip(self.suffixes).skip(skip).take(take);
        for (prefix, suffix) in lengths {
            let (prefix, suffix) = (*prefix as usize, *suffix as usize);
            if prefix > last.len() {
                return Err(format!("a prefix of {prefix} bytes of a text of {}", last.len()).into());
            }
            let rest = self.bytes.get(at..at + suffix).ok_or("texts cut short")?;
            last.truncate(prefix);
            last.extend_from_slice(rest);
            to.push(&last)?;
            at += suffix;
        }
        Ok(())
    }

    /// The text before number `i`, whose suffix begins at `at`, put together from its end: each earlier text gives only
    /// what no later one has of its own.
    fn text_before(&self, i: usize, mut at: usize) -> Found<Vec<u8>> {
        let Some(mut j) = i.checked_sub(1) else { return Ok(Vec::new()) };
        let lengths = |j: usize| Some((*self.prefixes.get(j)? as usize, *self.suffixes.get(j)? as usize));
        let (prefix, suffix) = lengths(j).ok_or("texts cut short")?;
        let mut need = prefix.checked_add(suffix).filter(|len| *len <= MAX_PAGE_BYTES).ok_or("a text too long")?;
        let mut out = vec![0; need];
        loop {
            let (prefix, suffix) = lengths(j).ok_or("texts cut short")?;
            at = at.checked_sub(suffix).ok_or("texts cut short")?;
            if need > prefix {
                let own = need - prefix;
                let from = self.bytes.get(at..at + suffix).and_then(|own_bytes| own_bytes.get(..own));
                let (Some(from), Some(to)) = (from, out.get_mut(prefix..need)) else {
                    return Err(format!("a prefix of {need} bytes of a shorter text").into());
                };
                to.copy_from_slice(from);
                need = prefix;
            }
            match j.checked_sub(1) {
                _ if need == 0 => return Ok(out),
                Some(before) => j = before,
                None => return Err(format!("a prefix of {need} bytes of nothing").into()),
            }
        }
    }
}

const NO_DICTIONARY: &str = "dictionary keys without a dictionary page";

/// Puts texts into the rows that have one.
struct Spread<'a> {
    texts: &'a mut Texts,
    runs: std::vec::IntoIter<(bool, usize)>,
    left: usize,
}

impl Spread<'_> {
    fn push(&mut self, text: &[u8]) -> Found<()> {
        while self.left == 0 {
            match self.runs.next() {
                Some((true, n)) => self.left = n,
                Some((false, n)) => self.texts.push_absent(n),
                None => return Err("more values than rows".into()),
            }
        }
        self.left -= 1;
        self.texts.push(text)
    }

    fn finish(self) {
        for (present, n) in self.runs {
            if !present {
                self.texts.push_absent(n);
            }
        }
    }
}
