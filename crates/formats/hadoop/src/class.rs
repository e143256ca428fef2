//! Class names, and how long values of the classes are that stand inside other values without a length.

use crate::decode::{Decoded, Decoder};
use crate::map_writable::MapWritable;

/// `org.apache.hadoop.io.` and the name.
macro_rules! hadoop {
    ($($(#[$doc:meta])* $name:ident = $class:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = concat!("org.apache.hadoop.io.", $class);)*
    };
}

hadoop! {
    /// No bytes.
    NULL = "NullWritable";
    /// One byte.
    BOOLEAN = "BooleanWritable";
    /// One byte, signed.
    BYTE = "ByteWritable";
    /// 16 bits.
    SHORT = "ShortWritable";
    /// 32 bits.
    INT = "IntWritable";
    /// 64 bits.
    LONG = "LongWritable";
    /// 1 to 5 bytes.
    VINT = "VIntWritable";
    /// 1 to 9 bytes.
    VLONG = "VLongWritable";
    /// IEEE-754 single.
    FLOAT = "FloatWritable";
    /// IEEE-754 double.
    DOUBLE = "DoubleWritable";
    /// Length and bytes.
    BYTES = "BytesWritable";
    /// 16 bytes.
    MD5 = "MD5Hash";
    /// UTF-8 with a VInt length.
    TEXT = "Text";
    /// CESU-8 with a 16-bit length.
    UTF8 = "UTF8";
    /// Keys and values of any class.
    MAP = "MapWritable";
    /// As [`MAP`], sorted.
    SORTED_MAP = "SortedMapWritable";
    /// Elements of a class that is not stored.
    ARRAY = "ArrayWritable";
    /// Rows of elements of a class that is not stored.
    TWO_D_ARRAY = "TwoDArrayWritable";
    /// A class name and a value.
    OBJECT = "ObjectWritable";
}

/// The name a class has today: short aliases and packages of earlier releases are resolved.
///
/// Nutch 0.x wrote `long` or `net.nutch.io.LongWritable`; the classes of the container moved to Hadoop in 0.8, those of
/// Nutch from `net.nutch` to `org.apache.nutch` in 0.7.
pub fn canonical(class: &str) -> std::borrow::Cow<'_, str> {
    let io = |name: &str| format!("org.apache.hadoop.io.{name}").into();
    match class {
        "null" => NULL.into(),
        "long" => LONG.into(),
        "UTF8" | "MD5Hash" => io(class),
        _ => match class.strip_prefix("net.nutch.io.").or_else(|| class.strip_prefix("org.apache.nutch.io.")) {
            Some(name) => io(name),
            None => class.into(),
        },
    }
}

/// Knows how values of some classes are laid out. A crate that has more classes wraps [`HadoopClasses`].
pub trait ClassSet: Sync {
    /// Moves past one value of `class`; an error if the class or its length is unknown.
    fn skip(&self, class: &str, d: &mut Decoder<'_>) -> Decoded<()>;
}

/// The classes of Hadoop itself.
#[derive(Debug, Clone, Copy)]
pub struct HadoopClasses;

impl ClassSet for HadoopClasses {
    fn skip(&self, class: &str, d: &mut Decoder<'_>) -> Decoded<()> {
        skip(class, d, self)
    }
}

/// [`ClassSet::skip`] for Hadoop's classes; maps inside hold values of `inner`.
pub fn skip(class: &str, d: &mut Decoder<'_>, inner: &dyn ClassSet) -> Decoded<()> {
    let fixed = match class {
        NULL => 0,
        BOOLEAN | BYTE => 1,
        SHORT => 2,
        INT | FLOAT => 4,
        LONG | DOUBLE => 8,
        MD5 => 16,
        VINT => return d.vint("a VIntWritable").map(drop),
        VLONG => return d.vlong("a VLongWritable").map(drop),
        BYTES => return d.bytes("a BytesWritable").map(drop),
        TEXT => return d.text_bytes("a Text").map(drop),
        UTF8 => return d.utf8_bytes("a UTF8").map(drop),
        MAP | SORTED_MAP => return MapWritable::decode(d, inner).map(drop),
        _ => return Err(d.error("a class whose length is known", class)),
    };
    d.take(fixed, "a value").map(drop)
}
