//! Page headers: Thrift's compact protocol, as far as they need it. A field begins with a byte: its distance from the field
//! before, and its type.

use super::{DELTA_BYTE_ARRAY, Found, RLE};
use trawl_io::slice::SliceReader;
use trawl_io::varint::{put_ivarint, unzigzag};

/// What a page header says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Length of the page after decompression.
    pub raw_len: usize,
    /// Values and encoding of a data page.
    pub data: Option<(usize, u32)>,
    /// Values of a dictionary page.
    pub dictionary_values: Option<usize>,
}

/// Structs inside each other beyond this are refused; a header has three levels.
const MAX_DEPTH: u32 = 8;
/// Types of fields that are looked at.
const I32: u8 = 5;
const STRUCT: u8 = 12;

/// Reads the header in front of a page, and gives the page's own bytes. The slice must be the page exactly.
pub(crate) fn read(bytes: &[u8]) -> Found<(Header, &[u8])> {
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
        return Err(format!("a page of {} bytes whose header says {packed_len}", body.len()).into());
    }
    Ok((header, body))
}

/// Appends the header of a data page of version 1 with DELTA_BYTE_ARRAY values.
pub(crate) fn put(out: &mut Vec<u8>, raw_len: usize, packed_len: usize, rows: usize) -> Found<()> {
    /// Field 5 after field 3, and the next field after the one before.
    const DATA_PAGE: u8 = 2 << 4 | STRUCT;
    const NEXT_I32: u8 = 1 << 4 | I32;
    let size = |n: usize| i32::try_from(n).map(i64::from).map_err(|_| "a page of 2 GiB");
    let page = [0, size(raw_len)?, size(packed_len)?];
    let data_page = [size(rows)?, DELTA_BYTE_ARRAY.into(), RLE.into(), RLE.into()];
    for (fields, end) in [(&page[..], &[DATA_PAGE][..]), (&data_page, &[0, 0])] {
        for number in fields {
            out.push(NEXT_I32);
            put_ivarint(out, *number);
        }
        out.extend(end);
    }
    Ok(())
}

/// Fields 1 and 2 of the header of a data or dictionary page: number of values, encoding.
fn values_and_encoding(reader: &mut SliceReader<'_>) -> Found<(usize, u32)> {
    let (mut values, mut encoding, mut field) = (0, u32::MAX, 0);
    while let Some(kind) = next_field(reader, &mut field)? {
        match (field, kind) {
            (1, I32) => values = size(reader)?,
            (2, I32) => encoding = u32::try_from(size(reader)?)?,
            (_, kind) => skip(reader, kind, 1)?,
        }
    }
    Ok((values, encoding))
}

/// Moves to the next field of a struct and gives its type; `None` at the end.
fn next_field(reader: &mut SliceReader<'_>, field: &mut i64) -> Found<Option<u8>> {
    let byte = reader.u8("field of a page header")?;
    let kind = byte & 0x0f;
    if kind == 0 {
        return Ok(None);
    }
    *field = match byte >> 4 {
        0 => reader.ivarint("field id of a page header")?,
        delta => field.saturating_add(i64::from(delta)),
    };
    Ok(Some(kind))
}

fn size(reader: &mut SliceReader<'_>) -> Found<usize> {
    let value = unzigzag(reader.uvarint("number of a page header")?);
    let size = i32::try_from(value).ok().and_then(|n| usize::try_from(n).ok());
    Ok(size.ok_or_else(|| format!("a length of {value}"))?)
}

fn skip(reader: &mut SliceReader<'_>, kind: u8, depth: u32) -> Found<()> {
    if depth > MAX_DEPTH {
        return Err("a header nested too deep".into());
    }
    match kind {
        // True and false have no bytes of their own.
        1 | 2 => {}
        3 => drop(reader.u8("byte of a page header")?),
        4..=6 => drop(reader.uvarint("number of a page header")?),
        7 => drop(reader.u64("double of a page header")?),
        8 => drop(reader.prefixed(usize::MAX, "binary of a page header")?),
        STRUCT => {
            let mut field = 0;
            while let Some(kind) = next_field(reader, &mut field)? {
                skip(reader, kind, depth + 1)?;
            }
        }
        other => return Err(format!("a list or another thing of thrift type {other} in a page header").into()),
    }
    Ok(())
}
