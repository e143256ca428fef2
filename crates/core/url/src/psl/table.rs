//! The rules as one flat hash table: suffix text → what the list says about it.
//!
//! Open addressing over `(tag, node)` pairs; names are compared in full, so that a hash collision cannot change an answer.

use xxhash_rust::xxh3::xxh3_64;

/// The name itself is a suffix.
pub const RULE: u8 = 1;
/// Every name one label below is a suffix.
pub const WILDCARD: u8 = 2;
/// The name is registrable although a wildcard covers it.
pub const EXCEPTION: u8 = 4;
/// A longer rule passes through here: the walk must go on.
const INNER: u8 = 8;

#[derive(Clone, Copy, Default)]
struct Slot {
    tag: u32,
    start: u32,
    len: u16,
    flags: u8, // 0 = free
}

pub struct Table {
    /// A power of two of them, at most half in use: a probe ends after about one step, and the wrap is a mask.
    slots: Vec<Slot>,
    used: usize,
    names: Vec<u8>,
    rules: usize,
}

/// Slots for the list of today: every command that asks for a domain fills a table first, and growing would fill it twice.
const SLOTS: usize = 1 << 15;

/// The tag is the upper half of the hash, the place its lower bits.
fn split(hash: u64, size: usize) -> (u32, usize) {
    let mask = size.wrapping_sub(1);
    ((hash >> 32) as u32, hash as usize & mask)
}

impl Default for Table {
    fn default() -> Self {
        Self { slots: vec![Slot::default(); SLOTS], used: 0, names: Vec::with_capacity(SLOTS * 8), rules: 0 }
    }
}

impl Table {
    pub fn rules(&self) -> usize {
        self.rules
    }

    /// Adds a rule and marks every shorter suffix of its name as passed through.
    pub fn add(&mut self, name: &str, flag: u8) {
        self.rules += usize::from(self.mark(name.as_bytes(), flag) & flag == 0);
        let mut rest = name;
        while let Some((_, parent)) = rest.split_once('.') {
            self.mark(parent.as_bytes(), INNER);
            rest = parent;
        }
    }

    /// Adds flags to those of a name; returns the ones it had.
    fn mark(&mut self, name: &[u8], flags: u8) -> u8 {
        // Lists are at most 16 MiB long, and a longer name than this cannot be a host's.
        let (Ok(start), Ok(len)) = (u32::try_from(self.names.len()), u16::try_from(name.len())) else { return 0 };
        let (tag, at) = self.place(name);
        let Some(slot) = self.slots.get_mut(at) else { return 0 };
        let before = slot.flags;
        if before != 0 {
            slot.flags |= flags;
            return before;
        }
        *slot = Slot { tag, start, len, flags };
        self.names.extend_from_slice(name);
        self.used += 1;
        if self.used * 2 > self.slots.len() {
            self.grow();
        }
        before
    }

    fn grow(&mut self) {
        let larger = vec![Slot::default(); self.slots.len() * 2];
        for slot in std::mem::replace(&mut self.slots, larger) {
            let start = slot.start as usize;
            let Some(name) = self.names.get(start..start + usize::from(slot.len)).filter(|_| slot.flags != 0) else {
                continue;
            };
            let (_, at) = self.place(name);
            if let Some(free) = self.slots.get_mut(at) {
                *free = slot;
            }
        }
    }

    /// The tag of a name, and the slot that holds it or would.
    fn place(&self, name: &[u8]) -> (u32, usize) {
        let size = self.slots.len();
        let (tag, mut at) = split(xxh3_64(name), size);
        while let Some(slot) = self.slots.get(at) {
            let start = slot.start as usize;
            let is_it = slot.tag == tag
                && usize::from(slot.len) == name.len()
                && self.names.get(start..start + name.len()) == Some(name);
            if slot.flags == 0 || is_it {
                break;
            }
            at = (at + 1) & size.wrapping_sub(1);
        }
        (tag, at)
    }

    /// The flags of a name, 0 when no rule ends at it or passes through it.
    pub fn find(&self, name: &[u8]) -> u8 {
        let (_, at) = self.place(name);
        self.slots.get(at).map_or(0, |slot| slot.flags)
    }
}
