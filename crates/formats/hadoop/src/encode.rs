//! Writing Writables: the counterpart of [`crate::Decoder`], as methods of the buffer that takes the bytes.

use crate::text;

/// Appends Writables to a buffer.
pub trait Encode {
    /// Bytes as they are.
    fn put(&mut self, bytes: &[u8]);

    /// One byte.
    fn put_u8(&mut self, v: u8) {
        self.put(&[v]);
    }
    /// 1 or 0.
    fn put_bool(&mut self, v: bool) {
        self.put(&[u8::from(v)]);
    }
    /// 16 bits.
    fn put_i16(&mut self, v: i16) {
        self.put(&v.to_be_bytes());
    }
    /// 32 bits.
    fn put_i32(&mut self, v: i32) {
        self.put(&v.to_be_bytes());
    }
    /// A length as 32 bits. One that needs more is cut here, which does no harm: its record is over the 31 bits of a record
    /// length, which writers refuse.
    fn put_len(&mut self, n: usize) {
        self.put_i32(i32::try_from(n).unwrap_or(i32::MAX));
    }
    /// 64 bits.
    fn put_i64(&mut self, v: i64) {
        self.put(&v.to_be_bytes());
    }
    /// An IEEE-754 single, bit by bit.
    fn put_f32(&mut self, v: f32) {
        self.put(&v.to_be_bytes());
    }
    /// An IEEE-754 double, bit by bit.
    fn put_f64(&mut self, v: f64) {
        self.put(&v.to_be_bytes());
    }

    /// A VInt or VLong, as short as it can be.
    fn put_vlong(&mut self, v: i64) {
        if let Ok(small @ -112..) = i8::try_from(v) {
            return self.put(&small.to_be_bytes());
        }
        let (base, magnitude) = if v < 0 { (-120i8, !v) } else { (-112i8, v) };
        let bytes = magnitude.to_be_bytes();
        let zeros = (magnitude.leading_zeros() / 8).min(7) as usize;
        let (_, used) = bytes.split_at_checked(zeros).unwrap_or((&[], &bytes));
        let marker = base.wrapping_sub_unsigned(used.len() as u8);
        self.put(&marker.to_be_bytes());
        self.put(used);
    }

    /// A `Text`: VInt length and bytes.
    fn put_text(&mut self, utf8: &[u8]) {
        self.put_vlong(utf8.len() as i64);
        self.put(utf8);
    }

    /// A `UTF8`: a 16-bit length and CESU-8, cut to the 21845 UTF-16 units that its writers allow.
    fn put_utf8(&mut self, utf8: &[u8]) {
        let cesu = text::to_cesu(utf8, false);
        self.put(&(cesu.len() as u16).to_be_bytes());
        self.put(&cesu);
    }

    /// A string as Java's `writeUTF` has it; NUL is two bytes.
    fn put_java_utf(&mut self, utf8: &[u8]) {
        let cesu = text::to_cesu(utf8, true);
        self.put(&(cesu.len() as u16).to_be_bytes());
        self.put(&cesu);
    }

    /// A byte string with its length as an i32 before it.
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_len(bytes.len());
        self.put(bytes);
    }
}

impl Encode for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
