//! Strings as Hadoop stores them.
//!
//! | class | length | encoding |
//! | --- | --- | --- |
//! | `Text` | VInt | UTF-8 |
//! | `UTF8` | 16 bits | CESU-8: a character above U+FFFF is two surrogates of three bytes |
//! | `writeUTF` | 16 bits | CESU-8 with NUL as `c0 80` |
//!
//! What is stored, compared and hashed are bytes, so [`Text`] keeps bytes, UTF-8 or not.

use std::borrow::Cow;
use std::fmt;

/// UTF-16 units that fit a `UTF8`: its writers cut longer strings.
const UTF8_MAX_UNITS: usize = 0xffff / 3;

/// A string: bytes that should be UTF-8.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(Cow<'a, [u8]>);

impl<'a> Text<'a> {
    /// Borrows bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Text(Cow::Borrowed(bytes))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As text; bytes that are not UTF-8 become U+FFFD, as Java shows them.
    pub fn to_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// The same text with bytes of its own.
    pub fn into_owned(self) -> Text<'static> {
        Text(Cow::Owned(self.0.into_owned()))
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text::new(text.as_bytes())
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text(Cow::Owned(text.into_bytes()))
    }
}

impl From<Vec<u8>> for Text<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Text(Cow::Owned(bytes))
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str(), f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str())
    }
}

/// CESU-8 as UTF-8: pairs of surrogates become one character, `c0 80` becomes NUL. Anything else, lone surrogates and
/// malformed bytes included, stays as it is, so that nothing is lost.
pub fn from_cesu(bytes: &[u8]) -> Text<'_> {
    let special = |b: &u8| *b == 0xed || *b == 0xc0;
    let Some(first) = bytes.iter().position(special) else { return Text::new(bytes) };
    let (head, mut rest) = bytes.split_at_checked(first).unwrap_or((bytes, &[]));
    let mut out = head.to_vec();
    loop {
        rest = match rest {
            [] => break,
            [0xc0, 0x80, rest @ ..] => {
                out.push(0);
                rest
            }
            [0xed, a @ 0xa0..=0xaf, b @ 0x80..=0xbf, 0xed, c @ 0xb0..=0xbf, d @ 0x80..=0xbf, rest @ ..] => {
                let high = u32::from(a & 0x0f) << 6 | u32::from(b & 0x3f);
                let low = u32::from(c & 0x0f) << 6 | u32::from(d & 0x3f);
                let c = char::from_u32(0x10000 + (high << 10 | low)).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest
            }
            [b, rest @ ..] => {
                out.push(*b);
                rest
            }
        };
    }
    Text::from(out)
}

/// UTF-8 as CESU-8, at most 21845 UTF-16 units of it. Malformed bytes stay as they are.
pub fn to_cesu(utf8: &[u8], nul_as_two: bool) -> Cow<'_, [u8]> {
    let plain = |b: &u8| *b < 0xf0 && (*b != 0 || !nul_as_two);
    if utf8.len() <= UTF8_MAX_UNITS && utf8.iter().all(plain) {
        return Cow::Borrowed(utf8);
    }
    let mut out = Vec::with_capacity(utf8.len());
    let mut units = 0;
    let mut room = |n: usize| {
        units += n;
        units <= UTF8_MAX_UNITS
    };
    for chunk in utf8.utf8_chunks() {
        for c in chunk.valid().chars() {
            if !room(c.len_utf16()) {
                return Cow::Owned(out);
            }
            match c {
                '\0' if nul_as_two => out.extend([0xc0, 0x80]),
                '\u{10000}'.. => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let unit = *unit;
                        out.extend([
                            0xe0 | (unit >> 12) as u8,
                            0x80 | (unit >> 6 & 0x3f) as u8,
                            0x80 | (unit & 0x3f) as u8,
                        ]);
                    }
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        for b in chunk.invalid() {
            if !room(1) {
                return Cow::Owned(out);
            }
            out.push(*b);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cesu_comes_back(s in "\\PC{0,40}\u{0}?\\PC{0,5}", nul in any::<bool>()) {
            let cesu = to_cesu(s.as_bytes(), nul);
            prop_assert!(cesu.iter().all(|b| *b < 0xf0));
            let text = from_cesu(&cesu);
            prop_assert_eq!(text.to_str(), s.as_str());
        }
    }

    #[test]
    fn long_strings_are_cut_between_characters() {
        let long = "é".repeat(30_000);
        assert_eq!(to_cesu(long.as_bytes(), false).len(), UTF8_MAX_UNITS * 2);
        let rockets = "🚀".repeat(20_000);
        assert_eq!(to_cesu(rockets.as_bytes(), false).len(), UTF8_MAX_UNITS / 2 * 6);
    }

    #[test]
    fn a_lone_surrogate_stays() {
        assert_eq!(from_cesu(b"a\xed\xa0\x80b").as_bytes(), b"a\xed\xa0\x80b");
        assert_eq!(from_cesu(b"a\xc0\x80b").as_bytes(), b"a\0b");
    }
}
