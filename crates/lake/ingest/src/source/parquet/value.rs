//! One cell of an Arrow column as a named value of a record.

use super::super::fields::{Value, push_json_text};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use trawl_model::UnixMillis;

/// Lists and structs inside each other beyond this are cut off with `null`.
const MAX_DEPTH: usize = 16;

/// A cell that is a time.
pub(super) fn moment(array: &dyn Array, row: usize) -> Option<UnixMillis> {
    let (unit, per_second) = match array.data_type() {
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => (array.as_primitive::<TimestampSecondType>().value(row), 1),
            TimeUnit::Millisecond => (array.as_primitive::<TimestampMillisecondType>().value(row), 1_000),
            TimeUnit::Microsecond => (array.as_primitive::<TimestampMicrosecondType>().value(row), 1_000_000),
            TimeUnit::Nanosecond => (array.as_primitive::<TimestampNanosecondType>().value(row), 1_000_000_000),
        },
        DataType::Date32 => (i64::from(array.as_primitive::<Date32Type>().value(row)).checked_mul(86_400)?, 1),
        _ => return None,
    };
    let millis = i128::from(unit) * 1000 / per_second;
    i64::try_from(millis).ok().map(UnixMillis)
}

/// A cell; `scratch` holds its text where the column has none.
pub(super) fn of<'a>(array: &'a dyn Array, row: usize, scratch: &'a mut String) -> Value<'a> {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Value::Text(array.as_string_view().value(row)),
        // Text without its annotation, as older writers store it.
        DataType::Binary => match std::str::from_utf8(array.as_binary::<i32>().value(row)) {
            Ok(text) => Value::Text(text),
            Err(_) => Value::Null,
        },
        DataType::Dictionary(_, _) => dictionary(array, row, scratch),
        _ => {
            push_json(array, row, scratch, 0);
            match scratch.as_bytes().first() {
                None | Some(b'n') => Value::Null,
                Some(b'"') => Value::Text(scratch.trim_matches('"')),
                Some(b'-' | b'0'..=b'9') => Value::Number(scratch),
                Some(_) => Value::Json(scratch),
            }
        }
    }
}

fn dictionary<'a>(array: &'a dyn Array, row: usize, scratch: &'a mut String) -> Value<'a> {
    let Some(dictionary) = array.as_any_dictionary_opt() else { return Value::Null };
    let key = dictionary.normalized_keys().get(row).copied();
    match key {
        Some(key) if key < dictionary.values().len() => of(dictionary.values(), key, scratch),
        _ => Value::Null,
    }
}

fn push_json(array: &dyn Array, row: usize, out: &mut String, depth: usize) {
    if array.is_null(row) || depth > MAX_DEPTH {
        out.push_str("null");
        return;
    }
    macro_rules! number {
        ($kind:ty) => {
            out.push_str(&array.as_primitive::<$kind>().value(row).to_string())
        };
    }
    match array.data_type() {
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => push_float(f64::from(array.as_primitive::<Float32Type>().value(row)), out),
        DataType::Float64 => push_float(array.as_primitive::<Float64Type>().value(row), out),
        DataType::Utf8 => push_json_text(out, array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => push_json_text(out, array.as_string::<i64>().value(row)),
        DataType::Utf8View => push_json_text(out, array.as_string_view().value(row)),
        DataType::List(_) => push_list(&array.as_list::<i32>().value(row), out, depth),
        DataType::LargeList(_) => push_list(&array.as_list::<i64>().value(row), out, depth),
        DataType::Struct(fields) => {
            let members = fields.iter().map(|f| f.name().as_str()).zip(array.as_struct().columns());
            push_object(members.map(|(name, array)| (name, array, row)), out, depth);
        }
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            let (Some(keys), Some(values)) = (entries.columns().first(), entries.columns().get(1)) else {
                out.push_str("null");
                return;
            };
            let keys = keys.as_string_opt::<i32>();
            let members = (0..entries.len()).filter_map(|i| Some((keys?.value(i), values, i)));
            push_object(members, out, depth);
        }
        _ => match moment(array, row) {
            Some(time) => push_json_text(out, &time.to_string()),
            None => out.push_str("null"),
        },
    }
}

fn push_float(value: f64, out: &mut String) {
    // JSON has no word for what is no number.
    match serde_json::Number::from_f64(value) {
        Some(number) => out.push_str(&number.to_string()),
        None => out.push_str("null"),
    }
}

fn push_list(values: &ArrayRef, out: &mut String, depth: usize) {
    out.push('[');
    for i in 0..values.len() {
        if i > 0 {
            out.push(',');
        }
        push_json(values, i, out, depth + 1);
    }
    out.push(']');
}

fn push_object<'a>(members: impl Iterator<Item = (&'a str, &'a ArrayRef, usize)>, out: &mut String, depth: usize) {
    out.push('{');
    for (i, (name, array, row)) in members.enumerate() {
        if i > 0 {
            out.push(',');
        }
        push_json_text(out, name);
        out.push(':');
        push_json(array, row, out, depth + 1);
    }
    out.push('}');
}
