//! How many bytes hold nearly every capture: learned while captures are appended, kept in the superblock of the data
//! file, so that a reader gets inode and contents with one read and does not ask for much more than that.

use super::Pages;
use crate::design::{PAGE_READ_DOWN, PAGE_READ_MAX, PAGE_READ_MIN, PAGE_READ_START, PAGE_READ_UP};
use crate::num::{index, signed};
use crate::superblock::Name;

/// Reads are multiples of this.
const BLOCK: u64 = 4096;

/// The estimate after a capture of so many bytes. It needs no memory but itself, so it survives a restart.
pub(super) fn learn(hint: u64, bytes: u64) -> u64 {
    let next = if bytes > hint { hint + hint / PAGE_READ_UP } else { hint - hint / PAGE_READ_DOWN };
    next.clamp(PAGE_READ_MIN, PAGE_READ_MAX)
}

impl Pages {
    fn hint(&self) -> u64 {
        let stored = self.fs.data().superblock().value(Name::PGREAD);
        stored.map_or(PAGE_READ_START, |hint| hint.max(0).cast_unsigned()).clamp(PAGE_READ_MIN, PAGE_READ_MAX)
    }

    /// Bytes to read at once for a capture: the estimate and a bit, as it moves around what it estimates.
    pub(super) fn read_bytes(&self) -> usize {
        let hint = self.hint();
        index((hint + hint / 8).next_multiple_of(BLOCK))
    }

    /// A capture takes so many bytes, its inode included.
    pub(super) fn learn(&mut self, bytes: u64) {
        let next = learn(self.hint(), bytes);
        self.fs.note(Name::PGREAD, signed(next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes spread over two orders of magnitude, as pages are.
    #[test]
    fn it_settles_where_nearly_all_fit() {
        let mut seed = 1u64;
        let mut size = || {
            let mut sum = 0.0;
            for _ in 0..12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sum += (seed >> 40) as f64 / (1u64 << 24) as f64;
            }
            (10_000.0 * (sum - 6.0).exp()) as u64
        };
        let mut hint = PAGE_READ_START;
        for _ in 0..20_000 {
            hint = learn(hint, size());
        }
        let missed = (0..20_000).filter(|_| size() > hint + hint / 8).count();
        assert!((10..200).contains(&missed), "{missed} of 20000 do not fit into {hint}");
        for (constant, low, high) in [(1, PAGE_READ_MIN, PAGE_READ_MIN), (u64::MAX, PAGE_READ_MAX, PAGE_READ_MAX)] {
            hint = (0..40_000).fold(hint, |hint, _| learn(hint, constant));
            assert!((low..=high).contains(&hint), "{hint}");
        }
    }
}
