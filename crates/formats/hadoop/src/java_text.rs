//! Numbers and dates as Java prints them, for outputs that are compared with the reference's.
//!
//! `Float.toString` and `Double.toString` are those of JDK 18 and older, which Nutch runs on: they sometimes print a
//! digit more than needed. JDK 19 prints the shortest digits that read back; bits are the same either way.

mod big;

use big::Big;
use std::fmt;
use trawl_model::UnixMillis;

/// A float as `Float.toString` (JDK up to 18) prints it.
pub fn float(v: f32) -> String {
    let bits = v.to_bits();
    let (exponent, fraction) = ((bits >> 23 & 0xff).cast_signed(), bits & 0x7f_ffff);
    let parts = match (exponent, fraction) {
        (0xff, 0) => return if v < 0.0 { "-Infinity" } else { "Infinity" }.into(),
        (0xff, _) => return "NaN".into(),
        (0, 0) => return if v.is_sign_negative() { "-0.0" } else { "0.0" }.into(),
        (0, f) => normalised(u64::from(f) << 29, -126, 24),
        (e, f) => Binary { fraction: u64::from(f | 0x80_0000) << 29, exponent: e - 127, significant: 24 },
    };
    parts.print(v.is_sign_negative())
}

/// A double as `Double.toString` (JDK up to 18) prints it.
pub fn double(v: f64) -> String {
    let bits = v.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let parts = match (exponent, fraction) {
        (0x7ff, 0) => return if v < 0.0 { "-Infinity" } else { "Infinity" }.into(),
        (0x7ff, _) => return "NaN".into(),
        (0, 0) => return if v.is_sign_negative() { "-0.0" } else { "0.0" }.into(),
        (0, f) => normalised(f, -1022, 53),
        (e, f) => Binary { fraction: f | 1 << 52, exponent: e - 1023, significant: 53 },
    };
    parts.print(v.is_sign_negative())
}

/// A subnormal number, shifted until its first bit stands where that of other numbers does.
fn normalised(fraction: u64, exponent: i32, significant: i32) -> Binary {
    let shift = fraction.leading_zeros().cast_signed() - 11;
    Binary { fraction: fraction << shift, exponent: exponent - shift, significant: significant - shift }
}

/// `fraction` has 53 bits, the first of them set, and counts from 2^(exponent - 52); `significant` of them are known.
struct Binary {
    fraction: u64,
    exponent: i32,
    significant: i32,
}

/// Decimal digits d1 d2 …, meaning 0.d1d2… times 10^exponent.
struct Decimal {
    digits: Vec<u8>,
    exponent: i32,
}

impl Binary {
    fn print(&self, negative: bool) -> String {
        let sign = if negative { "-" } else { "" };
        format!("{sign}{}", self.digits())
    }

    fn digits(&self) -> Decimal {
        let tail = self.fraction.trailing_zeros().cast_signed();
        let bits = 53 - tail;
        let below_point = (bits - self.exponent - 1).max(0);
        if below_point == 0 && (-21..=62).contains(&self.exponent) {
            return self.integer();
        }
        // value = B / S, half the gap to a neighbour = M / S, all scaled so that the first digit is B / S.
        let fraction = self.fraction >> tail;
        let mut decimal = self.estimate();
        let (five_b, five_s) = ((-decimal).max(0), decimal.max(0));
        let mut two_b = five_b + below_point + self.exponent;
        let mut two_s = five_s + below_point;
        let mut two_m = two_b - self.significant;
        two_b -= bits - 1;
        let common = two_b.min(two_s);
        two_b -= common;
        two_s -= common;
        two_m -= common;
        // Below a power of two the next number is only half as far away.
        if bits == 1 {
            two_m -= 1;
        }
        if two_m < 0 {
            two_b -= two_m;
            two_s -= two_m;
            two_m = 0;
        }
        let five_bits = |n: i32| if n < 27 { FIVE_BITS.get(n as usize).copied().unwrap_or(0) } else { n * 3 };
        // The JDK works in 32 or 64 bits where the numbers fit, and there its sums can overflow.
        let (bits_b, bits_s) = (bits + two_b + five_bits(five_b), two_s + 1 + five_bits(five_s + 1));
        let width = match bits_b.max(bits_s) {
            ..32 => Some(32),
            32..64 => Some(64),
            _ => None,
        };
        let mut b = Big::new(fraction).times_pow(5, five_b).shifted(two_b);
        let mut m = Big::new(1).times_pow(5, five_b).shifted(two_m);
        let s = Big::new(1).times_pow(5, five_s).shifted(two_s);
        let tens = s.clone().times(10);
        let mut digits = Vec::new();
        let mut step = |digits: &mut Vec<u8>, first: bool| {
            let q = b.take_quotient(&s);
            b = std::mem::take(&mut b).times(10);
            m = std::mem::take(&mut m).times(10);
            let (low, high, half) = match width {
                Some(width) => wrapping_tests(&b, &m, &tens, width),
                None => (b < m, b.plus(&m) >= tens, b.plus(&b).cmp(&tens)),
            };
            let skipped = first && q == 0 && !high;
            if !skipped {
                digits.push(q);
            }
            (low, high, skipped, half)
        };
        let (mut low, mut high, skipped, mut half) = step(&mut digits, true);
        decimal -= i32::from(skipped);
        // Numbers with an exponent get two digits at least.
        if !(-3..8).contains(&decimal) {
            (low, high) = (false, false);
        }
        while !low && !high {
            (low, high, _, half) = step(&mut digits, false);
        }
        let odd = digits.last().is_some_and(|d| d & 1 == 1);
        let up = high && (!low || half.is_gt() || half.is_eq() && odd);
        if up && round_up(&mut digits) {
            decimal += 1;
        }
        Decimal { digits, exponent: decimal + 1 }
    }

