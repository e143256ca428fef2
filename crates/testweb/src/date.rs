//! Dates as HTTP, sitemaps and feeds write them.

/// Year, month (1–12) and day of a day counted from 1970-01-01.
pub(crate) fn civil(days: u64) -> (u64, u32, u32) {
    // Shift to years that begin in March, so that the leap day is the last of its year; 400 years have 146,097 days.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year_of_era, month + 3) } else { (year_of_era + 1, month - 9) };
    (era * 400 + year, u32::try_from(month).unwrap_or(1), u32::try_from(day).unwrap_or(1))
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `Sun, 06 Nov 1994 08:49:37 GMT`
pub(crate) fn http(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / 86_400);
    let weekday = DAYS.get(usize::try_from(unix_s / 86_400 % 7).unwrap_or(0)).unwrap_or(&"");
    let month = MONTHS.get(usize::try_from(month - 1).unwrap_or(0)).unwrap_or(&"");
    let (h, m, s) = clock(unix_s);
    format!("{weekday}, {day:02} {month} {year} {h:02}:{m:02}:{s:02} GMT")
}

/// `1994-11-06T08:49:37Z`
pub(crate) fn rfc3339(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / 86_400);
    let (h, m, s) = clock(unix_s);
    format!("{year}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}Z")
}

/// The Unix time of a date as [`http`] writes it; other forms are not read.
pub(crate) fn parse_http(text: &str) -> Option<u64> {
    let mut words = text.trim().split([' ', ':']);
    let mut next = || words.next();
    let (_, day, month, year) = (next()?, next()?.parse::<u64>().ok()?, next()?, next()?.parse::<u64>().ok()?);
    let (h, m, s) = (next()?.parse::<u64>().ok()?, next()?.parse::<u64>().ok()?, next()?.parse::<u64>().ok()?);
    let month = u64::try_from(MONTHS.iter().position(|&name| name == month)?).ok()? + 1;
    if !(1970..=9999).contains(&year) || !(1..=31).contains(&day) || h > 23 || m > 59 || s > 60 || next()? != "GMT" {
        return None;
    }
    // The inverse of `civil`: years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_era = year % 400 * 365 + year % 400 / 4 - year % 400 / 100 + (153 * month + 2) / 5 + day - 1;
    Some((year / 400 * 146_097 + of_era - 719_468) * 86_400 + h * 3600 + m * 60 + s)
}

fn clock(unix_s: u64) -> (u64, u64, u64) {
    (unix_s / 3600 % 24, unix_s / 60 % 60, unix_s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        assert_eq!(http(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(http(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(rfc3339(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(4_107_542_400), "2100-03-01T00:00:00Z");
        for time in (0..5_000_000_000).step_by(40_000_003) {
            assert_eq!(parse_http(&http(time)), Some(time));
        }
        for bad in ["", "Sun, 06 Nov 1994", "Sun, 06 Nov 1994 08:49:37 PST", "Sun, 99 Nov 1994 08:49:37 GMT", "now"] {
            assert_eq!(parse_http(bad), None, "{bad}");
        }
    }
}
