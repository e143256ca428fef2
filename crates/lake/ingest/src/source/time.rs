//! Times as people write them in URL lists.

use trawl_model::UnixMillis;

/// Numbers below this are seconds (until the year 5138), the others milliseconds.
const FIRST_MILLIS: f64 = 1e11;

/// Reads a time written as text: RFC 3339 with or without an offset, CDX's 14 or 17 digits, Unix seconds (10 digits, with
/// or without a fraction) or milliseconds (13 digits).
pub(crate) fn from_text(text: &str) -> Option<UnixMillis> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    // Ten digits could also be a date and an hour; lists that write hours so are not known, Unix seconds are common.
    if digits == text.len() && matches!(digits, 9 | 10 | 12 | 13)
        || digits <= 10 && text.as_bytes().get(digits) == Some(&b'.')
    {
        return from_number(text.parse().ok()?);
    }
    UnixMillis::parse(text).ok().or_else(|| with_offset(text))
}

/// Reads Unix seconds or milliseconds.
pub(crate) fn from_number(number: f64) -> Option<UnixMillis> {
    let millis = if number.abs() < FIRST_MILLIS { number * 1000.0 } else { number };
    // Years 0000 to 9999, as texts have them.
    (millis.abs() < 2.6e14).then(|| UnixMillis(millis.round() as i64))
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
        assert_eq!(from_number(1_782_262_923.0), t);
        assert_eq!(from_number(1_782_262_923_000.0), t);
        assert_eq!(from_text("1782262923.4564"), Some(UnixMillis(1_782_262_923_456)));
        assert_eq!(from_text("2026"), UnixMillis::parse("2026-01-01T00:00:00Z").ok());
    }

    #[test]
    fn refused() {
        for text in
            ["", "x", "yesterday", "2026-06-24T01:02:03+25:00", "1782262923x", "é", "2026-06-24+02:00", "12:00+1:"]
        {
            assert_eq!(from_text(text), None, "{text}");
        }
        assert_eq!(from_number(1e300), None);
        assert_eq!(from_number(f64::NAN), None);
    }
}
