//! The order of keys, by their class.

use crate::decode::{Decoded, Decoder};
use crate::{ValueError, class};
use std::cmp::Ordering;

/// Writes bytes whose plain order is the order of the keys.
pub type SortKey = fn(key: &[u8], out: &mut Vec<u8>) -> Decoded<()>;

/// How serialised keys of one class compare.
#[derive(Debug, Clone, Copy)]
pub enum Order {
    /// By the bytes of a part of the key.
    Content(fn(&[u8]) -> Decoded<&[u8]>),
    /// By bytes that are made from the key.
    Made(SortKey),
}

impl Order {
    /// The order of a class of Hadoop's; `None` where only its Java code knows.
    pub fn of_class(class: &str) -> Option<Self> {
        Some(match class {
            class::TEXT => Order::Content(|key| whole(key, |d| d.text_bytes("a Text"))),
            class::UTF8 => Order::Content(|key| whole(key, |d| d.utf8_bytes("a UTF8"))),
            class::BYTES => Order::Content(|key| whole(key, |d| d.bytes("a BytesWritable"))),
            class::MD5 => Order::Content(|key| whole(key, |d| d.take(16, "an MD5Hash"))),
            class::NULL => Order::Content(|key| whole(key, |d| d.take(0, "nothing"))),
            class::LONG => Order::Made(|key, out| signed(whole(key, |d| d.i64("a LongWritable"))?, out)),
            class::INT => Order::Made(|key, out| signed(whole(key, |d| d.i32("an IntWritable"))?.into(), out)),
            class::SHORT => Order::Made(|key, out| signed(whole(key, |d| d.i16("a ShortWritable"))?.into(), out)),
            class::BYTE | class::BOOLEAN => Order::Made(|key, out| signed(whole(key, |d| d.i8("a byte"))?.into(), out)),
            class::VINT | class::VLONG => Order::Made(|key, out| signed(whole(key, |d| d.vlong("a VLong"))?, out)),
            class::FLOAT => Order::Made(|key, out| float(whole(key, |d| d.f32("a FloatWritable"))?.into(), out)),
            class::DOUBLE => Order::Made(|key, out| float(whole(key, |d| d.f64("a DoubleWritable"))?, out)),
            _ => return None,
        })
    }

    /// Appends bytes to `out` whose plain order is that of the keys.
    pub fn sort_key(self, key: &[u8], out: &mut Vec<u8>) -> Decoded<()> {
        match self {
            Order::Content(content) => out.extend_from_slice(content(key)?),
            Order::Made(make) => make(key, out)?,
        }
        Ok(())
    }

    /// Compares two serialised keys.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Result<Ordering, ValueError> {
        match self {
            Order::Content(content) => Ok(content(a)?.cmp(content(b)?)),
            Order::Made(make) => {
                let (mut x, mut y) = (Vec::new(), Vec::new());
                make(a, &mut x)?;
                make(b, &mut y)?;
                Ok(x.cmp(&y))
            }
        }
    }
}

fn whole<'a, T>(key: &'a [u8], read: impl FnOnce(&mut Decoder<'a>) -> Decoded<T>) -> Decoded<T> {
    let mut d = Decoder::new(key);
    let value = read(&mut d)?;
    d.end()?;
    Ok(value)
}

fn signed(v: i64, out: &mut Vec<u8>) -> Decoded<()> {
    out.extend((v.cast_unsigned() ^ 1 << 63).to_be_bytes());
    Ok(())
}

/// `Double.compare`: -0.0 below 0.0, NaN above everything.
fn float(v: f64, out: &mut Vec<u8>) -> Decoded<()> {
    let bits = if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() }.cast_signed();
    signed(if bits < 0 { bits ^ i64::MAX } else { bits }, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encode;

    #[test]
    fn numbers_compare_as_numbers() {
        let long = Order::of_class(class::LONG).unwrap();
        for pair in [i64::MIN, -5, -1, 0, 1, 300, i64::MAX].windows(2) {
            let bytes = |v: i64| v.to_be_bytes();
            assert_eq!(long.compare(&bytes(pair[0]), &bytes(pair[1])), Ok(Ordering::Less));
        }
        let double = Order::of_class(class::DOUBLE).unwrap();
        for pair in [f64::NEG_INFINITY, -2.0, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN].windows(2) {
            let bytes = |v: f64| v.to_be_bytes();
            assert_eq!(double.compare(&bytes(pair[0]), &bytes(pair[1])), Ok(Ordering::Less), "{pair:?}");
        }
    }

    #[test]
    fn strings_compare_by_content_not_by_length() {
        let text = Order::of_class(class::TEXT).unwrap();
        let key = |s: &str| {
            let mut out = Vec::new();
            out.put_text(s.as_bytes());
            out
        };
        assert_eq!(text.compare(&key("b"), &key("aa")), Ok(Ordering::Greater));
        assert_eq!(text.compare(&key("a"), &key("aa")), Ok(Ordering::Less));
        assert!(text.compare(b"\x05ab", &key("a")).is_err());
        assert!(Order::of_class("org.example.Key").is_none());
    }
}
