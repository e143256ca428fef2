//! Zstandard frames, one after another, with the dictionary frame of IIPC's warc-zstd. Knows nothing of records.
//!
//! ```text
//!  5d 2a 4d 18 | u32 length | dictionary, itself possibly a zstd frame      at the start of the file, optional
//!  5? 2a 4d 18 | u32 length | anything                                      skippable: skipped
//!  28 b5 2f fd | frame …                                                    one record each
//! ```

use super::input::Window;
use crate::error::{At, Error, Result, shown};
use crate::limits::Limits;
use std::io::Read;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const DICTIONARY: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];
const OUT_BYTES: usize = 128 << 10;
/// Stored bytes in which the first bytes of a frame are looked for: its first block is there, whole.
const MIN_PEEK_BYTES: usize = 256 << 10;
/// Most bytes of skippable frames that are passed over to look at the frame behind them.
const MAX_PEEK_BYTES: usize = 1 << 20;

/// The inflated side of a zstd file.
pub(crate) struct Zstd {
    decoder: Option<Decoder<'static>>,
    dictionary: Option<Vec<u8>>,
    window_log: u32,
    dictionary_limit: usize,
    out: Vec<u8>,
    at: usize,
    end: usize,
    frame: u64,
    size: u64,
    ended: bool,
    /// Damage behind the unread bytes: told when somebody wants more than those.
    damage: Option<Error>,
}

impl Zstd {
    pub(crate) fn new(limits: &Limits) -> Self {
        Zstd {
            decoder: None,
            dictionary: None,
            window_log: limits.zstd_window_log,
            dictionary_limit: limits.dictionary_bytes,
            out: Vec::new(),
            at: 0,
            end: 0,
            frame: 0,
            size: 0,
            ended: true,
            damage: None,
        }
    }

    pub(crate) fn data(&self) -> &[u8] {
        self.out.get(self.at..self.end).unwrap_or_default()
    }

    pub(crate) fn consume(&mut self, n: usize) {
        self.at = (self.at + n).min(self.end);
    }

    /// Stored offset of the frame that is open.
    pub(crate) fn frame_offset(&self) -> u64 {
        self.frame
    }

    /// Whether the open frame is inflated to its end.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    /// A reader of the same file, with its dictionary.
    pub(crate) fn another(&self) -> Self {
        let limits =
            Limits { zstd_window_log: self.window_log, dictionary_bytes: self.dictionary_limit, ..Limits::default() };
        Zstd { dictionary: self.dictionary.clone(), ..Zstd::new(&limits) }
    }

    pub(crate) fn reset(&mut self) {
        self.at = 0;
        self.end = 0;
        self.ended = true;
        self.damage = None;
    }

    /// Opens the next frame that holds data; `false` at the end of the file.
    pub(crate) fn open(&mut self, window: &mut Window, start: &At) -> Result<bool> {
        self.reset();
        loop {
            let at = At { offset: window.offset(), ..start.clone() };
            let data = window.fill(8)?;
            if data.is_empty() {
                return Ok(false);
            }
            let magic: [u8; 4] = data.first_chunk().copied().unwrap_or_default();
            match magic {
                FRAME => {
                    self.frame = window.offset();
                    self.size = 0;
                    self.ended = false;
                    self.ready(&at)?;
                    return Ok(true);
                }
                [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                    let Some(length) = data.get(4..8).and_then(|d| d.first_chunk::<4>()) else {
                        let found = data.len() as u64;
                        return Err(Error::Truncated { at, expected: "a skippable zstd frame", found });
                    };
                    let length = u64::from(u32::from_le_bytes(*length));
                    window.consume(8);
                    if magic == DICTIONARY && at.offset == 0 {
                        self.read_dictionary(window, &at, length)?;
                    } else {
                        skip(window, &at, length)?;
                    }
                }
                _ => return Err(Error::corrupt(at, "a zstd frame", shown(data))),
            }
        }
    }

    /// The first bytes, up to `n`, of the next frame that holds data, without opening it; `None` at the end of the file. For when
    /// the open one has ended.
    pub(crate) fn peek(&mut self, window: &mut Window, start: &At, n: usize) -> Result<Option<Vec<u8>>> {
        let mut at = 0usize;
        loop {
            let data = window.fill(at.saturating_add(MIN_PEEK_BYTES))?.get(at..).unwrap_or_default();
            let Some((magic, rest)) = data.split_first_chunk::<4>() else { return Ok(None) };
            match *magic {
                FRAME => {
                    self.ready(start)?;
                    let Some(decoder) = &mut self.decoder else { return Ok(None) };
                    let mut out = vec![0; n];
                    let mut sink = OutBuffer::around(out.as_mut_slice());
                    let run = decoder.run(&mut InBuffer::around(data), &mut sink);
                    run.map_err(|e| Error::corrupt(start.clone(), "a valid zstd frame", e.to_string()))?;
                    let got = sink.pos();
                    out.truncate(got);
                    return Ok(Some(out));
                }
                [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                    let Some(length) = rest.first_chunk::<4>() else { return Ok(None) };
                    at = at.saturating_add(8).saturating_add(u32::from_le_bytes(*length) as usize);
                    if at > MAX_PEEK_BYTES {
                        return Ok(None);
                    }
                }
                _ => return Ok(None),
            }
        }
    }

