//! The virtual clock: pages change by it, never by the clock on the wall.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Virtual time: a fixed point and a rate.
#[derive(Debug)]
pub(super) struct Clock {
    rate: f64,
    point: Mutex<(Instant, f64)>,
}

impl Clock {
    pub(super) fn new(rate: f64, unix_s: u64) -> Self {
        Self { rate, point: Mutex::new((Instant::now(), unix_s as f64)) }
    }

    /// Virtual seconds per real second.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// Virtual Unix seconds now.
    pub(super) fn now_s(&self) -> u64 {
        let (since, base) = *self.point.lock().unwrap_or_else(PoisonError::into_inner);
        if self.rate == 0.0 { base as u64 } else { (base + since.elapsed().as_secs_f64() * self.rate) as u64 }
    }

    /// Moves virtual time; it goes on from there.
    pub(super) fn set(&self, unix_s: u64) {
        *self.point.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), unix_s as f64);
    }
}
