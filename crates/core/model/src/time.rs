//! A moment, as archives write it: milliseconds since 1970, UTC.

use crate::date::Civil;
use std::fmt;

/// Milliseconds since 1970-01-01T00:00:00Z, leap seconds ignored as Unix does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub i64);

/// Why a text is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a time as YYYY-MM-DDThh:mm:ss[.fff]Z or 4 to 17 digits, found {found:?}")]
pub struct TimeError {
    /// The text, cut to a length fit for a message.
    pub found: String,
}

const DAY_MS: i64 = 86_400_000;
/// Years 0000 to 9999: what four digits can write.
const MIN: i64 = -62_167_219_200_000;
const MAX: i64 = 253_402_300_799_999;

impl UnixMillis {
    /// The moment `year-month-day hour:minute:second.ms` UTC; `None` when no calendar has it.
    pub fn from_civil(year: i64, month: u32, day: u32, h: u32, m: u32, s: u32, ms: u32) -> Option<Self> {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days_in_month = match month {
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u32::from(leap),
            1..=12 => 31,
            _ => return None,
        };
        // 60 is a leap second; it is folded into the next minute, as Unix time does.
        if !(0..=9999).contains(&year) || day == 0 || day > days_in_month || h > 23 || m > 59 || s > 60 || ms > 999 {
            return None;
        }
        let in_day = i64::from(h * 3600 + m * 60 + s) * 1000 + i64::from(ms);
        Some(Self(days_from_civil(year, month, day) * DAY_MS + in_day))
    }

    /// Parses RFC 3339 in UTC (`2026-06-24T01:02:03.456Z`, fraction of any length cut to ms), the shorter forms
    /// WARC 1.1 allows (`2026`, `2026-06`, `2026-06-24`), and CDX's 4 to 17 digits (`20260624010203[456]`).
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let body = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00")).unwrap_or(text).as_bytes();
        let at = if body.iter().all(u8::is_ascii_digit) { of_digits(body) } else { of_fields(body) };
        at.ok_or_else(|| TimeError { found: text.chars().take(40).collect() })
    }

    /// `(year, month, day, hour, minute, second, millisecond)`, clamped to the years 0000 to 9999.
    pub fn civil(self) -> (i64, u32, u32, u32, u32, u32, u32) {
        let clamped = self.0.clamp(MIN, MAX);
        let (days, in_day) = (clamped.div_euclid(DAY_MS), clamped.rem_euclid(DAY_MS));
        let (year, month, day) = civil_from_days(days);
        let part = |unit: i64, modulo: i64| u32::try_from(in_day / unit % modulo).unwrap_or(0);
        (year, month, day, part(3_600_000, 24), part(60_000, 60), part(1000, 60), part(1, 1000))
    }

    /// CDX's 14 digits, `YYYYMMDDhhmmss`.
    pub fn digits14(self) -> String {
        let (y, mo, d, h, mi, s, _) = self.civil();
        format!("{y:04}{mo:02}{d:02}{h:02}{mi:02}{s:02}")
    }

    /// 17 digits, `YYYYMMDDhhmmssmmm`.
    pub fn digits17(self) -> String {
        format!("{}{:03}", self.digits14(), self.civil().6)
    }

    /// RFC 3339 in whole seconds, `2026-06-24T01:02:03Z`.
    pub fn rfc3339_seconds(self) -> String {
        let (y, mo, d, h, mi, s, _) = self.civil();
        format!("{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}Z")
    }
}

/// RFC 3339 with milliseconds, `2026-06-24T01:02:03.456Z`.
impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (y, mo, d, h, mi, s, ms) = self.civil();
        write!(f, "{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}.{ms:03}Z")
    }
}

/// `2026-06-24T01:02:03.456` and its shorter forms.
fn of_fields(mut text: &[u8]) -> Option<UnixMillis> {
    let Civil { year, month, day, hour, minute, second, milli } = Civil::read(&mut text)?;
    let at = UnixMillis::from_civil(year, month, day, hour.unwrap_or(0), minute, second, milli);
    at.filter(|_| text.is_empty())
}

/// CDX's digits, in whole fields.
fn of_digits(text: &[u8]) -> Option<UnixMillis> {
    if !matches!(text.len(), 4 | 6 | 8 | 10 | 12 | 14 | 17) {
        return None;
    }
    let field = |from: usize, len: usize, absent: u32| match text.get(from..from + len) {
        Some(digits) => digits.iter().fold(0, |n, digit| n * 10 + u32::from(digit - b'0')),
        None => absent,
    };
    let year = i64::from(field(0, 4, 0));
    UnixMillis::from_civil(
        year,
        field(4, 2, 1),
        field(6, 2, 1),
        field(8, 2, 0),
        field(10, 2, 0),
        field(12, 2, 0),
        field(14, 3, 0),
    )
}

/// Days since 1970-01-01 of a proleptic Gregorian date, counted in 400-year eras that begin on March 1st.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, u32::try_from(month).unwrap_or(1), u32::try_from(day).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments() {
        let t = UnixMillis(1_782_262_923_456);
        assert_eq!(t.to_string(), "2026-06-24T01:02:03.456Z");
        assert_eq!(t.digits14(), "20260624010203");
        assert_eq!(t.digits17(), "20260624010203456");
        for text in ["2026-06-24T01:02:03.456Z", "20260624010203456", "2026-06-24T01:02:03.456789123Z"] {
            assert_eq!(UnixMillis::parse(text), Ok(t), "{text}");
        }
        assert_eq!(UnixMillis::parse("2000-02-29T00:00:00Z"), Ok(UnixMillis(951_782_400_000)));
        assert_eq!(UnixMillis::parse("1969-12-31T23:59:59.999Z"), Ok(UnixMillis(-1)));
        assert_eq!(UnixMillis::parse("2016"), UnixMillis::parse("2016-01-01T00:00:00Z"));
        assert_eq!(UnixMillis::parse("2016-12-31T23:59:60Z"), UnixMillis::parse("2017-01-01T00:00:00Z"));
        assert_eq!(UnixMillis::parse("2020-01-01T00:00:00.5Z"), Ok(UnixMillis(1_577_836_800_500)));
    }

    #[test]
    fn refused() {
        for text in [
            "",
            "2",
            "20",
            "2026-13-01",
            "2026-02-29",
            "20260230",
            "2026-06-24T24:00:00Z",
            "2026-06-24T01:02:03+02:00",
            "20260624 010203",
            "2026/06/24",
            "202606240102034567",
            "-026",
            "２０２６",
            "2026-06-24T01:02:03.Z",
        ] {
            assert!(UnixMillis::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_and_back(ms in MIN..=MAX) {
            let t = UnixMillis(ms);
            prop_assert_eq!(UnixMillis::parse(&t.to_string()), Ok(t));
            prop_assert_eq!(UnixMillis::parse(&t.digits17()), Ok(t));
        }

        #[test]
        fn never_panics(text in "\\PC{0,40}", ms: i64) {
            let _ = UnixMillis::parse(&text);
            let _ = UnixMillis(ms).to_string();
        }
    }
}
