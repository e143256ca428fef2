//! The rules as one flat hash table: suffix text → what the list says about it.
//!
//! Open addressing over `(tag, node)` pairs; names are compared in full, so that a hash collision cannot change an answer.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

/// The name itself is a suffix.
pub const RULE: u8 = 1;
/// Every name one label below is a suffix.
pub const WILDCARD: u8 = 2;
/// The name is registrable although a wildcard covers it.
pub const EXCEPTION: u8 = 4;
/// A longer rule passes through here: the walk must go on.
const INNER: u8 = 8;

#[derive(Default)]
pub struct Builder {
    nodes: BTreeMap<String, u8>,
    rules: usize,
}

impl Builder {
    /// Adds a rule and marks every shorter suffix of its name as passed through.
    pub fn add(&mut self, name: &str, flag: u8) {
        let flags = self.nodes.entry(name.to_owned()).or_default();
        self.rules += usize::from(*flags & flag == 0);
        *flags |= flag;
        let mut rest = name;
        while let Some((_, parent)) = rest.split_once('.') {
            *self.nodes.entry(parent.to_owned()).or_default() |= INNER;
            rest = parent;
        }
    }

    pub fn finish(self) -> Table {
        // At most half full, a power of two, so that a probe ends after about one step and the wrap is a mask.
        let size = (self.nodes.len() * 2).next_power_of_two().max(2);
        let mut table = Table { slots: vec![Slot::default(); size], names: Vec::new(), rules: self.rules };
        for (name, flags) in &self.nodes {
            table.insert(name.as_bytes(), *flags);
        }
        table
    }
}

#[derive(Clone, Copy, Default)]
struct Slot {
    tag: u32,
    start: u32,
    len: u16,
    flags: u8, // 0 = free
}

pub struct Table {
    slots: Vec<Slot>,
    names: Vec<u8>,
    rules: usize,
}

/// The tag is the upper half of the hash, the place its lower bits.
fn split(hash: u64, size: usize) -> (u32, usize) {
    let mask = size.wrapping_sub(1);
    ((hash >> 32) as u32, hash as usize & mask)
}

impl Table {
    pub fn rules(&self) -> usize {
        self.rules
    }

    fn insert(&mut self, name: &[u8], flags: u8) {
        let (Ok(start), Ok(len)) = (u32::try_from(self.names.len()), u16::try_from(name.len())) else { return };
        let size = self.slots.len();
        let (tag, mut at) = split(xxh3_64(name), size);
        while let Some(slot) = self.slots.get_mut(at) {
            if slot.flags == 0 {
                *slot = Slot { tag, start, len, flags };
                self.names.extend_from_slice(name);
                return;
            }
            at = (at + 1) & size.wrapping_sub(1);
        }
    }

    /// The flags of a name, 0 when no rule ends at it or passes through it.
    pub fn find(&self, name: &[u8]) -> u8 {
        let size = self.slots.len();
        let (tag, mut at) = split(xxh3_64(name), size);
        while let Some(slot) = self.slots.get(at) {
            if slot.flags == 0 {
                return 0;
            }
            if slot.tag == tag && usize::from(slot.len) == name.len() {
                let start = slot.start as usize;
                if self.names.get(start..start + name.len()) == Some(name) {
                    return slot.flags;
                }
            }
            at = (at + 1) & size.wrapping_sub(1);
        }
        0
    }
}
