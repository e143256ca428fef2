//! Reading a journal; nothing is changed.

use super::Options;
use super::format::{Batch, FIXED_HEADER, FRAME_HEADER, Frames, Header, MAX_TAG_BYTES};
use super::scan;
use crate::fs::Fs;
use crate::read_at::{FileReader, ReadAt};
use crate::{Error, Result};
use std::fmt;
use std::path::Path;

/// How many bytes are fetched at a time.
const CHUNK: u64 = 256 * 1024;

/// Why a frame is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tear {
    /// The file ends inside the frame's 16-byte head.
    ShortHead,
    /// The length is zero, passes the end of the file, or the head contradicts itself.
    BadHead,
    /// The checksum does not match.
    BadCrc,
}

impl fmt::Display for Tear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tear::ShortHead => "a frame cut inside its head",
            Tear::BadHead => "a frame head with an impossible length",
            Tear::BadCrc => "a frame with a wrong crc",
        })
    }
}

/// How a journal ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// After a whole frame.
    Clean,
    /// In writes that were never acknowledged.
    Torn {
        /// Where the good frames end.
        offset: u64,
        /// How much follows.
        bytes: u64,
        /// What is wrong there.
        why: Tear,
    },
}

/// A damaged place between good frames, skipped by a lenient reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// What is wrong there.
    pub why: Tear,
}

/// Reads the batches of a journal in order.
#[derive(Debug)]
pub struct JournalReader {
    file: FileReader,
    header: Header,
    frames: Frames,
    options: Options,
    /// Offset of the next frame.
    at: u64,
    /// Fetched bytes and where they begin.
    chunk: (u64, bytes::Bytes),
    tail: Option<Tail>,
    gaps: Vec<Gap>,
}

impl JournalReader {
    /// Opens a journal and checks its header.
    pub fn open(fs: &dyn Fs, path: &Path, options: &Options) -> Result<Self> {
        let file = FileReader::open_in(fs, path)?;
        let head = file.read_range(0..file.len().min((FIXED_HEADER + MAX_TAG_BYTES + 4) as u64))?;
        let (header, frames) = Header::decode(&head, path)?;
        Ok(JournalReader {
            file,
            header,
            frames,
            options: options.clone(),
            at: frames.start,
            chunk: (0, bytes::Bytes::new()),
            tail: None,
            gaps: Vec::new(),
        })
    }

    /// What the head of the file says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Starts at a batch that is known to begin at `offset`, for example after a checkpoint.
    pub fn skip_to(&mut self, offset: u64) {
        self.at = offset.max(self.frames.start);
        self.tail = None;
    }

    /// Where the next frame begins, or the good frames ended.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// How the journal ends; known once [`JournalReader::next_batch`] has returned `None`.
    pub fn tail(&self) -> Option<Tail> {
        self.tail
    }

    /// The damaged places skipped so far (lenient readers only).
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    pub(super) fn frames(&self) -> Frames {
        self.frames
    }

    /// The next batch, or `None` at the end or at a torn tail. Damage before good frames is [`Error::Corrupt`].
    pub fn next_batch(&mut self) -> Result<Option<Batch>> {
        while self.tail.is_none() {
            let why = match self.frame_at(self.at)? {
                Ok(None) => {
                    self.tail = Some(Tail::Clean);
                    break;
                }
                Ok(Some(batch)) => {
                    self.at = batch.end();
                    return Ok(Some(batch));
                }
                Err(why) => why,
            };
            match scan::after(&self.file, self.frames, self.at, &self.options)? {
                None => {
                    let (offset, bytes) = (self.at, self.file.len() - self.at);
                    self.tail = Some(Tail::Torn { offset, bytes, why });
                }
                Some(next) if self.options.lenient => {
                    self.gaps.push(Gap { offset: self.at, bytes: next - self.at, why });
                    self.at = next;
                }
                Some(next) => {
                    return Err(Error::Corrupt {
                        path: self.file.name().into(),
                        offset: self.at,
                        expected: "a whole frame, as synced frames follow",
                        found: format!("{why}; the next whole frame is at {next}"),
                    });
                }
            }
        }
        Ok(None)
    }

    /// The frame at `offset`: whole, absent (end of file), or not one.
    fn frame_at(&mut self, offset: u64) -> Result<Result<Option<Batch>, Tear>> {
        let left = self.file.len().saturating_sub(offset);
        if left == 0 {
            return Ok(Ok(None));
        }
        if left < FRAME_HEADER as u64 {
            return Ok(Err(Tear::ShortHead));
        }
        let body = offset + FRAME_HEADER as u64;
        let head = self.fetch(offset, body)?;
        let Some(head) = head.first_chunk().map(Frames::head) else { return Ok(Err(Tear::ShortHead)) };
        if !self.frames.plausible(&head, offset, self.file.len()) {
            return Ok(Err(Tear::BadHead));
        }
        if head.len > self.options.max_batch_bytes {
            return Err(Error::OverLimit {
                path: self.file.name().into(),
                offset,
                what: "journal batch",
                claimed: head.len.into(),
                limit: self.options.max_batch_bytes.into(),
            });
        }
        let payload = self.fetch(body, body + u64::from(head.len))?;
        if !self.frames.matches(&head, offset, &payload) {
            return Ok(Err(Tear::BadCrc));
        }
        Batch::new(offset, payload, self.file.name()).map(|batch| Ok(Some(batch)))
    }

    /// Bytes within the file, through the chunk.
    fn fetch(&mut self, from: u64, to: u64) -> Result<bytes::Bytes> {
        let (start, chunk) = &self.chunk;
        if from < *start || to > start + chunk.len() as u64 {
            let end = self.file.len().min(to.max(from + CHUNK));
            self.chunk = (from, self.file.read_range(from..end)?);
        }
        let (start, chunk) = &self.chunk;
        let within = |offset: u64| usize::try_from(offset - start).unwrap_or(usize::MAX);
        Ok(chunk.slice(within(from)..within(to)))
    }
}

impl Iterator for JournalReader {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        let next = self.next_batch().transpose();
        if let Some(Err(_)) = next {
            // An error is final: the place does not get better by asking again.
            self.tail = Some(Tail::Clean);
        }
        next
    }
}
