//! `MapWritable` and `SortedMapWritable`: keys and values of any class.
//!
//! ```text
//! i8   number of classes outside the built-in table
//! [ i8 id, writeUTF class name ]
//! i32  number of entries
//! [ i8 class of the key, key, i8 class of the value, value ]
//! ```
//! Nothing has a length, so that a class of unknown layout makes the rest unreadable. Entries keep their bytes and their
//! order: a map that is read and written again is the same map.

use crate::class::{self, ClassSet};
use crate::decode::{Decoded, Decoder};
use crate::{Encode, Text};
use std::borrow::Cow;

/// The first built-in id, and the classes from there on.
const FIRST_ID: i8 = -127;
const BUILT_IN: [&str; 15] = [
    class::ARRAY,
    class::BOOLEAN,
    class::BYTES,
    class::FLOAT,
    class::INT,
    class::LONG,
    class::MAP,
    class::MD5,
    class::NULL,
    class::OBJECT,
    class::SORTED_MAP,
    class::TEXT,
    class::TWO_D_ARRAY,
    class::VINT,
    class::VLONG,
];

/// A value with its class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Any<'a> {
    /// The full class name.
    pub class: Cow<'a, str>,
    /// The value as it is serialised.
    pub bytes: Cow<'a, [u8]>,
}

impl<'a> Any<'a> {
    /// A `Text`.
    pub fn text(utf8: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(utf8.len() + 2);
        bytes.put_text(utf8);
        Any { class: class::TEXT.into(), bytes: bytes.into() }
    }

    /// A value of `class`, written by `encode`.
    pub fn new(class: &'static str, encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        Any { class: class.into(), bytes: bytes.into() }
    }

    /// The string, if this is a `Text` or `UTF8`.
    pub fn as_text(&self) -> Option<Text<'_>> {
        let mut d = Decoder::new(&self.bytes);
        match &*self.class {
            class::TEXT => d.text("a Text").ok(),
            class::UTF8 => d.utf8("a UTF8").ok(),
            _ => None,
        }
    }

    /// The same value with bytes of its own.
    pub fn into_owned(self) -> Any<'static> {
        Any { class: Cow::Owned(self.class.into_owned()), bytes: Cow::Owned(self.bytes.into_owned()) }
    }
}

/// Keys and values in the order they are stored in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MapWritable<'a> {
    /// Ids of classes outside the built-in table, as the header lists them.
    declared: Vec<(i8, Cow<'a, str>)>,
    entries: Vec<(Any<'a>, Any<'a>)>,
}

impl<'a> MapWritable<'a> {
    /// A map with these entries, in this order.
    pub fn new(entries: Vec<(Any<'a>, Any<'a>)>) -> Self {
        MapWritable { declared: Vec::new(), entries }
    }

    /// Keys and values in the order they are stored in.
    pub fn entries(&self) -> &[(Any<'a>, Any<'a>)] {
        &self.entries
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value whose key is this string.
    pub fn get(&self, key: &str) -> Option<&Any<'a>> {
        self.entries.iter().find(|(k, _)| k.as_text().is_some_and(|text| text == *key)).map(|(_, v)| v)
    }

    /// Sets the value of a string key: in its place if there is one, else at the end.
    pub fn insert(&mut self, key: &str, value: Any<'a>) {
        match self.entries.iter_mut().find(|(k, _)| k.as_text().is_some_and(|text| text == *key)) {
            Some((_, old)) => *old = value,
            None => self.entries.push((Any::text(key.as_bytes()), value)),
        }
    }

    /// Removes a string key.
    pub fn remove(&mut self, key: &str) {
        self.entries.retain(|(k, _)| k.as_text().is_none_or(|text| text != *key));
    }

