//! The attributes of one tag: the only text the tokenizer ever holds.

use super::names::Attr;

/// The wanted attributes of the current tag.
#[derive(Debug)]
pub(super) struct Attributes {
    bytes: Vec<u8>,
    spans: [(usize, usize); Attr::COUNT],
    present: u32,
    too_long: u32,
    limit: usize,
}

impl Attributes {
    /// Keeps values of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Attributes { bytes: Vec::new(), spans: [(0, 0); Attr::COUNT], present: 0, too_long: 0, limit }
    }

    /// The bytes of an attribute as written, if it is present and not over the limit. The first of a name counts.
    pub(super) fn get(&self, attr: Attr) -> Option<&[u8]> {
        if !self.has(attr) || self.too_long & attr.bit() != 0 {
            return None;
        }
        let (start, end) = *self.spans.get(attr as usize)?;
        self.bytes.get(start..end)
    }

    /// Whether the attribute is present.
    pub(super) fn has(&self, attr: Attr) -> bool {
        self.present & attr.bit() != 0
    }

    /// How many wanted attributes were dropped for their length.
    pub(super) fn too_long(&self) -> u32 {
        self.too_long.count_ones()
    }

    /// Forgets the last tag.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.present = 0;
        self.too_long = 0;
    }

    /// Notes that an attribute is present, with an empty value so far.
    pub(super) fn open(&mut self, attr: Attr) {
        self.present |= attr.bit();
        if let Some(span) = self.spans.get_mut(attr as usize) {
            *span = (self.bytes.len(), self.bytes.len());
        }
    }

    /// Appends to the value of the attribute opened last.
    pub(super) fn append(&mut self, attr: Attr, value: &[u8]) {
        if self.too_long & attr.bit() != 0 {
            return;
        }
        let Some((start, end)) = self.spans.get_mut(attr as usize) else { return };
        if *end - *start + value.len() > self.limit {
            self.bytes.truncate(*start);
            *end = *start;
            self.too_long |= attr.bit();
            return;
        }
        self.bytes.extend_from_slice(value);
        *end = self.bytes.len();
    }
}
