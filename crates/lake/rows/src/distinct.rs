//! Telling different things apart.

use std::collections::HashSet;
use std::hash::Hash;

/// Things that are searched one by one: most rows of a key are few.
const FEW: usize = 16;

/// The different ones among some things. Quick where they are few, which a hash set is not.
#[derive(Debug)]
pub struct Distinct<T> {
    few: Vec<T>,
    many: HashSet<T>,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Self { few: Vec::new(), many: HashSet::new() }
    }
}

impl<T: Eq + Hash> Distinct<T> {
    /// Adds one; whether it is the first of its kind.
    pub fn insert(&mut self, thing: T) -> bool {
        if self.few.contains(&thing) {
            return false;
        }
        if self.few.len() < FEW {
            self.few.push(thing);
            return true;
        }
        self.many.insert(thing)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.few.clear();
        // Dropped rather than cleared: clearing a set costs its capacity each time.
        if !self.many.is_empty() {
            self.many = HashSet::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_new_once() {
        let mut distinct = Distinct::default();
        for round in 0..2 {
            for n in 0..100 {
                assert_eq!(distinct.insert(n), round == 0, "{n}");
            }
        }
        distinct.clear();
        assert!(distinct.insert(3) && !distinct.insert(3));
    }
}
