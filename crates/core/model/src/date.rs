//! Dates as others write them: HTTP's three formats, mail and feeds, W3C date-times, URL lists. (The one format that this
//! project writes itself is [`UnixMillis`]'s own.)

use crate::UnixMillis;

const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

/// An HTTP date in any of the formats of RFC 9110, section 5.6.7, or a mail date with a named or numeric zone.
///
/// A year of two digits (RFC 850) that would lie more than 50 years after `now` is one of the past century.
///
/// ```
/// # use trawl_model::date::http_date;
/// # use trawl_model::UnixMillis;
/// let want = Some(UnixMillis(784_111_777_000));
/// let now = UnixMillis(1_700_000_000_000);
/// assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT", now), want);
/// assert_eq!(http_date("Sunday, 06-Nov-94 08:49:37 GMT", now), want);
/// assert_eq!(http_date("Sun Nov  6 08:49:37 1994", now), want);
/// ```
pub fn http_date(text: &str, now: UnixMillis) -> Option<UnixMillis> {
    // The month is a name; the other words may come in any of the orders in use.
    let mut month = None;
    let mut clock = None;
    let mut offset = None;
    let mut numbers = [None; 2]; // day and year, in the order found
    let mut month_first = false;
    let mut words = 0;
    let separator = |c: char| c.is_ascii_whitespace() || c == ',';
    // `06-Nov-94` is three words, `-0500` one.
    for word in text.split(separator).flat_map(dashes).filter(|word| !word.is_empty()) {
        words += 1;
        if words > 9 {
            return None;
        }
        if word.contains(':') {
            clock = Some(time_of_day(word)?);
        } else if clock.is_some() && word.starts_with(['+', '-']) {
            offset = Some(zone(word.as_bytes())?);
        } else if word.bytes().all(|b| b.is_ascii_digit()) {
            *numbers.iter_mut().find(|slot| slot.is_none())? = Some(word);
        } else if let Some(number) = month_number(word).filter(|_| month.is_none()) {
            month = Some(number);
            month_first = numbers == [None; 2];
        } else if clock.is_some() && offset.is_none() {
            offset = Some(named_zone(word));
        } else if words > 1 {
            return None; // only the first word may say nothing: the day of the week
        }
    }
    let [Some(day), Some(year)] = numbers else { return None };
    let year = full_year(year, now)?;
    let (hour, minute, second) = clock?;
    let at = UnixMillis::from_civil(year, month?, day.parse().ok()?, hour, minute, second, 0)?;
    // Only the oldest format, `Sun Nov  6 08:49:37 1994`, may go without a zone.
    let offset = if month_first { offset.or(Some(0)) } else { offset };
    Some(UnixMillis(at.0 - offset?))
}

/// A W3C date-time (`2026`, `2026-06`, `2026-06-24`, `2026-06-24T01:02[:03[.4]]` with `Z` or an offset), or one of
/// its common variants: a blank for the `T`, no zone at all, an offset without colon.
pub fn w3c_date(text: &str) -> Option<UnixMillis> {
    let mut rest = text.trim().as_bytes();
    let Civil { year, month, day, hour, minute, second, milli } = Civil::read(&mut rest)?;
    // A zone belongs to a time of day; without one, nothing may follow.
    let offset = if hour.is_some() { zone(rest.trim_ascii())? } else { rest.is_empty().then_some(0)? };
    // The standard allows hour 24 for the end of a day; no other clock does.
    let day_end = hour == Some(24) && minute == 0 && second == 0;
    let hour = hour.filter(|_| !day_end).unwrap_or(0);
    let at = UnixMillis::from_civil(year, month, day, hour, minute, second, milli)?;
    Some(UnixMillis(at.0 - offset + i64::from(day_end) * 24 * HOUR_MS))
}

/// The fields of a date that is written from the year down; those that are not written are the first of their kind.
pub(crate) struct Civil {
    pub year: i64,
    pub month: u32,
    pub day: u32,
    /// Absent without a time of day.
    pub hour: Option<u32>,
    pub minute: u32,
    pub second: u32,
    pub milli: u32,
}

