//! Times, lengths of time, decimals and bytes, spelled as texts: exactly, whatever their range.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalYearMonthType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use std::fmt::Write;
use trawl_model::UnixMillis;

/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i128 = 146_097;
const DAY_SECONDS: i128 = 86_400;

/// A cell that is a moment; `None` if milliseconds do not reach it.
pub(super) fn moment(array: &dyn Array, row: usize) -> Option<UnixMillis> {
    let (count, digits) = since_1970(array, row)?;
    // Towards the past: a moment before 1970 is in the millisecond that it began.
    let millis = (count * 1000).div_euclid(10i128.pow(digits));
    i64::try_from(millis).ok().map(UnixMillis)
}

/// Units since 1970, and how many digits of a second they are.
fn since_1970(array: &dyn Array, row: usize) -> Option<(i128, u32)> {
    let (count, digits) = match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => (array.as_primitive::<TimestampSecondType>().value(row), 0),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            (array.as_primitive::<TimestampMillisecondType>().value(row), 3)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            (array.as_primitive::<TimestampMicrosecondType>().value(row), 6)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => (array.as_primitive::<TimestampNanosecondType>().value(row), 9),
        DataType::Date64 => (array.as_primitive::<Date64Type>().value(row), 3),
        DataType::Date32 => (i64::from(array.as_primitive::<Date32Type>().value(row)) * 86_400, 0),
        _ => return None,
    };
    Some((i128::from(count), digits))
}

/// Appends a cell as a JSON text; `null` for a type that Parquet has not.
pub(super) fn push(array: &dyn Array, row: usize, out: &mut String) {
    out.push('"');
    let start = out.len();
    // Writing to a text does not fail.
    let _ = push_bare(array, row, out);
    if out.len() == start {
        out.truncate(start - 1);
        out.push_str("null");
    } else {
        out.push('"');
    }
}

fn push_bare(array: &dyn Array, row: usize, out: &mut String) -> std::fmt::Result {
    match array.data_type() {
        DataType::Date32 | DataType::Date64 => match since_1970(array, row) {
            Some((count, digits)) => push_date(count.div_euclid(10i128.pow(digits)).div_euclid(DAY_SECONDS), out),
            None => Ok(()),
        },
        DataType::Timestamp(_, zone) => {
            let Some((count, digits)) = since_1970(array, row) else { return Ok(()) };
            let day = DAY_SECONDS * 10i128.pow(digits);
            push_date(count.div_euclid(day), out)?;
            out.push('T');
            push_clock(count.rem_euclid(day), digits, out)?;
            // Without a zone it is a clock on some wall.
            if zone.is_some() { out.write_char('Z') } else { Ok(()) }
        }
        DataType::Time32(TimeUnit::Second) => {
            push_clock(array.as_primitive::<Time32SecondType>().value(row).into(), 0, out)
        }
        DataType::Time32(_) => push_clock(array.as_primitive::<Time32MillisecondType>().value(row).into(), 3, out),
        DataType::Time64(TimeUnit::Microsecond) => {
            push_clock(array.as_primitive::<Time64MicrosecondType>().value(row).into(), 6, out)
        }
        DataType::Time64(_) => push_clock(array.as_primitive::<Time64NanosecondType>().value(row).into(), 9, out),
        DataType::Duration(unit) => {
            let (count, digits) = match unit {
                TimeUnit::Second => (array.as_primitive::<DurationSecondType>().value(row), 0),
                TimeUnit::Millisecond => (array.as_primitive::<DurationMillisecondType>().value(row), 3),
                TimeUnit::Microsecond => (array.as_primitive::<DurationMicrosecondType>().value(row), 6),
                TimeUnit::Nanosecond => (array.as_primitive::<DurationNanosecondType>().value(row), 9),
            };
            push_duration((0, 0), count.into(), digits, out)
        }
        DataType::Interval(IntervalUnit::YearMonth) => {
            push_duration((array.as_primitive::<IntervalYearMonthType>().value(row), 0), 0, 0, out)
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let value = array.as_primitive::<IntervalDayTimeType>().value(row);
            push_duration((0, value.days), value.milliseconds.into(), 3, out)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            push_duration((value.months, value.days), value.nanoseconds.into(), 9, out)
        }
        DataType::Decimal32(_, _) => out.write_str(&array.as_primitive::<Decimal32Type>().value_as_string(row)),
        DataType::Decimal64(_, _) => out.write_str(&array.as_primitive::<Decimal64Type>().value_as_string(row)),
        DataType::Decimal128(_, _) => out.write_str(&array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Decimal256(_, _) => out.write_str(&array.as_primitive::<Decimal256Type>().value_as_string(row)),
        _ => Ok(()),
    }
}

/// `2026-06-24`, of days since 1970; years that four digits do not hold have a sign.
fn push_date(days: i128, out: &mut String) -> std::fmt::Result {
    // 400 years later or earlier the date is the same.
    let eras = days.div_euclid(ERA_DAYS);
    let millis = days.rem_euclid(ERA_DAYS) * DAY_SECONDS * 1000;
    let (year, month, day, ..) = UnixMillis(i64::try_from(millis).unwrap_or_default()).civil();
    let year = i128::from(year) + eras * 400;
    if (0..=9999).contains(&year) {
        write!(out, "{year:04}")?
    } else {
        write!(out, "{year:+05}")?
    }
    write!(out, "-{month:02}-{day:02}")
}

/// `01:02:03.456`, of units since midnight of which `digits` are behind the point.
fn push_clock(count: i128, digits: u32, out: &mut String) -> std::fmt::Result {
    let unit = 10i128.pow(digits);
    let (sign, count) = if count < 0 { ("-", -count) } else { ("", count) };
    let (seconds, fraction) = (count / unit, count % unit);
    write!(out, "{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    push_fraction(fraction, digits, out)
}

/// `P1M2DT3.5S`.
fn push_duration((months, days): (i32, i32), count: i128, digits: u32, out: &mut String) -> std::fmt::Result {
    let unit = 10i128.pow(digits);
    out.push('P');
    if months != 0 {
        write!(out, "{months}M")?;
    }
    if days != 0 {
        write!(out, "{days}D")?;
    }
    if count == 0 && (months != 0 || days != 0) {
        return Ok(());
    }
    write!(out, "T{}{}", if count < 0 { "-" } else { "" }, (count / unit).abs())?;
    // Zeros at the end say nothing of a length.
    let (mut fraction, mut digits) = ((count % unit).abs(), digits);
    while digits > 0 && fraction % 10 == 0 {
        (fraction, digits) = (fraction / 10, digits - 1);
    }
    push_fraction(fraction, digits, out)?;
    out.write_char('S')
}

fn push_fraction(fraction: i128, digits: u32, out: &mut String) -> std::fmt::Result {
    if digits == 0 { Ok(()) } else { write!(out, ".{fraction:0width$}", width = digits as usize) }
}

/// Appends bytes as hexadecimal digits.
pub(super) fn push_hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}
