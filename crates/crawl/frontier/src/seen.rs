//! Which URLs are known, and how deep they are.
//!
//! While it fits the setting: every known URL as a 64-bit fingerprint and a depth, about 11 bytes each. Two of 30 million URLs
//! share a fingerprint with a chance of one in 40,000; the later one is then taken for known. Beyond the setting the set is given
//! up for the files themselves: filters say what is certainly new, the rest is looked up in batches sorted by key, and a cache
//! of keys offered lately spares most of that.

/// Parts of the set, which grow one by one: growth never needs twice the memory of all.
const PARTS: usize = 1024;
const PART_BITS: u32 = 10;

/// A set of fingerprints. In each part a fingerprint stands at its own share of the part or right of it, so that a part keeps
/// nearly the order of its fingerprints, and growing is one pass.
pub(crate) struct Exact {
    parts: Vec<Part>,
    len: usize,
}

#[derive(Default)]
struct Part {
    /// 0 is an empty place.
    keys: Vec<u64>,
    depths: Vec<u8>,
    len: usize,
}

/// The depth of a set that stands for itself and for all that is deeper: where it counts, the row is asked.
pub(crate) const DEEP: u8 = u8::MAX;

/// In place of the depth of a URL that was found past the limit of redirects: whoever finds it nearer asks its row.
pub(crate) const FAR: u8 = u8::MAX - 1;

/// A depth as the set has it.
pub(crate) fn set_depth_of(depth: u32) -> u8 {
    u8::try_from(depth).ok().filter(|depth| *depth < FAR).unwrap_or(DEEP)
}

/// What the set has of a row.
pub(crate) fn mark_of(depth: u32, hops: u32, max_hops: u32) -> u8 {
    if hops > max_hops { FAR } else { set_depth_of(depth) }
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
        let share = u128::from(key << PART_BITS) * self.keys.len() as u128;
        (share >> 64) as usize
    }

    fn find(&self, key: u64) -> Result<usize, usize> {
        let mut at = self.home(key);
        loop {
            match self.keys[at] {
                0 => return Err(at),
                found if found == key => return Ok(at),
                _ => at = if at + 1 == self.keys.len() { 0 } else { at + 1 },
            }
        }
    }

    fn grow(&mut self) {
        let capacity = (self.keys.len() * 5 / 4).max(16);
        let keys = std::mem::replace(&mut self.keys, vec![0; capacity]);
        let depths = std::mem::replace(&mut self.depths, vec![0; capacity]);
        for (key, depth) in keys.into_iter().zip(depths).filter(|(key, _)| *key != 0) {
            if let Err(at) = self.find(key) {
                (self.keys[at], self.depths[at]) = (key, depth);
            }
        }
    }
}

impl Default for Exact {
    fn default() -> Self {
        Exact { parts: (0..PARTS).map(|_| Part::default()).collect(), len: 0 }
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
        if part.len * 10 >= part.keys.len() * 9 {
            part.grow();
        }
        match part.find(key) {
            Ok(at) => Known::At(part.depths[at]),
            Err(at) => {
                (part.keys[at], part.depths[at]) = (key, depth);
                part.len += 1;
                self.len += 1;
                Known::New
            }
        }
    }

    pub fn get(&self, key: u64) -> Option<u8> {
        let (part, key) = Self::place(key);
        let part = &self.parts[part];
        if part.keys.is_empty() { None } else { part.find(key).ok().map(|at| part.depths[at]) }
    }

    /// Sets the depth of a key that is known.
    pub fn set_depth(&mut self, key: u64, depth: u8) {
        let (part, key) = Self::place(key);
        let part = &mut self.parts[part];
        if !part.keys.is_empty()
            && let Ok(at) = part.find(key)
        {
            part.depths[at] = depth;
        }
    }

    pub fn bytes(&self) -> usize {
        // Parts fill evenly: between nine tenths and nine tenths of four fifths of their places are taken.
        self.len * 9 * 10 / 9 * 10 / 9 + PARTS * size_of::<Part>()
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
        let places: usize = set.parts.iter().map(|part| part.keys.capacity() * 9).sum();
        assert!(places < set.len * 14 + PARTS * 200, "{places} bytes for {}", set.len);
    }
}