impl Civil {
    /// Reads `2026[-06[-24[T01:02[:03[.4]]]]]` off the front of `rest`. Nothing is checked but the digits.
    pub(crate) fn read(rest: &mut &[u8]) -> Option<Self> {
        let year = i64::from(digits(rest, 4)?);
        let mut civil = Civil { year, month: 1, day: 1, hour: None, minute: 0, second: 0, milli: 0 };
        if take(rest, b"-") {
            civil.month = digits(rest, 2)?;
            if take(rest, b"-") {
                civil.day = digits(rest, 2)?;
                if take(rest, b"Tt ") {
                    civil.hour = Some(digits(rest, 2)?);
                    take(rest, b":").then_some(())?;
                    civil.minute = digits(rest, 2)?;
                    if take(rest, b":") {
                        civil.second = digits(rest, 2)?;
                        if take(rest, b".,") {
                            civil.milli = fraction(rest)?;
                        }
                    }
                }
            }
        }
        Some(civil)
    }
}

/// Whatever [`w3c_date`] or [`http_date`] takes.
pub fn any_date(text: &str, now: UnixMillis) -> Option<UnixMillis> {
    w3c_date(text).or_else(|| http_date(text, now))
}

/// Numbers below this are seconds (until the year 5138), the others milliseconds.
const FIRST_MILLIS: f64 = 1e11;

/// Reads a time written as text: RFC 3339 with or without an offset, CDX's 4 to 17 digits, Unix seconds (9 or 10 digits,
/// with or without a fraction) or milliseconds (12 or 13 digits that are no CDX time); before 1970, with a minus, of any
/// number of digits. Years 0000 to 9999.
pub fn from_text(text: &str) -> Option<UnixMillis> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    // Ten digits could also be a date and an hour; lists that write hours so are not known, Unix seconds are common.
    if text.starts_with('-')
        || digits == text.len() && matches!(digits, 9 | 10 | 12 | 13)
        || digits <= 10 && text.as_bytes().get(digits) == Some(&b'.')
    {
        return from_number(text);
    }
    // So many digits of another century are microseconds since some moment, as browsers keep them.
    if digits == text.len() && digits == 17 && !text.starts_with("19") && !text.starts_with("20") {
        return None;
    }
    UnixMillis::parse(text).ok().or_else(|| w3c_date(text)).and_then(in_range)
}

/// As [`from_text`], with an error that says what a time looks like.
pub fn parse(text: &str) -> Result<UnixMillis, String> {
    from_text(text).ok_or_else(|| {
        let found: String = text.chars().take(40).collect();
        let forms = "2026-06-24[T01:02:03Z], 4 to 17 digits (20260624010203), or Unix seconds or milliseconds";
        format!("expected a time as {forms}, found {found:?}")
    })
}

/// Reads a number as written: CDX digits of this or the last century, Unix seconds or milliseconds.
pub fn from_number(text: &str) -> Option<UnixMillis> {
    // Columns of floating numbers write whole ones so.
    let whole = text.strip_suffix(".0").unwrap_or(text);
    if matches!(whole.len(), 8 | 12 | 14 | 17) && (whole.starts_with("19") || whole.starts_with("20")) {
        let cdx = UnixMillis::parse(whole).ok();
        // In milliseconds these would be the years 2572 and later: what is no date is no time at all.
        if cdx.is_some() || whole.len() == 14 && whole.bytes().all(|b| b.is_ascii_digit()) {
            return cdx;
        }
    }
    let number: f64 = text.parse().ok()?;
    let millis = if number.abs() < FIRST_MILLIS { number * 1000.0 } else { number };
    // Far above every year that is written, and far below where the digits of a float end.
    if millis.abs() < 1e15 { in_range(UnixMillis(millis.round() as i64)) } else { None }
}

/// A moment of the years 0000 to 9999: others would be shown as another than they are.
pub fn in_range(time: UnixMillis) -> Option<UnixMillis> {
    let (year, month, day, hour, minute, second, ms) = time.civil();
    (UnixMillis::from_civil(year, month, day, hour, minute, second, ms) == Some(time)).then_some(time)
}

/// The parts of a `06-Nov-94`; any other word as it is.
fn dashes(word: &str) -> impl Iterator<Item = &str> {
    let split = word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('-');
    let mut rest = Some(word);
    std::iter::from_fn(move || {
        let text = rest?;
        match text.split_once('-').filter(|_| split) {
            Some((head, tail)) => {
                rest = Some(tail);
                Some(head)
            }
            None => rest.take(),
        }
    })
}

