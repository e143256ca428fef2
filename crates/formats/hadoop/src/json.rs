//! Writables as JSON, in two degrees of detail.
//!
//! *Full* has every byte. *Digest* has a hash in place of long values, so that two files can be compared by the text of
//! their records: strings over 2048 bytes are `{"utf8_len","sha256","head"}`, byte strings over 256 are
//! `{"len","sha256"}`. In both, a string that is not UTF-8 is `{"hex"}`, and a float has its bits beside its text.

use crate::class::{self, ClassSet};
use crate::decode::{Decoded, Decoder};
use crate::java_text;
use crate::map_writable::MapWritable;
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use trawl_io::Hasher;

/// How much of long values is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Everything.
    Full,
    /// A hash in place of long strings and bytes.
    Digest,
}

/// Strings up to this many bytes are shown whole in a digest.
const TEXT_LIMIT: usize = 2048;
/// Characters of a longer one that are shown.
const HEAD_CHARS: usize = 40;
/// Byte strings up to this length are shown whole in a digest.
const BYTES_LIMIT: usize = 256;

/// Hex of the SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> String {
    let mut hasher = Hasher::sha256();
    hasher.update(bytes);
    hasher.finish().hex()
}

/// A string.
pub fn text(bytes: &[u8], detail: Detail) -> Value {
    let Ok(text) = std::str::from_utf8(bytes) else { return json!({ "hex": HEXLOWER.encode(bytes) }) };
    if detail == Detail::Full || bytes.len() <= TEXT_LIMIT {
        return text.into();
    }
    let head: String = text.chars().take(HEAD_CHARS).collect();
    json!({ "utf8_len": bytes.len(), "sha256": sha256(bytes), "head": head })
}

/// Bytes.
pub fn bytes(bytes: &[u8], detail: Detail) -> Value {
    if detail == Detail::Full || bytes.len() <= BYTES_LIMIT {
        return json!({ "hex": HEXLOWER.encode(bytes) });
    }
    json!({ "len": bytes.len(), "sha256": sha256(bytes) })
}

/// A single, with its bits: texts of equal numbers differ between versions of Java.
pub fn f32(v: f32) -> Value {
    json!({ "f32": java_text::float(v), "bits": format!("{:08x}", v.to_bits()) })
}

/// A double, with its bits.
pub fn f64(v: f64) -> Value {
    json!({ "f64": java_text::double(v), "bits": format!("{:016x}", v.to_bits()) })
}

/// Turns values of known classes into JSON.
pub trait JsonClasses: ClassSet {
    /// One value of `class`, taken from `d`; an error if the class or its layout is unknown.
    fn json(&self, class: &str, d: &mut Decoder<'_>, detail: Detail) -> Decoded<Value>;
}

impl JsonClasses for class::HadoopClasses {
    fn json(&self, class: &str, d: &mut Decoder<'_>, detail: Detail) -> Decoded<Value> {
        value(class, d, detail, self)
    }
}

/// [`JsonClasses::json`] for Hadoop's classes; maps inside hold values of `inner`.
pub fn value(class: &str, d: &mut Decoder<'_>, detail: Detail, inner: &dyn JsonClasses) -> Decoded<Value> {
    Ok(match class {
        class::NULL => Value::Null,
        class::BOOLEAN => d.bool("a BooleanWritable")?.into(),
        class::BYTE => d.i8("a ByteWritable")?.into(),
        class::SHORT => d.i16("a ShortWritable")?.into(),
        class::INT => d.i32("an IntWritable")?.into(),
        class::LONG => d.i64("a LongWritable")?.into(),
        class::VINT => d.vint("a VIntWritable")?.into(),
        class::VLONG => d.vlong("a VLongWritable")?.into(),
        class::FLOAT => f32(d.f32("a FloatWritable")?),
        class::DOUBLE => f64(d.f64("a DoubleWritable")?),
        class::BYTES => bytes(d.bytes("a BytesWritable")?, detail),
        class::MD5 => json!({ "md5": HEXLOWER.encode(d.take(16, "an MD5Hash")?) }),
        class::TEXT => text(d.text_bytes("a Text")?, detail),
        class::UTF8 => text(d.utf8("a UTF8")?.as_bytes(), detail),
        class::MAP | class::SORTED_MAP => {
            let map = MapWritable::decode(d, inner)?;
            json!({ "map": entries(&map, detail, inner)? })
        }
        _ => return Err(d.error("a class whose layout is known", class)),
    })
}

/// Entries of a map, ordered by the bytes of their keys.
pub fn entries(map: &MapWritable<'_>, detail: Detail, classes: &dyn JsonClasses) -> Decoded<Value> {
    let entry = |(k, v): &(crate::Any<'_>, crate::Any<'_>)| -> Decoded<Value> {
        Ok(json!({
            "kc": k.class,
            "k": classes.json(&k.class, &mut Decoder::new(&k.bytes), detail)?,
            "vc": v.class,
            "v": classes.json(&v.class, &mut Decoder::new(&v.bytes), detail)?,
        }))
    };
    map.sorted_entries().into_iter().map(entry).collect::<Decoded<Vec<_>>>().map(Value::from)
}

/// A whole value of `class`: its JSON, or its bytes if the class is unknown or the bytes are not of it.
pub fn whole(class: &str, raw: &[u8], detail: Detail, classes: &dyn JsonClasses) -> Value {
    let mut d = Decoder::new(raw);
    match classes.json(class, &mut d, detail) {
        Ok(value) if d.end().is_ok() => value,
        _ => bytes(raw, detail),
    }
}
