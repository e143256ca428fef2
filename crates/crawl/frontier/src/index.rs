//! Numbers found by a key: the place of a host or of a row in a list that has the keys themselves.

/// Open addressing; a place has half of the key's hash and the number. A map of the standard library would take a key of 16
/// bytes, padding and twice as many places: four times the memory, and hosts and recent changes have one each.
#[derive(Default)]
pub(crate) struct Index {
    places: Vec<u64>,
    len: usize,
}

/// No number. A list has at most 2^32 - 2 entries.
const EMPTY: u64 = u64::MAX;

/// The upper half of the hash of a key that is two hashes already: of a host, and of a URL.
pub(crate) fn hash_of(key: u128) -> u32 {
    let folded = key as u64 ^ ((key >> 64) as u64).rotate_left(21);
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

impl Index {
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.places.len() as u64) >> 32) as usize
    }

    /// The number whose hash this is and that `is_it` knows; else the free place to put it.
    fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mut at = self.home(hash);
        loop {
            let place = self.places[at];
            if place == EMPTY {
                return Err(at);
            }
            if (place >> 32) as u32 == hash && is_it(place as u32) {
                return Ok(place as u32);
            }
            at = if at + 1 == self.places.len() { 0 } else { at + 1 };
        }
    }

    /// The number of a key.
    pub fn get(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        if self.places.is_empty() { None } else { self.find(hash, is_it).ok() }
    }

    /// The number of a key; `next` from now on if it has none.
    pub fn get_or_add(&mut self, hash: u32, next: u32, is_it: impl Fn(u32) -> bool) -> u32 {
        // A quarter stays free, or looking for what is not there takes long.
        if self.len * 4 >= self.places.len() * 3 {
            self.grow();
        }
        match self.find(hash, is_it) {
            Ok(number) => number,
            Err(at) => {
                self.places[at] = u64::from(hash) << 32 | u64::from(next);
                self.len += 1;
                next
            }
        }
    }

    fn grow(&mut self) {
        let places = (self.places.len() + self.places.len() / 2).max(16);
        for place in std::mem::replace(&mut self.places, vec![EMPTY; places]) {
            if place != EMPTY
                && let Err(at) = self.find((place >> 32) as u32, |_| false)
            {
                self.places[at] = place;
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_a_map() {
        let mut keys: Vec<u128> = Vec::new();
        let mut index = Index::default();
        assert_eq!(index.get(hash_of(1), |_| true), None);
        for n in 0..6000u128 {
            // Keys that differ in one half only; every third comes again; one hash in 64 is that of others.
            let key = (n / 3 % 40) << 64 | (n / 3 % 1500);
            let hash = if n / 3 % 64 == 0 { 7 } else { hash_of(key) };
            let (next, is_it) = (keys.len() as u32, |at: u32| keys[at as usize] == key);
            let known = keys.iter().position(|known| *known == key).map(|at| at as u32);
            assert_eq!(index.get(hash, is_it), known);
            assert_eq!(index.get_or_add(hash, next, is_it), known.unwrap_or(next));
            if known.is_none() {
                keys.push(key);
            }
        }
        assert!(keys.len() >= 1500 && index.bytes() <= keys.len() * 16 + 128, "{} {}", keys.len(), index.bytes());
    }
}
