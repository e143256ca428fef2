//! Atomic publish, locks, journal, ranged reads, limits, and a file layer that can fail on demand
