//! Short texts by a table of up to 255 symbols of one to eight bytes; code 255 is followed by a byte as it is.
//!
//! ```text
//! table   uvarint n, n x { u8 length, bytes }        code = place in the table
//! spans   00, then for each text: uvarint length, codes
//! ```

use crate::error::Malformed;
use std::collections::{BTreeMap, HashMap};
use trawl_io::slice::SliceReader;
use trawl_io::varint::put_uvarint;

const MAX_SYMBOLS: usize = 255;
const MAX_SYMBOL: usize = 8;
const ESCAPE: u8 = 255;
const ROUNDS: usize = 8;

/// A symbol table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    symbols: Vec<Vec<u8>>,
    codes: HashMap<Vec<u8>, u8>,
}

impl Table {
    fn new(symbols: Vec<Vec<u8>>) -> Table {
        // A table has at most 255 symbols.
        let codes = symbols.iter().enumerate().map(|(code, symbol)| (symbol.clone(), code as u8)).collect();
        Table { symbols, codes }
    }

    /// Learns the symbols that save most in `samples`: eight rounds, each counting symbols of the last one and pairs of
    /// neighbours.
    pub fn train(samples: &[&[u8]]) -> Table {
        let mut table = Table::default();
        for _ in 0..ROUNDS {
            let mut gain: BTreeMap<&[u8], usize> = BTreeMap::new();
            for sample in samples {
                let mut before: Option<(usize, usize)> = None;
                let mut at = 0;
                while let Some(rest) = sample.get(at..).filter(|rest| !rest.is_empty()) {
                    let len = table.longest(rest).map_or(1, |(_, len)| len);
                    *gain.entry(rest.get(..len).unwrap_or(rest)).or_default() += len;
                    if let Some((start, _)) = before.filter(|(start, _)| at + len - start <= MAX_SYMBOL) {
                        let joined = sample.get(start..at + len).unwrap_or_default();
                        *gain.entry(joined).or_default() += joined.len();
                    }
                    before = Some((at, len));
                    at += len;
                }
            }
            let mut best: Vec<(&[u8], usize)> = gain.into_iter().collect();
            // Stable: equal gains stay in the order of their bytes.
            best.sort_by_key(|(_, gain)| std::cmp::Reverse(*gain));
            table = Table::new(best.iter().take(MAX_SYMBOLS).map(|(symbol, _)| symbol.to_vec()).collect());
        }
        table
    }

    /// The longest symbol that `text` begins with: its code and length.
    fn longest(&self, text: &[u8]) -> Option<(u8, usize)> {
        (1..=MAX_SYMBOL.min(text.len())).rev().find_map(|len| Some((*self.codes.get(text.get(..len)?)?, len)))
    }

    /// The codes of a text.
    pub fn encode_text(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            match self.longest(rest) {
                Some((code, len)) => {
                    out.push(code);
                    rest = rest.get(len..).unwrap_or_default();
                }
                None => {
                    out.extend_from_slice(&[ESCAPE, byte]);
                    rest = after;
                }
            }
        }
        out
    }

    /// All texts one after another, and a reference to each.
    pub fn spans(&self, texts: &[&[u8]]) -> (Vec<u8>, Vec<u64>) {
        let mut spans = vec![0];
        let references = texts.iter().map(|text| {
            let at = spans.len() as u64;
            let codes = self.encode_text(text);
            put_uvarint(&mut spans, codes.len() as u64);
            spans.extend_from_slice(&codes);
            at
        });
        let references = references.collect();
        (spans, references)
    }

    /// The text at a reference, and where its span ends.
    pub(crate) fn text(&self, spans: &[u8], reference: u64) -> Result<(Vec<u8>, u64), Malformed> {
        let start = usize::try_from(reference).ok().and_then(|at| spans.get(at..)).filter(|_| reference > 0);
        let start = start.ok_or_else(|| Malformed::new("a reference into the spans", reference))?;
        let mut r = SliceReader::at(start, reference);
        let mut codes = r.prefixed(usize::MAX, "a span")?.iter();
        let mut text = Vec::new();
        while let Some(&code) = codes.next() {
            if code == ESCAPE {
                text.push(*codes.next().ok_or_else(|| Malformed::new("a byte after an escape", "the end"))?);
            } else {
                let symbol = self.symbols.get(usize::from(code));
                text.extend_from_slice(symbol.ok_or_else(|| Malformed::new("a code of the table", code))?);
            }
        }
        Ok((text, r.offset()))
    }

    /// The bytes of the table.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_uvarint(&mut out, self.symbols.len() as u64);
        for symbol in &self.symbols {
            out.push(symbol.len() as u8);
            out.extend_from_slice(symbol);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Table, Malformed> {
        let mut r = SliceReader::new(bytes);
        let n = r.uvarint("the number of symbols")?;
        if n > MAX_SYMBOLS as u64 {
            return Err(Malformed::new("at most 255 symbols", n));
        }
        let mut symbols = Vec::new();
        for _ in 0..n {
            let len = r.u8("a symbol's length")?;
            if !(1..=MAX_SYMBOL as u8).contains(&len) {
                return Err(Malformed::new("a symbol of 1 to 8 bytes", len));
            }
            symbols.push(r.take(usize::from(len), "a symbol")?.to_vec());
        }
        if !r.is_empty() {
            return Err(Malformed::new("the end of the table", format!("{} more bytes", r.rest().len())));
        }
        Ok(Table::new(symbols))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vector() {
        let samples: [&[u8]; 5] =
            [b"https://a.example/one", b"https://a.example/two", b"https://b.example/three", b"\xff\x00", b""];
        let table = Table::train(&samples);
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(
            hex(&table.encode()),
            "070868747470733a2f2f08612e6578616d706c08622e6578616d706c07652f746872656505652f6f6e6505652f74776f02ff00"
        );
        let (spans, references) = table.spans(&samples);
        assert_eq!(hex(&spans), "00030001040300010503000203010600");
        assert_eq!(references, [1, 5, 9, 13, 15]);
        for (text, reference) in samples.iter().zip(references) {
            assert_eq!(table.text(&spans, reference).unwrap().0, *text);
        }
        assert_eq!(Table::decode(&table.encode()).unwrap(), table);
        let stranger = table.encode_text(b"zz");
        assert_eq!(stranger, [255, b'z', 255, b'z']);
    }
}
