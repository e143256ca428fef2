//! Hadoop's framing of raw Snappy and LZ4 blocks: neither the Snappy framing format nor an LZ4 frame.
//!
//! ```text
//! repeat until the stream ends:
//!   i32 original length                      0 ends the stream
//!   repeat until so many bytes were produced:
//!     i32 stored length, stored bytes        one raw block
//! ```

use super::CodecError;
use crate::decode::Decoder;

/// Input bytes of a chunk: Hadoop's buffer of 256 KiB less what the compressor may add, so that its reader, which has a
/// buffer of the same size, can take each chunk.
pub(super) const SNAPPY_CHUNK: usize = 262_144 - (262_144 / 6 + 32);
/// The same for LZ4.
pub(super) const LZ4_CHUNK: usize = 262_144 - (262_144 / 255 + 16);
const _: () = assert!(SNAPPY_CHUNK == 218_422 && LZ4_CHUNK == 261_100);

/// Unpacks one raw block to the end of `out`, at most `room` bytes.
type UnpackBlock = fn(block: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), CodecError>;
type PackBlock = fn(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError>;

pub(super) fn unpack(stream: &[u8], limit: usize, out: &mut Vec<u8>, block: UnpackBlock) -> Result<(), CodecError> {
    out.clear();
    let bad = |e: crate::ValueError| CodecError::Bad(e.to_string());
    let mut d = Decoder::new(stream);
    while !d.rest().is_empty() {
        let claimed = d.i32("original length").map_err(bad)?;
        let original = usize::try_from(claimed).map_err(|_| CodecError::Bad(format!("a block of {claimed} bytes")))?;
        if original == 0 {
            break;
        }
        let end = out.len().checked_add(original).filter(|end| *end <= limit);
        let end = end.ok_or(CodecError::OverLimit { limit: limit as u64 })?;
        while out.len() < end {
            let before = out.len();
            let stored = d.bytes("stored block").map_err(bad)?;
            block(stored, end - before, out)?;
            if out.len() == before {
                return Err(CodecError::Bad(format!("a chunk without a byte, with {} to come", end - before)));
            }
        }
    }
    Ok(())
}

pub(super) fn pack(bytes: &[u8], out: &mut Vec<u8>, chunk: usize, block: PackBlock) -> Result<(), CodecError> {
    let length = |n: usize| match i32::try_from(n) {
        Ok(n) => Ok(n.to_be_bytes()),
        Err(_) => Err(CodecError::Bad(format!("{n} bytes do not fit a block"))),
    };
    out.extend(length(bytes.len())?);
    for part in bytes.chunks(chunk) {
        let at = out.len();
        out.extend([0; 4]);
        block(part, out)?;
        let stored = length(out.len() - at - 4)?;
        if let Some(place) = out.get_mut(at..at + 4) {
            place.copy_from_slice(&stored);
        }
    }
    Ok(())
}

pub(super) fn snappy(block: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let bad = |e: snap::Error| CodecError::Bad(e.to_string());
    let len = snap::raw::decompress_len(block).map_err(bad)?;
    // Snappy grows at most 64 bytes for 2, so a hostile length reserves no more than the stream allows.
    if len > room || len > block.len().saturating_mul(32) {
        return Err(CodecError::Bad(format!("a chunk of {len} bytes in a block with {room} to come")));
    }
    let start = out.len();
    out.resize(start + len, 0);
    let target = out.get_mut(start..).unwrap_or_default();
    snap::raw::Decoder::new().decompress(block, target).map_err(bad)?;
    Ok(())
}

/// A block of LZ4 does not say how long it gets; more than `room` is a mistake.
pub(super) fn lz4(block: &[u8], room: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    // LZ4 grows at most 255 times, so a hostile original length reserves no more than the stream allows.
    let room = room.min(block.len().saturating_mul(255));
    let start = out.len();
    out.resize(start + room, 0);
    let target = out.get_mut(start..).unwrap_or_default();
    let len = lz4_flex::block::decompress_into(block, target).map_err(|e| CodecError::Bad(e.to_string()))?;
    out.truncate(start + len);
    Ok(())
}

pub(super) fn snappy_pack(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let packed = snap::raw::Encoder::new().compress_vec(bytes).map_err(|e| CodecError::Bad(e.to_string()))?;
    out.extend(packed);
    Ok(())
}

pub(super) fn lz4_pack(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    out.extend(lz4_flex::block::compress(bytes));
    Ok(())
}
