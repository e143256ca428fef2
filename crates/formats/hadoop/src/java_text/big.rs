//! Whole numbers of any size, as far as printing a double needs them.

use std::cmp::Ordering;

/// Little-endian limbs without leading zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Big(Vec<u32>);

impl Big {
    pub fn new(v: u64) -> Self {
        Big(vec![v as u32, (v >> 32) as u32]).trimmed()
    }

    /// The lowest 64 bits.
    pub fn low_bits(&self) -> u64 {
        self.0.iter().take(2).rev().fold(0, |n, limb| n << 32 | u64::from(*limb))
    }

    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    pub fn times(mut self, factor: u32) -> Self {
        let mut carry = 0u64;
        for limb in &mut self.0 {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        self.0.push(carry as u32);
        self.trimmed()
    }

    pub fn times_pow(mut self, base: u32, power: i32) -> Self {
        for _ in 0..power {
            self = self.times(base);
        }
        self
    }

    /// Times 2^bits.
    pub fn shifted(self, bits: i32) -> Self {
        let (limbs, rest) = (bits / 32, bits % 32);
        let mut out = vec![0; limbs.unsigned_abs() as usize];
        out.extend(self.times(1 << rest).0);
        Big(out).trimmed()
    }

    pub fn plus(&self, other: &Self) -> Self {
        let mut carry = 0u64;
        let mut out = Vec::with_capacity(self.0.len().max(other.0.len()) + 1);
        for i in 0..self.0.len().max(other.0.len()) {
            carry += u64::from(self.0.get(i).copied().unwrap_or(0)) + u64::from(other.0.get(i).copied().unwrap_or(0));
            out.push(carry as u32);
            carry >>= 32;
        }
        out.push(carry as u32);
        Big(out).trimmed()
    }

    /// Takes `divisor` away as often as it fits, at most nine times by its use here, and says how often.
    pub fn take_quotient(&mut self, divisor: &Self) -> u8 {
        let mut quotient = 0;
        while *self >= *divisor && quotient < 10 {
            let mut borrow = 0i64;
            for (i, limb) in self.0.iter_mut().enumerate() {
                borrow += i64::from(*limb) - i64::from(divisor.0.get(i).copied().unwrap_or(0));
                *limb = borrow as u32;
                borrow >>= 32;
            }
            *self = std::mem::take(self).trimmed();
            quotient += 1;
        }
        quotient
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Big {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}
