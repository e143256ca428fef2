//! Seeds: lists of URLs, one a line, as text or JSON, plain or compressed.
//!
//! ```text
//! line   = blank | "#" comment | URL | JSON object with "url"      the rest of the object is the URL's metadata
//! input  = lines, as they are or in gzip or zstd (told by the first bytes)
//! ```
//! A line that is none of these is a reject, with its reason; the rest goes on. Everything streams.

mod line;
mod lines;
#[cfg(test)]
mod tests;

use crate::error::Error;
pub(crate) use line::{Line, parse_line};
use lines::{Lines, Read as LineRead};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Where seeds come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeedInput {
    /// A URL given directly.
    Url(String),
    /// A file of lines.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl SeedInput {
    /// Reads an argument: a URL, `-`, or a path.
    pub fn from_argument(text: &str) -> Self {
        let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
        match text {
            "-" => Self::Stdin,
            _ if lower.starts_with("http://") || lower.starts_with("https://") => Self::Url(text.to_owned()),
            _ => Self::File(text.into()),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Url(url) => url.clone(),
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "-".into(),
        }
    }
}

/// What an input turned out to be, for `run.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedIdentity {
    /// Path, URL or `-`.
    pub name: String,
    /// Bytes as stored.
    pub bytes: u64,
    /// SHA-256 of those bytes, in hex.
    pub sha256: String,
    /// URLs taken from it.
    pub rows: u64,
    /// Lines that were none.
    pub rejects: u64,
}

/// A seed as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seed {
    #[serde(rename = "u")]
    pub url: String,
    /// A JSON object, byte for byte.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<String>,
}

/// A line that is no seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reject {
    /// Where it came from.
    pub input: String,
    /// Its number, from 1.
    pub line: u64,
    /// Why.
    pub reason: String,
    /// The line, cut.
    pub text: String,
}

/// Some lines of the input, in order: what is journaled at a time.
#[derive(Debug, Default)]
pub(crate) struct SeedBatch {
    pub seeds: Vec<Seed>,
    pub rejects: Vec<Reject>,
    /// Lines read so far, over all inputs: where a resumed run goes on.
    pub lines: u64,
    /// Set on the last batch: all inputs, complete.
    pub end: Option<Vec<SeedIdentity>>,
}

/// Seeds handed over at a time.
const BATCH: usize = 1000;
/// And bytes: metadata may be large.
const BATCH_BYTES: usize = 1 << 20;

/// Reads all inputs, batch by batch. `skip` lines were taken by an earlier run; `give` returns `false` to stop.
pub(crate) fn read(inputs: &[SeedInput], skip: u64, give: &mut dyn FnMut(SeedBatch) -> bool) -> Result<(), Error> {
    let mut batch = SeedBatch::default();
    let (mut identities, mut bytes) = (Vec::new(), 0);
    for input in inputs {
        let tap = Arc::new(Mutex::new(Tap::default()));
        let source = open(input).map_err(|source| Error::Seeds { input: input.name(), source })?;
        let mut lines = Lines::new(decompress(Tapped { source, tap: tap.clone() }));
        let (mut rows, mut rejects, mut number) = (0, 0, 0);
        loop {
            let line = lines.next().map_err(|source| Error::Seeds { input: input.name(), source })?;
            let parsed = match &line {
                LineRead::End => break,
                LineRead::Line(line) => parse_line(line),
                LineRead::TooLong(start) => Line::Reject(format!("longer than {} bytes", lines::MAX_BYTES), start),
            };
            number += 1;
            batch.lines += 1;
            let counts = batch.lines > skip;
            match parsed {
                Line::Nothing => continue,
                Line::Seed(seed) => {
                    rows += 1;
                    bytes += seed.url.len() + seed.meta.as_ref().map_or(0, String::len);
                    if counts {
                        batch.seeds.push(seed);
                    }
                }
                Line::Reject(reason, text) => {
                    rejects += 1;
                    if counts {
                        let text = String::from_utf8_lossy(text.get(..200).unwrap_or(text)).into_owned();
                        bytes += text.len();
                        batch.rejects.push(Reject { input: input.name(), line: number, reason, text });
                    }
                }
            }
            if batch.seeds.len() + batch.rejects.len() >= BATCH || bytes >= BATCH_BYTES {
                let lines = batch.lines;
                if counts && !give(std::mem::take(&mut batch)) {
                    return Ok(());
                }
                (batch.lines, bytes) = (lines, 0);
            }
        }
        drop(lines);
        let tap = std::mem::take(&mut *tap.lock().unwrap_or_else(PoisonError::into_inner));
        let sha256 = data_encoding::HEXLOWER.encode(&tap.hash.finalize());
        identities.push(SeedIdentity { name: input.name(), bytes: tap.bytes, sha256, rows, rejects });
    }
    batch.end = Some(identities);
    give(batch);
    Ok(())
}

fn open(input: &SeedInput) -> io::Result<Box<dyn Read + Send>> {
    Ok(match input {
        SeedInput::Url(url) => Box::new(io::Cursor::new(url.clone().into_bytes())),
        SeedInput::File(path) => Box::new(File::open(path)?),
        SeedInput::Stdin => Box::new(io::stdin()),
    })
}

/// Counts and hashes what passes.
#[derive(Default)]
struct Tap {
    hash: Sha256,
    bytes: u64,
}

struct Tapped<R> {
    source: R,
    tap: Arc<Mutex<Tap>>,
}

impl<R: Read> Read for Tapped<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buf)?;
        let mut tap = self.tap.lock().unwrap_or_else(PoisonError::into_inner);
        tap.hash.update(buf.get(..n).unwrap_or_default());
        tap.bytes += n as u64;
        Ok(n)
    }
}

/// Takes gzip or zstd off, told by the first bytes.
fn decompress(mut source: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    let mut magic = Vec::new();
    // An error here comes again, and is reported, when the lines are read.
    let _ = source.by_ref().take(4).read_to_end(&mut magic);
    let is_gzip = magic.starts_with(&[0x1f, 0x8b]);
    let is_zstd = magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let whole = io::Cursor::new(magic).chain(source);
    if is_gzip {
        return Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(whole)));
    }
    if is_zstd {
        return match zstd::stream::read::Decoder::new(whole) {
            Ok(decoder) => Box::new(decoder),
            Err(error) => Box::new(Failing(Some(error))),
        };
    }
    Box::new(whole)
}

/// Reports an error when read.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
