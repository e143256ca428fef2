//! Character references (`&amp;`, `&#x26;`) in texts that hold URLs, by the rules the HTML standard has for attributes.

use std::borrow::Cow;
use std::sync::OnceLock;

/// Name, code points in hexadecimal, and `!` if the name also counts without its semicolon. Sorted by name.
const TABLE: &str = include_str!("entities.txt");
/// What the bytes 80 to 9F mean in windows-1252, as browsers read it.
const WINDOWS_1252: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";
/// No name is longer.
const LONGEST: usize = 31;

/// A parsed line of [`TABLE`].
struct Entity {
    name: &'static str,
    text: String,
    bare: bool,
}

fn table() -> &'static [Entity] {
    static PARSED: OnceLock<Vec<Entity>> = OnceLock::new();
    PARSED.get_or_init(|| {
        TABLE
            .lines()
            .filter_map(|line| {
                let mut words = line.split(' ');
                let name = words.next()?;
                let mut entity = Entity { name, text: String::new(), bare: false };
                for word in words {
                    match u32::from_str_radix(word, 16).ok().and_then(char::from_u32) {
                        Some(c) => entity.text.push(c),
                        None => entity.bare = true,
                    }
                }
                Some(entity)
            })
            .collect()
    })
}

/// Replaces the character references of an attribute's value.
///
/// ```
/// assert_eq!(trawl_url::entities::decode("?a=1&amp;b=2&copy=3"), "?a=1&b=2&copy=3");
/// ```
pub fn decode(value: &str) -> Cow<'_, str> {
    decode_with(value, &mut |_, out| out.push(char::REPLACEMENT_CHARACTER))
}

/// As [`decode`], but references to different numbers that are not characters stay different, escaped: browsers read each of them
/// as U+FFFD, which would make two entries of a list one.
///
/// ```
/// assert_eq!(trawl_url::entities::decode_distinct("/&#xD800;&amp;&#0;"), "/%ED%A0%80&%26%230");
/// ```
pub fn decode_distinct(value: &str) -> Cow<'_, str> {
    decode_with(value, &mut |digits, out| {
        let half = match digits {
            Number::Hex(digits) => u16::from_str_radix(digits, 16),
            Number::Decimal(digits) => digits.parse(),
        };
        match (half, digits) {
            (Ok(half @ 0xD800..=0xDFFF), _) => crate::percent::push_surrogate(half, out),
            (_, Number::Hex(digits)) => out.extend(["%26%23x", digits]),
            (_, Number::Decimal(digits)) => out.extend(["%26%23", digits]),
        }
    })
}

/// The digits of a reference.
#[derive(Clone, Copy)]
enum Number<'a> {
    Hex(&'a str),
    Decimal(&'a str),
}

/// Writes what a number that is not a character becomes.
type NotCharacter<'a> = dyn FnMut(Number<'_>, &mut String) + 'a;

fn decode_with<'a>(value: &'a str, not_character: &mut NotCharacter<'_>) -> Cow<'a, str> {
    let Some(first) = value.find('&') else { return Cow::Borrowed(value) };
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    let mut next = Some(first);
    while let Some((before, from)) = next.and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        match reference(from, &mut out, not_character) {
            Some(after) => rest = after,
            None => {
                out.push('&');
                rest = from.get(1..).unwrap_or_default();
            }
        }
        next = rest.find('&');
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Appends what the reference at the start of `from` stands for and returns what follows it.
fn reference<'a>(from: &'a str, out: &mut String, not_character: &mut NotCharacter<'_>) -> Option<&'a str> {
    let body = from.get(1..)?;
    if let Some(number) = body.strip_prefix('#') {
        let (digits, radix) = match number.strip_prefix(['x', 'X']) {
            Some(hex) => (hex, 16),
            None => (number, 10),
        };
        let end = digits.bytes().position(|b| !char::from(b).is_digit(radix)).unwrap_or(digits.len());
        let (digits, after) = digits.split_at_checked(end).filter(|(digits, _)| !digits.is_empty())?;
        match code_point(digits, radix) {
            Some(c) => out.push(c),
            None if radix == 16 => not_character(Number::Hex(digits), out),
            None => not_character(Number::Decimal(digits), out),
        }
        return Some(after.strip_prefix(';').unwrap_or(after));
    }
    let end = body.bytes().take(LONGEST + 1).position(|b| !b.is_ascii_alphanumeric()).unwrap_or(body.len());
    let (name, after) = body.split_at_checked(end).filter(|(name, _)| name.len() <= LONGEST)?;
    let table = table();
    let entity = table.binary_search_by(|entity| entity.name.cmp(name)).ok().and_then(|at| table.get(at))?;
    let after = match after.strip_prefix(';') {
        Some(after) => after,
        // `?a=1&copy=2` is a query, not a sign.
        None if entity.bare && !after.starts_with('=') => after,
        None => return None,
    };
    out.push_str(&entity.text);
    Some(after)
}

/// What a numeric reference stands for: old pages mean windows-1252 by the numbers 128 to 159. `None` if it is not a character.
fn code_point(digits: &str, radix: u32) -> Option<char> {
    // More digits than a number has are not a character either.
    let number = u32::from_str_radix(digits, radix).ok()?;
    match u8::try_from(number) {
        Ok(0) => None,
        Ok(byte @ 0x80..=0x9F) => WINDOWS_1252.chars().nth(usize::from(byte - 0x80)),
        _ => char::from_u32(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_in_attributes() {
        for (value, want) in [
            ("a&amp;b", "a&b"),
            ("a&ampb", "a&ampb"),
            ("a&amp", "a&"),
            ("?x=1&copy=2", "?x=1&copy=2"),
            ("?x=1&copy;=2", "?x=1\u{a9}=2"),
            ("?x&copy", "?x\u{a9}"),
            ("&#38;&#x26;&#X26;&#38x", "&&&&x"),
            ("&#128;&#0;&#xD800;&#x110000;&#99999999999999;", "\u{20ac}\u{fffd}\u{fffd}\u{fffd}\u{fffd}"),
            ("&;&#;&#x;&nosuch;&", "&;&#;&#x;&nosuch;&"),
            ("&fjlig;&NotEqualTilde;", "fj\u{2242}\u{338}"),
            ("&CounterClockwiseContourIntegral;", "\u{2233}"),
            ("&CounterClockwiseContourIntegralX;", "&CounterClockwiseContourIntegralX;"),
            ("ü&uuml;&uuml", "üüü"),
        ] {
            assert_eq!(decode(value), want, "{value}");
        }
    }

    #[test]
    fn the_table_is_whole_and_sorted() {
        assert_eq!(table().len(), 2125);
        assert_eq!(table().iter().filter(|entity| entity.bare).count(), 106);
        assert!(table().is_sorted_by(|a, b| a.name < b.name));
        assert!(table().iter().all(|entity| !entity.text.is_empty() && entity.name.len() <= LONGEST));
    }
}
