//! `metadata.Metadata`: names with values.
//!
//! ```text
//! i32 names, then for each: name, i32 values, values
//! ```
//! A name without values can be stored; Java does not see it. A name that comes twice has the values of both.

use super::StringForm;
use trawl_hadoop::{Decoded, Decoder, Encode, Text};

/// Names with values, in the order they are stored in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata<'a>(pub Vec<(Text<'a>, Vec<Text<'a>>)>);

impl<'a> Metadata<'a> {
    /// Reads metadata.
    pub fn decode(d: &mut Decoder<'a>, form: StringForm) -> Decoded<Self> {
        let names = d.count(5, "number of names")?;
        let mut all = Vec::with_capacity(names.min(64));
        for _ in 0..names {
            let name = form.read(d, "name of metadata")?;
            let count = d.count(1, "number of values")?;
            let values = (0..count).map(|_| form.read(d, "value of metadata")).collect::<Decoded<_>>()?;
            all.push((name, values));
        }
        Ok(Metadata(all))
    }

    /// Reads the properties of 0.5 to 0.7: pairs of `UTF8`.
    pub fn decode_properties(d: &mut Decoder<'a>) -> Decoded<Self> {
        let count = d.count(4, "number of properties")?;
        let pair = |_| Ok((d.utf8("name of a property")?, vec![d.utf8("value of a property")?]));
        (0..count).map(pair).collect::<Decoded<_>>().map(Metadata)
    }

    /// Writes metadata with `Text`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_len(self.0.len());
        for (name, values) in &self.0 {
            out.put_text(name.as_bytes());
            out.put_len(values.len());
            for value in values {
                out.put_text(value.as_bytes());
            }
        }
    }

    /// Writes the properties of 0.5 to 0.7, which have one value a name: the first.
    pub fn encode_properties(&self, out: &mut Vec<u8>) {
        let pairs: Vec<_> = self.0.iter().filter_map(|(name, values)| Some((name, values.first()?))).collect();
        out.put_len(pairs.len());
        for (name, value) in pairs {
            out.put_utf8(name.as_bytes());
            out.put_utf8(value.as_bytes());
        }
    }

    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&Text<'a>> {
        self.0.iter().filter(|(n, _)| *n == *name).find_map(|(_, values)| values.first())
    }

    /// Adds a value to a name.
    pub fn add(&mut self, name: &str, value: impl Into<Text<'a>>) {
        match self.0.iter_mut().find(|(n, _)| *n == *name) {
            Some((_, values)) => values.push(value.into()),
            None => self.0.push((Text::from(name.to_owned()), vec![value.into()])),
        }
    }

    /// Sets a name to one value.
    pub fn set(&mut self, name: &str, value: impl Into<Text<'a>>) {
        self.0.retain(|(n, _)| *n != *name);
        self.add(name, value);
    }

    /// The same metadata with bytes of their own.
    pub fn into_owned(self) -> Metadata<'static> {
        let own = |(name, values): (Text<'a>, Vec<Text<'a>>)| {
            (name.into_owned(), values.into_iter().map(Text::into_owned).collect())
        };
        Metadata(self.0.into_iter().map(own).collect())
    }
}