    /// A number without a fractional part: its digits, without those that its bits say nothing about.
    fn integer(&self) -> Decimal {
        let shift = self.exponent - 52;
        let mut value = if shift >= 0 { self.fraction << shift } else { self.fraction >> -shift };
        let unknown = self.exponent - self.significant - 1;
        let dropped = if unknown > 1 { (f64::from(unknown) * std::f64::consts::LOG10_2) as u32 } else { 0 };
        if dropped > 0 {
            let unit = 10u64.pow(dropped);
            value = value / unit + u64::from(value % unit >= unit / 2);
        }
        let mut digits: Vec<u8> = value.to_string().bytes().map(|b| b - b'0').collect();
        let exponent = digits.len() as i32 + dropped as i32;
        while digits.len() > 1 && digits.last() == Some(&0) {
            digits.pop();
        }
        Decimal { digits, exponent }
    }

    /// The power of ten of the first digit, or one more.
    #[expect(clippy::approx_constant, reason = "the JDK's constants, digit by digit")]
    fn estimate(&self) -> i32 {
        let one_to_two = f64::from_bits((self.fraction & ((1 << 52) - 1)) | 1023 << 52);
        let log = (one_to_two - 1.5) * 0.289_529_654 + 0.176_091_259 + f64::from(self.exponent) * 0.301_029_995_663_981;
        log.floor() as i32
    }
}

/// Whether what is left is within the gap below, within the gap above, and how its double compares with `tens`, all as sums
/// of so many bits give it.
fn wrapping_tests(b: &Big, m: &Big, tens: &Big, width: u32) -> (bool, bool, std::cmp::Ordering) {
    let wrap = |v: u64| if width == 32 { i64::from(v as i32) } else { v.cast_signed() };
    let (b, m, tens) = (b.low_bits(), m.low_bits(), wrap(tens.low_bits()));
    let half = wrap(b.wrapping_mul(2).wrapping_sub(tens.cast_unsigned())).cmp(&0);
    // A gap that overflowed is larger than anything.
    if wrap(m) <= 0 {
        return (true, true, half);
    }
    (wrap(b) < wrap(m), wrap(b.wrapping_add(m)) > tens, half)
}

/// Bits of 5^n as the JDK's table has them.
const FIVE_BITS: [i32; 27] =
    [0, 3, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28, 31, 33, 35, 38, 40, 42, 45, 47, 49, 52, 54, 56, 59, 61];

/// Adds one to the last digit; `true` when a digit was gained in front.
fn round_up(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return false;
        }
        *digit = 0;
    }
    if let Some(first) = digits.first_mut() {
        *first = 1;
    }
    true
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.digits.iter().map(|d| char::from(b'0' + d)).collect();
        let fraction = |s: &str| if s.is_empty() { "0".to_owned() } else { s.to_owned() };
        match self.exponent {
            e @ 1..8 => {
                let whole = e as usize;
                match text.split_at_checked(whole) {
                    Some((whole, rest)) => write!(f, "{whole}.{}", fraction(rest)),
                    None => write!(f, "{text}{}.0", "0".repeat(whole - text.len())),
                }
            }
            e @ -2..=0 => write!(f, "0.{}{text}", "0".repeat(e.unsigned_abs() as usize)),
            e => {
                let (first, rest) = text.split_at_checked(1).unwrap_or((&text, ""));
                write!(f, "{first}.{}E{}", fraction(rest), e - 1)
            }
        }
    }
}

/// A moment as `java.util.Date.toString` prints it in UTC: `Tue Dec 15 07:44:06 UTC 2026`.
pub fn date_utc(ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    // `UnixMillis` stops at the years that four digits can write; beyond them the same calendar goes on every 400 years.
    const ERA_MS: i64 = 146_097 * 86_400_000;
    let eras = if (-62_167_219_200_000..253_402_300_800_000).contains(&ms) { 0 } else { ms.div_euclid(ERA_MS) - 4 };
    // Four eras behind 1970, so that the first and the last moment there are do not overflow.
    let within = if eras == 0 { ms } else { ms.rem_euclid(ERA_MS) + 4 * ERA_MS };
    let (year, month, day, h, m, s, _) = UnixMillis(within).civil();
    let year = year + eras * 400;
    let name = |list: &[&'static str], n: usize| list.get(n).copied().unwrap_or("");
    let weekday = name(&DAYS, ms.div_euclid(86_400_000).rem_euclid(7) as usize);
    let month = name(&MONTHS, month.saturating_sub(1) as usize);
    // Java counts years before the common era upwards and has no year zero.
    let year = if year > 0 { year } else { 1 - year };
    format!("{weekday} {month} {day:02} {h:02}:{m:02}:{s:02} UTC {year:04}")
}
