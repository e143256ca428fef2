//! Page headers: Thrift's compact protocol, as far as they need it.

use super::Found;
use trawl_io::slice::SliceReader;
use trawl_io::varint::unzigzag;

/// What a page header says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// Length of the page after decompression.
    pub raw_len: usize,
    /// Values and encoding of a data page.
    pub data: Option<(usize, u32)>,
    /// Values of a dictionary page.
    pub dictionary_values: Option<usize>,
}

/// Structs inside each other beyond this are refused; a header has three levels.
const MAX_DEPTH: u32 = 8;

/// Reads the header in front of a page, and gives the page's own bytes. The slice must be the page exactly.
pub(super) fn read(bytes: &[u8]) -> Found<(Header, &[u8])> {
    let mut reader = SliceReader::new(bytes);
    let mut header = Header::default();
    let mut packed_len = 0;
    let mut field = 0;
    while let Some(kind) = next_field(&mut reader, &mut field)? {
        match (field, kind) {
            (2, I32) => header.raw_len = size(&mut reader)?,
            (3, I32) => packed_len = size(&mut reader)?,
            (5, STRUCT) => header.data = Some(values_and_encoding(&mut reader)?),
            (7, STRUCT) => header.dictionary_values = Some(values_and_encoding(&mut reader)?.0),
            (_, kind) => skip(&mut reader, kind, 0)?,
        }
    }
    let body = reader.rest();
    if body.len() != packed_len {
        return Err(format!("a page of {} bytes whose header says {packed_len}", body.len()));
    }
    Ok((header, body))
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Fields 1 and 2 of the header of a data or dictionary page: number of values, encoding.
fn values_and_encoding(reader: &mut SliceReader<'_>) -> Found<(usize, u32)> {
    let (mut values, mut encoding, mut field) = (0, u32::MAX, 0);
    while let Some(kind) = next_field(reader, &mut field)? {
        match (field, kind) {
            (1, I32) => values = size(reader)?,
            (2, I32) => encoding = u32::try_from(size(reader)?).unwrap_or(u32::MAX),
            (_, kind) => skip(reader, kind, 1)?,
        }
    }
    Ok((values, encoding))
}

/// Moves to the next field of a struct and gives its type; `None` at the end.
fn next_field(reader: &mut SliceReader<'_>, field: &mut i64) -> Found<Option<u8>> {
    let byte = reader.u8("field").map_err(text)?;
    let kind = byte & 0x0f;
    if kind == 0 {
        return Ok(None);
    }
    *field = match byte >> 4 {
        0 => reader.ivarint("field id").map_err(text)?,
        delta => field.saturating_add(i64::from(delta)),
    };
    Ok(Some(kind))
}

fn size(reader: &mut SliceReader<'_>) -> Found<usize> {
    let value = unzigzag(reader.uvarint("number").map_err(text)?);
    i32::try_from(value).ok().and_then(|n| usize::try_from(n).ok()).ok_or_else(|| format!("a length of {value}"))
}

fn skip(reader: &mut SliceReader<'_>, kind: u8, depth: u32) -> Found<()> {
    if depth > MAX_DEPTH {
        return Err("a header nested too deep".into());
    }
    match kind {
        TRUE | FALSE => {}
        BYTE => drop(reader.u8("byte").map_err(text)?),
        I16 | I32 | I64 => drop(reader.uvarint("number").map_err(text)?),
        DOUBLE => drop(reader.u64("double").map_err(text)?),
        BINARY => drop(reader.prefixed(usize::MAX, "binary").map_err(text)?),
        STRUCT => {
            let mut field = 0;
            while let Some(kind) = next_field(reader, &mut field)? {
                skip(reader, kind, depth + 1)?;
            }
        }
        LIST | SET | MAP => return Err("a list in a page header".into()),
        other => return Err(format!("thrift type {other}")),
    }
    Ok(())
}

fn text(error: trawl_io::slice::SliceError) -> String {
    format!("page header: {error}")
}
