//! Times as people write them in URL lists.

use trawl_model::UnixMillis;

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
    UnixMillis::parse(text).ok().or_else(|| with_offset(text)).and_then(in_range)
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

/// RFC 3339 with an offset: `2026-06-24T03:02:03+02:00`.
fn with_offset(text: &str) -> Option<UnixMillis> {
    let at = text.len().checked_sub(6)?;
    let (time, offset) = text.split_at_checked(at)?;
    let sign = match offset.as_bytes() {
        [b'+', _, _, b':', _, _] => 1,
        [b'-', _, _, b':', _, _] => -1,
        _ => return None,
    };
    let number = |range: std::ops::Range<usize>| offset.get(range)?.parse::<u32>().ok();
    let (hours, minutes) = (number(1..3)?, number(4..6)?);
    if hours > 23 || minutes > 59 || !time.contains(['T', 't', ' ']) {
        return None;
    }
    let UnixMillis(local) = UnixMillis::parse(time).ok()?;
    Some(UnixMillis(local - sign * i64::from(hours * 60 + minutes) * 60_000))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn refused() {
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
