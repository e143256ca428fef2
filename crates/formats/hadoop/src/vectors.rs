//! Values that real Java code printed: `tests/fixtures/expected/vectors`.

use crate::{Decoder, Encode, EncodeStrings, Text, java, java_text, parts};
use data_encoding::HEXLOWER;
use serde_json::Value;
use std::path::Path;

fn vectors(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/expected/vectors").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn hex(value: &Value) -> Vec<u8> {
    HEXLOWER.decode(value.as_str().unwrap().as_bytes()).unwrap()
}

#[test]
fn vints() {
    for v in vectors("vint.jsonl") {
        let (value, bytes) = (v["value"].as_i64().unwrap(), hex(&v["hex"]));
        let mut out = Vec::new();
        out.put_vlong(value);
        assert_eq!(out, bytes, "{v}");
        let mut d = Decoder::new(&bytes);
        assert_eq!(d.vlong("value"), Ok(value));
        d.end().unwrap();
        assert_eq!(Decoder::new(&bytes).vint("value").is_ok(), i32::try_from(value).is_ok());
    }
}

#[test]
fn strings_and_their_hashes() {
    for v in vectors("text.jsonl") {
        let s = v["s"].as_str().unwrap();
        let (mut text, mut utf8) = (Vec::new(), Vec::new());
        text.put_text(s.as_bytes());
        utf8.put_utf8(s.as_bytes());
        assert_eq!(text, hex(&v["text_hex"]), "{s:?}");
        assert_eq!(utf8, hex(&v["utf8_hex"]), "{s:?}");
        assert_eq!(Decoder::new(&text).text("s").unwrap().to_str(), s);
        assert_eq!(Decoder::new(&utf8).utf8("s").unwrap().to_str(), s);
        assert_eq!(i64::from(java::hash_bytes(s.as_bytes())), v["text_hashCode"], "{s:?}");
        assert_eq!(i64::from(java::hash_string(s)), v["string_hashCode"], "{s:?}");
        assert_eq!(parts::part_of_text(s.as_bytes(), 2), v["part2"], "{s:?}");
        assert_eq!(parts::part_of_text(s.as_bytes(), 7), v["part7"], "{s:?}");
        let generator: Vec<u8> = text.into_iter().rev().collect();
        assert_eq!(i64::from(java::hash_bytes(&generator)), v["generator_hash"], "{s:?}");
    }
}

#[test]
fn floats_and_dates_as_java_prints_them() {
    for v in vectors("float.jsonl") {
        let bits = u32::from_str_radix(v["bits"].as_str().unwrap(), 16).unwrap();
        assert_eq!(java_text::float(f32::from_bits(bits)), v["java"], "{v}");
        assert_eq!(java_text::double(f64::from(f32::from_bits(bits))), v["as_double"], "{v}");
    }
    for v in vectors("date.jsonl") {
        assert_eq!(java_text::date_utc(v["millis"].as_i64().unwrap()), v["utc"], "{v}");
    }
    // As java.util.Date prints them; any eight bytes of a file can be a time.
    assert_eq!(java_text::date_utc(253_402_300_800_000), "Sat Jan 01 00:00:00 UTC 10000");
    assert_eq!(java_text::date_utc(i64::MAX), "Sun Aug 17 07:12:55 UTC 292278994");
    // Before 1582 Java has another calendar.
    assert!(java_text::date_utc(i64::MIN).contains(" 16:47:04 UTC "));
}

#[test]
fn order_of_hash_maps() {
    for v in vectors("hashorder.jsonl") {
        let inserted: Vec<&str> = v["insert"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
        let ordered = |hashes: Vec<i32>| -> Value {
            java::hash_map_order(&hashes, java::DEFAULT_CAPACITY)
                .into_iter()
                .map(|i| Value::from(inserted[i]))
                .collect()
        };
        let text = inserted.iter().map(|s| java::hash_bytes(s.as_bytes())).collect();
        assert_eq!(ordered(text), v["mapwritable_order"], "{v}");
        assert_eq!(ordered(inserted.iter().map(|s| java::hash_string(s)).collect()), v["metadata_order"], "{v}");
    }
}

#[test]
fn string_arrays() {
    for v in vectors("stringarray.jsonl") {
        let array: Option<Vec<Option<Text>>> =
            v["array"].as_array().map(|list| list.iter().map(|s| s.as_str().map(Text::from)).collect());
        if !v["plain_hex"].is_null() {
            let plain = hex(&v["plain_hex"]);
            let mut out = Vec::new();
            out.put_strings(array.as_deref());
            assert_eq!(out, plain, "{v}");
            assert_eq!(Decoder::new(&plain).strings("array").unwrap(), array);
        }
        let compressed = hex(&v["compressed_hex"]);
        let mut d = Decoder::new(&compressed);
        assert_eq!(d.compressed_strings("array").unwrap(), array, "{v}");
        d.end().unwrap();
    }
}

#[test]
fn doubles_that_need_more_than_64_bits() {
    // Printed by JDK 17.
    for (value, text) in [
        (f64::MAX, "1.7976931348623157E308"),
        (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
        (5e-324, "4.9E-324"),
        (1e23, "9.999999999999999E22"),
        // The JDK's sum overflows here, and it rounds down.
        (f64::from_bits(0x4539_931b_e154_4332), "3.0917847662113995E25"),
        (2e-3, "0.002"),
        (1.0 / 3.0, "0.3333333333333333"),
        (123_456_789.125, "1.23456789125E8"),
        (1e7, "1.0E7"),
        (9_999_999.5, "9999999.5"),
    ] {
        assert_eq!(java_text::double(value), text);
    }
}