    /// Entries ordered by the bytes of their keys: an order that does not depend on the writer.
    pub fn sorted_entries(&self) -> Vec<&(Any<'a>, Any<'a>)> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by(|a, b| a.0.bytes.cmp(&b.0.bytes));
        entries
    }

    /// Reads a map whose values are of `classes`.
    pub fn decode(d: &mut Decoder<'a>, classes: &dyn ClassSet) -> Decoded<Self> {
        d.enter("a map")?;
        let count = d.i8("number of classes")?;
        let mut declared = Vec::new();
        for _ in 0..count {
            let id = d.i8("id of a class")?;
            declared.push((id, class_name(d.utf8_bytes("name of a class")?, d)?));
        }
        // An entry has two ids at least.
        let count = d.count(2, "number of entries")?;
        let mut entries = Vec::with_capacity(count.min(64));
        for _ in 0..count {
            let key = any(d, &declared, classes)?;
            let value = any(d, &declared, classes)?;
            entries.push((key, value));
        }
        d.leave();
        Ok(MapWritable { declared, entries })
    }

    /// Writes the map, with the class table it came with and whatever its entries need besides.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut declared = self.declared.clone();
        let mut ids = Vec::with_capacity(self.entries.len());
        for (key, value) in &self.entries {
            ids.push((id_of(&key.class, &mut declared), id_of(&value.class, &mut declared)));
        }
        out.put_u8(declared.len() as u8);
        for (id, name) in &declared {
            out.put_u8(id.cast_unsigned());
            out.put_java_utf(name.as_bytes());
        }
        out.put_len(self.entries.len());
        for ((key, value), (key_id, value_id)) in self.entries.iter().zip(ids) {
            out.put_u8(key_id.cast_unsigned());
            out.put(&key.bytes);
            out.put_u8(value_id.cast_unsigned());
            out.put(&value.bytes);
        }
    }

    /// The same map with bytes of its own.
    pub fn into_owned(self) -> MapWritable<'static> {
        MapWritable {
            declared: self.declared.into_iter().map(|(id, name)| (id, Cow::Owned(name.into_owned()))).collect(),
            entries: self.entries.into_iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect(),
        }
    }
}

/// A class name: always ASCII.
pub fn class_name<'a>(bytes: &'a [u8], d: &Decoder<'_>) -> Decoded<Cow<'a, str>> {
    match std::str::from_utf8(bytes) {
        Ok(name) => Ok(Cow::Borrowed(name)),
        Err(_) => Err(d.error("a class name", format!("{:?}", String::from_utf8_lossy(bytes)))),
    }
}

fn any<'a>(d: &mut Decoder<'a>, declared: &[(i8, Cow<'a, str>)], classes: &dyn ClassSet) -> Decoded<Any<'a>> {
    let id = d.i8("class of an entry")?;
    let built_in = usize::try_from(i16::from(id) - i16::from(FIRST_ID)).ok().and_then(|n| BUILT_IN.get(n));
    let class = match built_in {
        Some(name) => Cow::Borrowed(*name),
        None => match declared.iter().find(|(known, _)| *known == id) {
            Some((_, name)) => name.clone(),
            None => return Err(d.error("the id of a class", id.to_string())),
        },
    };
    let bytes = d.measured(|d| classes.skip(&class, d))?;
    Ok(Any { class, bytes: Cow::Borrowed(bytes) })
}

fn id_of(class: &str, declared: &mut Vec<(i8, Cow<'_, str>)>) -> i8 {
    if let Some(n) = BUILT_IN.iter().position(|name| *name == class) {
        return FIRST_ID + n as i8;
    }
    if let Some((id, _)) = declared.iter().find(|(_, name)| name == class) {
        return *id;
    }
    // Java numbers them from 1 and stops at 127; no map of Nutch has more than a handful. Ids of a map that was read may have
    // gaps, and reach the last one.
    let id = (1..i8::MAX).find(|id| declared.iter().all(|(known, _)| known != id)).unwrap_or(i8::MAX);
    declared.push((id, Cow::Owned(class.to_owned())));
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneByte;

    impl ClassSet for OneByte {
        fn skip(&self, _: &str, d: &mut Decoder<'_>) -> Decoded<()> {
            d.u8("a value").map(drop)
        }
    }

    /// A class that is added to a map whose ids reach the last one gets an id of its own.
    #[test]
    fn ids_of_classes_are_not_given_twice() {
        let mut bytes = vec![1, 127, 0, 1, b'A'];
        bytes.extend([0, 0, 0, 1, 127, 7, 127, 8]);
        let mut map = MapWritable::decode(&mut Decoder::new(&bytes), &OneByte).unwrap();
        let [key, value] = [1, 2].map(|n| Any { class: "B".into(), bytes: vec![n].into() });
        map.entries.push((key, value));
        let mut out = Vec::new();
        map.encode(&mut out);
        let again = MapWritable::decode(&mut Decoder::new(&out), &OneByte).unwrap();
        assert_eq!(again.entries(), map.entries());
    }
}
