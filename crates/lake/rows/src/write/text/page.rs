//! One page being filled, and how it is packed.

use crate::page::delta::put_numbers;
use crate::page::header;
use crate::page::levels::put_levels;
use parquet::errors::{ParquetError, Result};
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, compress_bound, get_error_name};

/// Rows of a page.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Which rows have a value.
    present: Vec<bool>,
    prefixes: Vec<u32>,
    lengths: Vec<u32>,
    rest: Vec<u8>,
    last: Vec<u8>,
    pub bounds: Bounds,
}

impl Page {
    pub fn rows(&self) -> usize {
        self.present.len()
    }

    pub fn nulls(&self) -> usize {
        self.present.len() - self.prefixes.len()
    }

    /// About what it takes before compression.
    pub fn bytes(&self) -> usize {
        self.rest.len() + 2 * self.prefixes.len()
    }

    pub fn push(&mut self, text: Option<&[u8]>) -> Result<()> {
        self.present.push(text.is_some());
        let Some(text) = text else { return Ok(()) };
        let shared = shared(&self.last, text);
        let own = text.get(shared..).unwrap_or_default();
        let number = |n: usize| u32::try_from(n).map_err(|_| ParquetError::General("a text of 4 GiB".into()));
        self.prefixes.push(number(shared)?);
        self.lengths.push(number(own.len())?);
        // Most texts that are the same as the one before need no second look.
        if !own.is_empty() || shared != self.last.len() || self.prefixes.len() == 1 {
            self.bounds.add(text);
            self.rest.extend_from_slice(own);
            self.last.truncate(shared);
            self.last.extend_from_slice(own);
        }
        Ok(())
    }

    /// Appends the page to `out`, empties it, and tells what it took before compression, its header included.
    pub fn pack(&mut self, nullable: bool, packer: &mut Packer, out: &mut Vec<u8>) -> Result<usize> {
        let mut head = Vec::new();
        if nullable {
            put_levels(&self.present, &mut head);
        }
        put_numbers(&self.prefixes, &mut head);
        let mut lengths = Vec::new();
        put_numbers(&self.lengths, &mut lengths);
        let raw_len = head.len() + lengths.len() + self.rest.len();
        let packed = packer.pack(&[&head, &lengths, &self.rest])?;
        let start = out.len();
        header::put(out, raw_len, packed.len(), self.rows()).map_err(ParquetError::External)?;
        let header_len = out.len() - start;
        out.extend_from_slice(packed);
        self.present.clear();
        self.prefixes.clear();
        self.lengths.clear();
        self.rest.clear();
        self.last.clear();
        self.bounds = Bounds::default();
        Ok(header_len + raw_len)
    }
}

/// Bytes that two texts have in common at their beginnings.
fn shared(a: &[u8], b: &[u8]) -> usize {
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0).take_while(|(a, b)| a == b).count();
    let from = words * 8;
    let (a, b) = (a.get(from..).unwrap_or_default(), b.get(from..).unwrap_or_default());
    from + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The smallest and the largest of some texts.
#[derive(Debug, Default, Clone)]
pub(super) struct Bounds(pub Option<(Vec<u8>, Vec<u8>)>);

impl Bounds {
    pub fn add(&mut self, text: &[u8]) {
        let (least, most) = self.0.get_or_insert_with(|| (text.to_vec(), text.to_vec()));
        if text < least.as_slice() {
            least.clear();
            least.extend_from_slice(text);
        } else if text > most.as_slice() {
            most.clear();
            most.extend_from_slice(text);
        }
    }

    pub fn add_all(&mut self, other: &Self) {
        if let Some((least, most)) = &other.0 {
            self.add(least);
            self.add(most);
        }
    }
}

/// zstd, reused from page to page.
pub(super) struct Packer {
    context: CCtx<'static>,
    packed: Vec<u8>,
}

impl Packer {
    pub fn new(level: i32) -> Result<Self> {
        let mut context = CCtx::try_create().ok_or_else(|| ParquetError::General("no zstd context".into()))?;
        context.set_parameter(CParameter::CompressionLevel(level)).map_err(failed)?;
        Ok(Self { context, packed: Vec::new() })
    }

    /// One frame of all `parts`, a block ending after each.
    fn pack(&mut self, parts: &[&[u8]]) -> Result<&[u8]> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        self.packed.clear();
        // A block more for each part than one call would make.
        self.packed.reserve(compress_bound(len) + 16 * parts.len());
        self.context.reset(ResetDirective::SessionOnly).map_err(failed)?;
        // As if it were compressed in one call: the size decides how zstd searches.
        self.context.set_pledged_src_size(Some(len as u64)).map_err(failed)?;
        let mut output = OutBuffer::around(&mut self.packed);
        let last = parts.len().saturating_sub(1);
        for (i, part) in parts.iter().enumerate() {
            let end = if i == last { ZSTD_EndDirective::ZSTD_e_end } else { ZSTD_EndDirective::ZSTD_e_flush };
            let mut input = InBuffer::around(part);
            let left = self.context.compress_stream2(&mut output, &mut input, end).map_err(failed)?;
            if left > 0 || input.pos() < part.len() {
                return Err(ParquetError::General(format!("zstd left {left} bytes of a page behind")));
            }
        }
        Ok(&self.packed)
    }
}

fn failed(code: usize) -> ParquetError {
    ParquetError::General(format!("zstd: {}", get_error_name(code)))
}