fn full_year(digits: &str, now: UnixMillis) -> Option<i64> {
    let year: i64 = digits.parse().ok()?;
    match digits.len() {
        2 => {
            let this_year = now.civil().0;
            let guess = this_year - this_year.rem_euclid(100) + year;
            Some(if guess > this_year + 50 { guess - 100 } else { guess })
        }
        4 => Some(year),
        _ => None,
    }
}

fn time_of_day(word: &str) -> Option<(u32, u32, u32)> {
    let mut parts = word.split(':').map(|part| part.parse::<u32>().ok().filter(|_| part.len() <= 2));
    let hour = parts.next()??;
    let minute = parts.next()??;
    let second = parts.next().unwrap_or(Some(0))?;
    parts.next().is_none().then_some((hour, minute, second))
}

fn month_number(word: &str) -> Option<u32> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let found = MONTHS.iter().position(|month| {
        word.len() >= 3 && month.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
    });
    found.and_then(|at| u32::try_from(at + 1).ok())
}

/// The offset of a zone's name; unknown names mean UTC, as RFC 2822 has it.
fn named_zone(word: &str) -> i64 {
    let hours = match word {
        "EST" | "CDT" => -5,
        "EDT" => -4,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        _ => 0,
    };
    hours * HOUR_MS
}

/// `Z`, `UTC`, `GMT`, `+hh:mm`, `+hhmm`, `+hh`, or nothing.
fn zone(text: &[u8]) -> Option<i64> {
    let (sign, mut rest) = match text.split_first() {
        None => return Some(0),
        Some((b'Z' | b'z', [])) => return Some(0),
        // BigQuery writes it so.
        Some(_) if text == b"UTC" || text == b"GMT" => return Some(0),
        Some((b'+', rest)) => (1, rest),
        Some((b'-', rest)) => (-1, rest),
        _ => return None,
    };
    let hours = digits(&mut rest, 2)?;
    take(&mut rest, b":");
    let minutes = if rest.is_empty() { 0 } else { digits(&mut rest, 2)? };
    if hours > 23 || minutes > 59 || !rest.is_empty() {
        return None;
    }
    Some(sign * (i64::from(hours) * HOUR_MS + i64::from(minutes) * MINUTE_MS))
}

fn digits(rest: &mut &[u8], count: usize) -> Option<u32> {
    let (head, tail) = rest.split_at_checked(count)?;
    let number =
        std::str::from_utf8(head).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()?;
    *rest = tail;
    Some(number)
}

fn fraction(rest: &mut &[u8]) -> Option<u32> {
    let end = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, tail) = rest.split_at_checked(end).filter(|(digits, _)| !digits.is_empty())?;
    *rest = tail;
    Some(digits.iter().chain(b"00").take(3).fold(0, |sum, b| sum * 10 + u32::from(b - b'0')))
}

