//! Deterministic chance: every fact of the synthetic web is a pure function of the seed and of what it is about.
//!
//! A `Dice` is a SplitMix64 stream started from a hash of (seed, purpose, two coordinates). Asking about page 7 of
//! host 3 never depends on what was asked before, so nothing has to be stored and any number of threads agree.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

const fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A short deterministic stream of numbers about one thing.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The stream for `purpose` at the coordinates `a`, `b`.
    pub(crate) fn new(seed: u64, purpose: u64, a: u64, b: u64) -> Self {
        let mut state = finish(seed.wrapping_add(GOLDEN));
        for part in [purpose, a, b] {
            state = finish(state.wrapping_add(GOLDEN) ^ part.wrapping_mul(GOLDEN));
        }
        Self(state)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        finish(self.0)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(n);
        // The high half of a 64x64 product is below n by construction, so it fits.
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A number in `lo..=hi`.
    pub(crate) fn range(&mut self, lo: u64, hi: u64) -> u64 {
        lo + self.below(hi.saturating_sub(lo) + 1)
    }

    /// True `percent` times out of a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number in 0..1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of `list`, or the type's default when the list is empty.
    pub(crate) fn pick<T: Copy + Default>(&mut self, list: &[T]) -> T {
        let at = usize::try_from(self.below(list.len() as u64)).unwrap_or(0);
        list.get(at).copied().unwrap_or_default()
    }
}

/// What a stream of numbers is about; distinct values keep the streams independent.
pub(crate) mod purpose {
    pub(crate) const DOMAIN: u64 = 1;
    pub(crate) const HOST: u64 = 2;
    pub(crate) const RANK: u64 = 3;
    pub(crate) const SLUG: u64 = 4;
    pub(crate) const LINKS: u64 = 5;
    pub(crate) const TEXT: u64 = 6;
    pub(crate) const POOL: u64 = 7;
    pub(crate) const ROBOTS: u64 = 8;
    pub(crate) const SECTION: u64 = 9;
    pub(crate) const FATE: u64 = 10;
    pub(crate) const FORM: u64 = 11;
    pub(crate) const SPELLING: u64 = 12;
    pub(crate) const TRAP: u64 = 13;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_every_coordinate() {
        let first = |s, p, a, b| Dice::new(s, p, a, b).next();
        assert_eq!(first(1, 2, 3, 4), first(1, 2, 3, 4));
        let all = [first(1, 2, 3, 4), first(2, 2, 3, 4), first(1, 3, 3, 4), first(1, 2, 4, 4), first(1, 2, 3, 5)];
        for (i, a) in all.iter().enumerate() {
            assert!(all.iter().skip(i + 1).all(|b| a != b));
        }
    }

    #[test]
    fn numbers_stay_in_range_and_fill_it() {
        let mut dice = Dice::new(9, 9, 9, 9);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[usize::try_from(dice.below(10)).unwrap()] += 1;
            assert!((5..=7).contains(&dice.range(5, 7)));
            assert!((0.0..1.0).contains(&dice.unit()));
        }
        assert!(seen.iter().all(|&n| n > 800 && n < 1200), "{seen:?}");
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.pick::<u8>(&[]), 0);
    }
}
