//! Which URLs are known, and how deep they are.
//!
//! While it fits the setting: every known URL as a 64-bit fingerprint and a depth, about 11 bytes each. Two of 30 million URLs
//! share a fingerprint with a chance of one in 40,000; the later one is then taken for known. Beyond the setting the set is given
//! up for the files themselves: filters say what is certainly new, the rest is looked up in batches sorted by key, and a cache
//! of keys offered lately spares most of that.

use crate::row::{Found, Row, Status};

/// Parts of the set, which grow one by one: growth never needs twice the memory of all.
const PARTS: usize = 1024;
const PART_BITS: u32 = 10;
/// Places of a block. A part grows by whole blocks and gives none back: with one list a part, which was replaced by a longer one
/// each time, the allocator kept nearly as much as the set had.
const BLOCK: usize = 512;
/// Memory of a block beside its places: two lists and what the allocator adds to them.
const BLOCK_OVERHEAD: usize = 80;

/// A set of fingerprints. In each part a fingerprint stands at its own share of the part or right of it, so that a part keeps
/// nearly the order of its fingerprints.
pub(crate) struct Exact {
    parts: Vec<Part>,
    len: usize,
    blocks: usize,
}

#[derive(Default)]
struct Part {
    /// All of them whole, or a single one that is not yet.
    blocks: Vec<Block>,
    len: u32,
    places: u32,
}

#[derive(Default)]
struct Block {
    /// 0 is an empty place.
    keys: Vec<u64>,
    depths: Vec<u8>,
}

impl Block {
    fn of(places: usize) -> Self {
        Block { keys: vec![0; places], depths: vec![0; places] }
    }
}

/// The depth of a set that stands for itself and for all that is deeper: where it counts, the row is asked.
pub(crate) const DEEP: u8 = u8::MAX;

/// In place of the depth of a URL that was found past the limit of redirects: an offer that finds it nearer asks its row.
pub(crate) const FAR: u8 = u8::MAX - 1;

/// In place of the depth of a URL that is as near as a seed and was found otherwise, 0 (a seed redirects to it, or a robots.txt names
/// it): if it turns out to be a seed itself, its row is asked.
pub(crate) const SENT: u8 = u8::MAX - 2;

/// In place of the depth of a URL that robots.txt closes: another spelling of it may be open, and then its row is asked.
pub(crate) const CLOSED: u8 = u8::MAX - 3;

/// A depth as the set has it.
pub(crate) fn set_depth_of(depth: u32) -> u8 {
    u8::try_from(depth).ok().filter(|depth| *depth < CLOSED).unwrap_or(DEEP)
}

/// What the set has of a row. How it was found counts, not its hops: one that was found by a link first, and then by the redirect of a
/// seed, has none.
pub(crate) fn mark_of(depth: u32, hops: u32, found: Found, status: Status, max_hops: u32) -> u8 {
    match depth {
        _ if status == Status::Excluded => CLOSED,
        _ if hops > max_hops => FAR,
        0 if found != Found::Seed => SENT,
        _ => set_depth_of(depth),
    }
}

impl Row {
    /// What the set has of it.
    pub fn mark(&self, max_hops: u32) -> u8 {
        mark_of(self.depth.into(), self.hops.into(), self.found, self.status, max_hops)
    }
}

/// What was known of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    New,
    /// It was known, at this depth.
    At(u8),
}

impl Part {
    fn home(&self, key: u64) -> usize {
        let share = u128::from(key << PART_BITS) * u128::from(self.places);
        (share >> 64) as usize
    }

    fn key(&self, at: usize) -> u64 {
        self.blocks[at / BLOCK].keys[at % BLOCK]
    }

    fn depth(&mut self, at: usize) -> &mut u8 {
        &mut self.blocks[at / BLOCK].depths[at % BLOCK]
    }

    fn put(&mut self, at: usize, key: u64, depth: u8) {
        let block = &mut self.blocks[at / BLOCK];
        (block.keys[at % BLOCK], block.depths[at % BLOCK]) = (key, depth);
    }

    fn find(&self, key: u64) -> Result<usize, usize> {
        let mut at = self.home(key);
        loop {
            match self.key(at) {
                0 => return Err(at),
                found if found == key => return Ok(at),
                _ => at = if at + 1 == self.places as usize { 0 } else { at + 1 },
            }
        }
    }