fn take(rest: &mut &[u8], any_of: &[u8]) -> bool {
    match rest.split_first() {
        Some((byte, tail)) if any_of.contains(byte) => {
            *rest = tail;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

    fn show(date: Option<UnixMillis>) -> String {
        date.map(|date| date.to_string()).unwrap_or_default()
    }

    #[test]
    fn http_dates() {
        for (text, want) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.000Z"),
            ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37.000Z"),
            ("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37.000Z"),
            ("Saturday, 01-Jan-72 00:00:00 GMT", "2072-01-01T00:00:00.000Z"),
            ("Saturday, 01-Jan-74 00:00:00 GMT", "1974-01-01T00:00:00.000Z"),
            ("Thu, 01 Jan 1970 00:00:00 +0100", "1969-12-31T23:00:00.000Z"),
            ("25 Jun 2010 15:00:00 PST", "2010-06-25T23:00:00.000Z"),
            ("Wed, 02 Oct 02 13:00:00 EDT", "2002-10-02T17:00:00.000Z"),
            ("Tuesday, 3 September 2024 9:05 UT", "2024-09-03T09:05:00.000Z"),
            ("Sun, 31 Feb 2024 00:00:00 GMT", ""),
            ("Sun, 06 Nov 1994", ""),
            ("Sun, 06 Nov 1994 08:49:37", ""),
            ("Nov 1994 08:49:37", ""),
            ("Sun, 06 Nov 1994 08:49:37 GMT (winter)", ""),
            ("on Sun 06 Nov 1994 08:49:37 GMT", ""),
            ("", ""),
            ("120", ""),
            ("a b c d e f g h i j k l", ""),
        ] {
            assert_eq!(show(http_date(text, NOW)), want, "{text}");
        }
    }

    #[test]
    fn w3c_dates() {
        for (text, want) in [
            ("2026", "2026-01-01T00:00:00.000Z"),
            ("2026-06", "2026-06-01T00:00:00.000Z"),
            (" 2026-06-24 ", "2026-06-24T00:00:00.000Z"),
            ("2026-06-24T01:02Z", "2026-06-24T01:02:00.000Z"),
            ("2026-06-24T01:02:03+02:00", "2026-06-23T23:02:03.000Z"),
            ("2026-06-24 01:02:03.4567-0130", "2026-06-24T02:32:03.456Z"),
            ("2026-06-24T01:02:03.4 +02", "2026-06-23T23:02:03.400Z"),
            ("2026-06-24 01:02:03.4 UTC", "2026-06-24T01:02:03.400Z"),
            ("2026-06-24T24:00:00Z", "2026-06-25T00:00:00.000Z"),
            ("2026-06-24T24:00:01Z", ""),
            ("2026-13", ""),
            ("2026-06-31", ""),
            ("2026-06-24T01Z", ""),
            ("2026-06-24T01:02:03+25:00", ""),
            ("20260624", ""),
            ("2026-06-24x", ""),
        ] {
            assert_eq!(show(w3c_date(text)), want, "{text}");
        }
    }

    #[test]
    fn many_spellings_of_one_moment() {
        let t = Some(UnixMillis(1_782_262_923_000));
        for text in [
            "2026-06-24T01:02:03Z",
            "2026-06-24 01:02:03",
            "2026-06-24T03:02:03+02:00",
            "2026-06-23T19:32:03.000-05:30",
            "20260624010203",
            "20260624010203000",
            "1782262923",
            "1782262923.0",
            "1782262923000",
            " 1782262923 ",
        ] {
            assert_eq!(from_text(text), t, "{text}");
        }
        for number in [
            "1782262923",
            "1782262923000",
            "1782262923.0",
            "1.782262923e12",
            "20260624010203",
            "20260624010203000",
            "20260624010203.0",
        ] {
            assert_eq!(from_number(number), t, "{number}");
        }
        let minute = UnixMillis::parse("2024-01-02T03:04:00Z").ok();
        assert_eq!((from_text("202401020304"), from_number("202401020304")), (minute, minute));
        assert_eq!(from_number("20240102"), UnixMillis::parse("2024-01-02").ok());
        // Milliseconds of 1976 that are no date.
        assert_eq!(from_text("202499020304"), Some(UnixMillis(202_499_020_304)));
        assert_eq!(from_text("1782262923.4564"), Some(UnixMillis(1_782_262_923_456)));
        for (text, millis) in
            [("-86400", -86_400_000), ("-1", -1000), ("-0.5", -500), ("-1782262923000", -1_782_262_923_000)]
        {
            assert_eq!(
                (from_text(text), from_number(text)),
                (Some(UnixMillis(millis)), Some(UnixMillis(millis))),
                "{text}"
            );
        }
        assert_eq!(from_text("2026"), UnixMillis::parse("2026-01-01T00:00:00Z").ok());
    }

    #[test]
    fn refused_in_lists() {
        for text in [
            "",
            "x",
            "yesterday",
            "2026-06-24T01:02:03+25:00",
            "1782262923x",
            "é",
            "2026-06-24+02:00",
            "12:00+1:",
            "-",
            "-x",
            "-inf",
            "-1e14",
            "-2026-06-24",
            "17121123040512345",
        ] {
            assert_eq!(from_text(text), None, "{text}");
        }
        for number in [
            "1e300",
            "NaN",
            "-1e14",
            "253402300800000",
            "-62167219200001",
            "20241302030405",
            "20240102030405123456",
            "x",
            "",
        ] {
            assert_eq!(from_number(number), None, "{number}");
        }
        assert_eq!(from_number("253402300799999"), Some(UnixMillis(253_402_300_799_999)));
        assert_eq!(from_number("-62167219200000"), Some(UnixMillis(-62_167_219_200_000)));
        assert_eq!(from_text("9999-12-31T23:59:59-01:00"), None);
        assert_eq!(from_text("9999-12-31T23:59:60Z"), None);
    }
}
