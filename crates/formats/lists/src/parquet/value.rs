//! One cell of an Arrow column as a named value of a record. Nothing is lost: what JSON has no word for is a text.

use super::text::{self, push_hex};
use crate::fields::{Value, push_json_text};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// Lists and structs inside each other beyond this are cut off with `null`.
const MAX_DEPTH: usize = 64;

/// A cell; `scratch` holds its text where the column has none.
pub(super) fn of<'a>(array: &'a dyn Array, row: usize, scratch: &'a mut String) -> Value<'a> {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Value::Text(array.as_string_view().value(row)),
        DataType::Dictionary(_, _) => dictionary(array, row, scratch),
        _ => match bytes(array, row) {
            // Text without its annotation, as older writers store it.
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Value::Text(text),
                Err(_) => {
                    push_hex(bytes, scratch);
                    Value::Text(scratch)
                }
            },
            None => other(array, row, scratch),
        },
    }
}

/// The bytes of a cell that has some.
pub(super) fn bytes(array: &dyn Array, row: usize) -> Option<&[u8]> {
    Some(match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::BinaryView => array.as_binary_view().value(row),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row),
        _ => return None,
    })
}

fn other<'a>(array: &dyn Array, row: usize, scratch: &'a mut String) -> Value<'a> {
    push_json(array, row, scratch, 0);
    match scratch.as_bytes().first() {
        None | Some(b'n') => Value::Null,
        // None of the texts made here has anything escaped.
        Some(b'"') => Value::Text(scratch.trim_matches('"')),
        Some(b'-' | b'0'..=b'9') => Value::Number(scratch),
        Some(_) => Value::Json(scratch),
    }
}

fn dictionary<'a>(array: &'a dyn Array, row: usize, scratch: &'a mut String) -> Value<'a> {
    match place(array, row) {
        Some((values, key)) => of(values, key, scratch),
        None => Value::Null,
    }
}

/// Where the value of a cell is that has only a key.
fn place(array: &dyn Array, row: usize) -> Option<(&ArrayRef, usize)> {
    let dictionary = array.as_any_dictionary_opt()?;
    let key = key(dictionary.keys(), row)?;
    (key < dictionary.values().len()).then(|| (dictionary.values(), key))
}

/// One key; the library gives only those of all rows, and that for each of them.
fn key(keys: &dyn Array, row: usize) -> Option<usize> {
    macro_rules! number {
        ($kind:ty) => {
            usize::try_from(keys.as_primitive::<$kind>().value(row)).ok()
        };
    }
    match keys.data_type() {
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        _ => None,
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
        DataType::Float16 => push_float(f64::from(array.as_primitive::<Float16Type>().value(row)), out),
        DataType::Float32 => push_float32(array.as_primitive::<Float32Type>().value(row), out),
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
        DataType::FixedSizeList(_, _) => push_list(&array.as_fixed_size_list().value(row), out, depth),
        DataType::Dictionary(_, _) => match place(array, row) {
            Some((values, key)) => push_json(values, key, out, depth),
            None => out.push_str("null"),
        },
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            let (Some(keys), Some(values)) = (entries.columns().first(), entries.columns().get(1)) else {
                out.push_str("null");
                return;
            };
            push_object((0..entries.len()).map(|i| (key_text(keys, i), values, i)), out, depth);
        }
        _ => match bytes(array, row) {
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => push_json_text(out, text),
                Err(_) => {
                    out.push('"');
                    push_hex(bytes, out);
                    out.push('"');
                }
            },
            None => text::push(array, row, out),
        },
    }
}

/// A key of a map: names are texts, whatever they were.
fn key_text(keys: &ArrayRef, i: usize) -> String {
    let mut scratch = String::new();
    match of(keys, i, &mut scratch) {
        Value::Text(text) | Value::Number(text) | Value::Json(text) => text.to_owned(),
        Value::Null => "null".to_owned(),
    }
}

fn push_float(value: f64, out: &mut String) {
    match serde_json::Number::from_f64(value) {
        Some(number) => out.push_str(&number.to_string()),
        None => push_no_number(value, out),
    }
}

/// With the digits a single one has, not those of its double.
fn push_float32(value: f32, out: &mut String) {
    if value.is_finite() { out.push_str(&format!("{value:?}")) } else { push_no_number(f64::from(value), out) }
}

/// JSON has no word for what is no number.
fn push_no_number(value: f64, out: &mut String) {
    out.push_str(match value {
        value if value.is_nan() => "\"NaN\"",
        value if value > 0.0 => "\"Infinity\"",
        _ => "\"-Infinity\"",
    });
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

fn push_object<'a>(
    members: impl Iterator<Item = (impl AsRef<str>, &'a ArrayRef, usize)>,
    out: &mut String,
    depth: usize,
) {
    out.push('{');
    for (i, (name, array, row)) in members.enumerate() {
        if i > 0 {
            out.push(',');
        }
        push_json_text(out, name.as_ref());
        out.push(':');
        push_json(array, row, out, depth + 1);
    }
    out.push('}');
}
