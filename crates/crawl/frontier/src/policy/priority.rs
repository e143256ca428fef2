//! The order of work: priority, depth, arrival; who stands back; who has waited too long.

use crate::config::Config;
use crate::policy::politeness::millis;
use crate::row::{Found, Row, Status};

/// Priority buckets, the last the best.
pub(crate) const BUCKETS: u8 = 64;
/// Depths that are distinguished when queues are compared.
const DEPTHS: u32 = 16;
/// Classes of ready queues, the first the best.
pub(crate) const CLASSES: usize = BUCKETS as usize * DEPTHS as usize;
/// The bit of a rank that is set where a limit on pages lets seeds go first.
pub(crate) const BEHIND: u64 = 1 << 47;

/// The bucket of a priority from 0 to 1: four to each halving.
pub fn bucket_of(priority: f32) -> u8 {
    if priority.is_nan() || priority <= 0.0 {
        return 0;
    }
    if priority >= 1.0 {
        return BUCKETS - 1;
    }
    let steps = (-f64::from(priority).log2() * 4.0).trunc().min(63.0);
    BUCKETS - 1 - steps as u8
}

/// The priority that a file shows for a bucket.
pub(crate) fn priority_of(bucket: u8) -> f32 {
    if bucket == 0 { 0.0 } else { 2f64.powf(f64::from(bucket.min(63) as i8 - 63) / 4.0) as f32 }
}

/// What the order of rows goes by.
pub(crate) struct Standing {
    pub status: Status,
    pub due_ms: i64,
    pub first_seen: u32,
    pub bucket: u8,
    pub depth: u16,
    pub arrival: u64,
    pub found: Found,
}

impl Standing {
    /// What is less is fetched first: bucket, depth, arrival. Under a limit on pages seeds come before all else of their depth, and
    /// nothing else gets ahead of them by waiting: a window full of other rows would hide them, and the room that is kept for them
    /// would go to those.
    pub fn rank(&self, now: i64, config: &Config) -> u64 {
        let is_behind = config.limits_pages() && self.found != Found::Seed;
        // One that is due again has waited since then.
        let since = if self.status == Status::Due { self.due_ms } else { i64::from(self.first_seen) * 3_600_000 };
        let starved = !is_behind && self.first_seen > 0 && now.saturating_sub(since) >= millis(config.starved_after);
        let bucket = if starved { BUCKETS - 1 } else { self.bucket.min(BUCKETS - 1) };
        let depth = u64::from(self.depth).min(0x3ff);
        let arrival = self.arrival & 0x7fff_ffff_ffff;
        let behind = if is_behind { BEHIND } else { 0 };
        u64::from(BUCKETS - 1 - bucket) << 58 | depth << 48 | behind | arrival
    }
}

/// The rank of a row.
pub(crate) fn rank(row: &Row, now: i64, config: &Config) -> u64 {
    let Row { status, due_ms, first_seen, bucket, depth, arrival, found, .. } = *row;
    Standing { status, due_ms, first_seen, bucket, depth, arrival, found }.rank(now, config)
}

/// The class of a queue whose best URL has this rank, after so many pages of it were fetched.
pub(crate) fn class(rank: u64, fetched: u32, config: &Config) -> u16 {
    let bucket = (rank >> 58) as usize;
    let depth = ((rank >> 48) & 0x3ff).min(u64::from(DEPTHS - 1)) as usize;
    let over = fetched.checked_div(config.share).and_then(u32::checked_ilog2).map_or(0, |n| n as usize + 1);
    ((bucket + over) * DEPTHS as usize + depth).min(CLASSES - 1) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_of_the_reference() {
        for (priority, bucket) in [
            (0.0001, 10),
            (0.001, 24),
            (0.01, 37),
            (0.1, 50),
            (0.25, 55),
            (0.4, 58),
            (0.5, 59),
            (0.6, 61),
            (0.8, 62),
            (0.85, 63),
            (0.0, 0),
            (-1.0, 0),
            (f32::NAN, 0),
            (2.0, 63),
        ] {
            assert_eq!(bucket_of(priority), bucket, "{priority}");
        }
        for bucket in 1..64 {
            // A hair below, because rounding may fall on either side of the border.
            assert_eq!(bucket_of(priority_of(bucket) * 0.999), bucket);
        }
    }

    #[test]
    fn a_queue_over_its_share_stands_back() {
        let config = Config { share: 10, ..Config::default() };
        let rank = 4 << 58 | 3 << 48 | 7;
        let classes: Vec<_> = [0, 9, 10, 20, 40].map(|fetched| class(rank, fetched, &config)).into();
        assert_eq!(classes, [67, 67, 83, 99, 115]);
        assert_eq!(class(rank, u32::MAX, &Config { share: 0, ..config.clone() }), 67);
        assert!(usize::from(class(u64::MAX, u32::MAX, &config)) < CLASSES);
    }
}