    fn ready(&mut self, at: &At) -> Result<()> {
        let fail = |source| Error::Io { at: at.clone(), source };
        let decoder = match self.decoder.take() {
            Some(mut decoder) => {
                decoder.reinit().map_err(fail)?;
                decoder
            }
            None => {
                let dictionary = self.dictionary.as_deref().unwrap_or_default();
                let mut decoder = Decoder::with_dictionary(dictionary).map_err(fail)?;
                decoder.set_parameter(DParameter::WindowLogMax(self.window_log)).map_err(fail)?;
                decoder
            }
        };
        self.decoder = Some(decoder);
        Ok(())
    }

    fn read_dictionary(&mut self, window: &mut Window, at: &At, length: u64) -> Result<()> {
        let limit = self.dictionary_limit as u64;
        let over = |claimed| Error::OverLimit { at: at.clone(), what: "zstd dictionary", claimed, limit };
        if length > limit {
            return Err(over(length));
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let data = window.fill(length)?;
        let Some(stored) = data.get(..length) else {
            let found = data.len() as u64;
            return Err(Error::Truncated { at: at.clone(), expected: "a zstd dictionary", found });
        };
        let dictionary = if stored.starts_with(&FRAME) {
            let mut out = Vec::new();
            let mut inflater = zstd::stream::read::Decoder::new(stored)
                .and_then(|mut d| d.window_log_max(self.window_log).map(|()| d))
                .map_err(|source| Error::Io { at: at.clone(), source })?;
            (&mut inflater)
                .take(limit + 1)
                .read_to_end(&mut out)
                .map_err(|e| Error::corrupt(at.clone(), "a compressed dictionary", e.to_string()))?;
            if out.len() as u64 > limit {
                return Err(over(out.len() as u64));
            }
            out
        } else {
            stored.to_vec()
        };
        window.consume(length);
        self.dictionary = Some(dictionary);
        self.decoder = None;
        Ok(())
    }

    /// Inflates until `want` unread bytes are here or the frame ends; what was inflated before damage is handed out first.
    pub(crate) fn fill(&mut self, window: &mut Window, start: &At, want: usize) -> Result<()> {
        if self.damage.is_none() {
            match self.inflate(window, start, want) {
                Err(e) if e.is_damage() => self.damage = Some(e),
                result => result?,
            }
        }
        match self.damage.take_if(|_| self.end - self.at < want) {
            Some(damage) => Err(damage),
            None => Ok(()),
        }
    }

    fn inflate(&mut self, window: &mut Window, start: &At, want: usize) -> Result<()> {
        while !self.ended && self.end - self.at < want {
            if self.at > 0 {
                self.out.copy_within(self.at..self.end, 0);
                self.end -= self.at;
                self.at = 0;
            }
            if self.out.len() < self.end + OUT_BYTES {
                self.out.resize(self.end + OUT_BYTES, 0);
            }
            let at = At { inside: self.size, ..start.clone() };
            let input = window.fill(1)?;
            if input.is_empty() {
                return Err(Error::Truncated { at, expected: "the rest of a zstd frame", found: self.size });
            }
            let Some(decoder) = self.decoder.as_mut() else { return Ok(()) };
            let mut source = InBuffer::around(input);
            let target = self.out.get_mut(self.end..self.end + OUT_BYTES).unwrap_or_default();
            let mut sink = OutBuffer::around(target);
            let left = decoder
                .run(&mut source, &mut sink)
                .map_err(|e| Error::corrupt(at.clone(), "a valid zstd frame", e.to_string()))?;
            let (used, got) = (source.pos(), sink.pos());
            if used == 0 && got == 0 && left != 0 {
                return Err(Error::corrupt(at, "a zstd frame that goes on", "one that stands still"));
            }
            window.consume(used);
            self.end += got;
            self.size += got as u64;
            self.ended = left == 0;
        }
        Ok(())
    }
}

fn skip(window: &mut Window, at: &At, length: u64) -> Result<()> {
    let mut left = length;
    while left > 0 {
        let here = window.fill(1)?.len() as u64;
        if here == 0 {
            let found = length - left;
            return Err(Error::Truncated { at: at.clone(), expected: "the rest of a skippable zstd frame", found });
        }
        let step = here.min(left);
        window.consume(usize::try_from(step).unwrap_or(usize::MAX));
        left -= step;
    }
    Ok(())
}
