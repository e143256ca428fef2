//! Looking for whole frames behind a bad place.

use super::Options;
use super::format::{FRAME_HEADER, FrameHead, Frames};
use crate::read_at::{FileReader, ReadAt};
use crate::{Error, Result};

/// How many bytes are searched at a time.
const WINDOW: usize = 1 << 20;

/// The first whole frame after the bad place, if a whole frame further on says that the bad place had been synced:
/// then acknowledged data is damaged. `None`: nothing acknowledged is missing, the tail is torn.
pub(super) fn after(file: &FileReader, frames: Frames, bad: u64, options: &Options) -> Result<Option<u64>> {
    let len = file.len();
    // A hostile file can hold heads whose checksums each cost a long read: refuse when that exceeds honest work.
    let mut budget = 8 * (len - bad) + (64 << 20);
    let mut first = None;
    let mut at = bad + 1;
    while let Some((offset, head)) = candidate(file, frames, at)? {
        let body = offset + FRAME_HEADER as u64;
        let end = body + u64::from(head.len);
        let cost = end - offset;
        if cost > budget {
            return Err(Error::Corrupt {
                path: file.name().into(),
                offset: bad,
                expected: "a frame, a torn tail or damage that can be told apart",
                found: "too many heads without payload".into(),
            });
        }
        budget -= cost;
        at = offset + 1;
        if head.len <= options.max_batch_bytes && frames.matches(&head, offset, &file.read_range(body..end)?) {
            first = first.or(Some(offset));
            if head.durable > bad {
                return Ok(first);
            }
            at = end;
        }
    }
    Ok(None)
}

/// The next place from `at` on whose bytes could be a frame's head.
fn candidate(file: &FileReader, frames: Frames, mut at: u64) -> Result<Option<(u64, FrameHead)>> {
    let len = file.len();
    while at + (FRAME_HEADER as u64) < len {
        let window = file.read_range(at..len.min(at + WINDOW as u64))?;
        for bytes in window.windows(FRAME_HEADER).filter_map(<[u8]>::first_chunk) {
            let head = Frames::head(bytes);
            if frames.plausible(&head, at, len) {
                return Ok(Some((at, head)));
            }
            at += 1;
        }
    }
    Ok(None)
}