    /// Grows by an eighth, or from one small block to a whole one; tells how many blocks are new.
    fn grow(&mut self) -> usize {
        let before = self.blocks.len();
        let mut taken = Vec::with_capacity(self.len as usize);
        for block in &mut self.blocks {
            let entries = block.keys.iter().copied().zip(block.depths.iter().copied());
            taken.extend(entries.filter(|(key, _)| *key != 0));
            block.keys.fill(0);
        }
        if (self.places as usize) < BLOCK {
            let places = (self.places as usize * 5 / 4).max(16);
            self.blocks = vec![Block::of(if places * 5 / 4 > BLOCK { BLOCK } else { places })];
        } else {
            self.blocks.reserve_exact(before / 8 + 1);
            self.blocks.extend((0..before / 8 + 1).map(|_| Block::of(BLOCK)));
        }
        self.places = self.blocks.iter().map(|block| block.keys.len() as u32).sum();
        for (key, depth) in taken {
            if let Err(at) = self.find(key) {
                self.put(at, key, depth);
            }
        }
        self.blocks.len() - before
    }
}

impl Default for Exact {
    fn default() -> Self {
        Exact { parts: (0..PARTS).map(|_| Part::default()).collect(), len: 0, blocks: 0 }
    }
}

impl Exact {
    fn place(key: u64) -> (usize, u64) {
        // 0 marks an empty place; its URL shares the fingerprint 1.
        ((key >> (64 - PART_BITS)) as usize, key.max(1))
    }

    /// Adds a key unless it is known. What is known keeps its depth.
    pub fn insert(&mut self, key: u64, depth: u8) -> Known {
        let (part, key) = Self::place(key);
        let part = &mut self.parts[part];
        // A tenth stays free, or looking for an absent key would never end.
        if u64::from(part.len) * 10 >= u64::from(part.places) * 9 {
            self.blocks += part.grow();
        }
        match part.find(key) {
            Ok(at) => Known::At(*part.depth(at)),
            Err(at) => {
                part.put(at, key, depth);
                part.len += 1;
                self.len += 1;
                Known::New
            }
        }
    }

    pub fn get(&mut self, key: u64) -> Option<u8> {
        let (part, key) = Self::place(key);
        let part = &mut self.parts[part];
        if part.places == 0 { None } else { part.find(key).ok().map(|at| *part.depth(at)) }
    }

    /// Sets the depth of a key that is known.
    pub fn set_depth(&mut self, key: u64, depth: u8) {
        let (part, key) = Self::place(key);
        let part = &mut self.parts[part];
        if part.places > 0
            && let Ok(at) = part.find(key)
        {
            *part.depth(at) = depth;
        }
    }

    pub fn bytes(&self) -> usize {
        // While parts have one block each they fill evenly: at least nine tenths of four fifths of their places are taken.
        let small = self.len * 9 * 10 / 9 * 5 / 4;
        small.min(self.blocks * (BLOCK * 9 + BLOCK_OVERHEAD)) + PARTS * size_of::<Part>()
    }
}

/// Keys offered lately: a table in which a newer key pushes out the older one of its place.
pub(crate) struct Recent {
    keys: Vec<u64>,
}

impl Recent {
    pub fn new(bytes: usize) -> Self {
        Recent { keys: vec![0; (bytes / 8).max(1024)] }
    }

    fn place(&self, key: u64) -> usize {
        ((u128::from(key) * self.keys.len() as u128) >> 64) as usize
    }

    pub fn has(&self, key: u64) -> bool {
        self.keys[self.place(key)] == key.max(1)
    }

    pub fn put(&mut self, key: u64) {
        let at = self.place(key);
        self.keys[at] = key.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_set_is_a_map() {
        let (mut set, mut model) = (Exact::default(), HashMap::new());
        let mut dice = 7u64;
        for n in 0..200_000u64 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (dice >> 44).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let depth = (n % 200) as u8;
            let expected = match model.get(&key.max(1)) {
                Some(depth) => Known::At(*depth),
                None => Known::New,
            };
            assert_eq!(set.insert(key, depth), expected);
            model.entry(key.max(1)).or_insert(depth);
            if n % 3 == 0 {
                set.set_depth(key, 9);
                model.insert(key.max(1), 9);
            }
        }
        assert_eq!(set.len, model.len());
        for (key, depth) in &model {
            assert_eq!(set.get(*key), Some(*depth));
        }
        assert_eq!((set.get(0), set.get(u64::MAX)), (model.get(&1).copied(), model.get(&u64::MAX).copied()));
        let places = |set: &Exact| -> usize {
            set.parts.iter().flat_map(|part| &part.blocks).map(|block| block.keys.capacity() * 9).sum()
        };
        assert!(places(&set) < set.len * 14 + PARTS * 200, "{} bytes for {}", places(&set), set.len);
        // Parts of several blocks: about eleven bytes a URL.
        for n in 0..4_000_000u64 {
            set.insert(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 20, 3);
            if n % 500_000 == 499_999 && n > 2_000_000 {
                assert!(places(&set) < set.len * 13, "{} bytes for {}", places(&set), set.len);
                assert!(set.bytes() >= places(&set), "{} for {}", set.bytes(), places(&set));
            }
        }
    }
}
