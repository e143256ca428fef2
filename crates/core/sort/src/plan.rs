//! How a memory budget is divided.
//!
//! ```text
//! pushing:  (threads + 1) buffers of records and index, as many times a block being written and a codec
//! merging:  per run two blocks (one read ahead) and a key; one stored block; in passes before the last, a block being written + codec
//! ```

use crate::{Error, MIN_MEMORY_BYTES, Result};

/// What the decompressor takes, measured 95 KiB and rounded up.
const DECODER_BYTES: usize = 128 << 10;
/// What writing a run takes: raw and stored block, and the compressor, whose tables follow the block's size …
const WRITER_BLOCKS: usize = 2 + 10;
/// … and something beside.
const WRITER_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub memory: usize,
    pub threads: usize,
    /// Records and index of one buffer.
    pub buffer: usize,
    /// Blocks are closed when they reach this.
    pub block: usize,
    /// The largest key and value together.
    pub max_record: usize,
    /// What writing one run takes besides the buffer.
    pub writer: usize,
    pub max_fan_in: usize,
    /// More runs than this are merged before more are written, since each takes memory to remember.
    pub max_runs: usize,
}

impl Plan {
    pub fn new(memory: usize, threads: usize, max_fan_in: usize) -> Result<Plan> {
        let parts = threads.saturating_add(1);
        let min = (MIN_MEMORY_BYTES / 2).saturating_mul(parts).max(MIN_MEMORY_BYTES);
        if memory < min {
            return Err(Error::BudgetTooSmall { given: memory, min });
        }
        // A sixteenth stays free for stacks, file handles and what the allocator adds.
        let share = (memory - memory / 16) / parts;
        // With many threads blocks are smaller, so that writing takes at most half of a share.
        let block = (memory / 512).min((share / 2).saturating_sub(WRITER_BYTES) / WRITER_BLOCKS);
        let block = block.clamp(4 << 10, 128 << 10);
        let writer = WRITER_BLOCKS * block + WRITER_BYTES;
        // Positions in a buffer are 32 bits.
        let buffer = share.saturating_sub(writer).min(u32::MAX as usize);
        let max_record = (memory / 16).min(buffer / 2);
        let max_runs = (memory / 4096).max(max_fan_in);
        Ok(Plan { memory, threads, buffer, block, max_record, writer, max_fan_in, max_runs })
    }

    /// How many of the runs with these needs, from the first on, fit into one merge of `parts` that go on at once. At
    /// least two do if `parts` is 1, as records are limited to a sixteenth of the budget.
    pub fn fan_in(&self, needs: impl IntoIterator<Item = RunNeed>, parts: usize) -> usize {
        self.fit(needs, (self.memory - self.memory / 16) / parts, false)
    }

    /// The same for a merge that writes a run.
    pub fn fan_in_writing(&self, needs: impl IntoIterator<Item = RunNeed>) -> usize {
        self.fit(needs, self.memory - self.memory / 16, true)
    }

    fn fit(&self, needs: impl IntoIterator<Item = RunNeed>, memory: usize, writing: bool) -> usize {
        let (mut sum, mut largest, mut n) = (DECODER_BYTES, 0, 0);
        for need in needs.into_iter().take(self.max_fan_in) {
            largest = largest.max(need.block);
            sum += 2 * need.block + need.key;
            let writer = if writing { self.writer.max(2 * largest) } else { 0 };
            if sum + largest + writer > memory {
                break;
            }
            n += 1;
        }
        n
    }
}

/// What merging needs to know about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunNeed {
    /// Its largest block, unpacked.
    pub block: usize,
    /// Its longest key.
    pub key: usize,
}

impl RunNeed {
    pub fn max(self, other: Self) -> Self {
        RunNeed { block: self.block.max(other.block), key: self.key.max(other.key) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_within_the_whole() {
        for memory in [1 << 20, 3 << 20, 64 << 20, 256 << 20, 64usize << 30] {
            for threads in [1, 2, 8, 62, 100, 125, 126, 510, 999, 1022, usize::MAX] {
                let Ok(plan) = Plan::new(memory, threads, 256) else {
                    assert!(memory < threads.saturating_mul(MIN_MEMORY_BYTES));
                    continue;
                };
                assert!((threads + 1) * (plan.buffer + plan.writer) <= memory);
                assert!(plan.max_record + 64 < plan.buffer);
                assert!(plan.buffer >= plan.writer.min(128 << 10), "room for records: {plan:?}");
                assert!(plan.buffer <= u32::MAX as usize);
            }
        }
        assert!(matches!(Plan::new(1000, 2, 256), Err(Error::BudgetTooSmall { given: 1000, .. })));
    }

    #[test]
    fn fan_in_follows_the_budget() {
        let plan = Plan::new(4 << 20, 2, 256).unwrap();
        let small = RunNeed { block: 8 << 10, key: 100 };
        let n = plan.fan_in(std::iter::repeat_n(small, 1000), 1);
        assert!((200..=256).contains(&n), "{n}");
        let half = plan.fan_in(std::iter::repeat_n(small, 1000), 2);
        assert!((90..=128).contains(&half), "{half}");
        let large = RunNeed { block: (8 << 10) + plan.max_record, key: plan.max_record };
        let n = plan.fan_in_writing(std::iter::repeat_n(large, 1000));
        assert!((2..=5).contains(&n), "{n}");
        assert!(n * 3 * plan.max_record + 3 * plan.max_record < plan.memory + plan.memory / 8);
        assert_eq!(plan.fan_in_writing([small]), 1);
        assert_eq!(Plan::new(64 << 20, 2, 5).unwrap().fan_in([small; 9], 1), 5);
    }
}
