//! `indexer.NutchDocument`, `NutchField` and `NutchIndexAction`: what goes to an index.

use super::Metadata;
use trawl_hadoop::{Decoded, Decoder, Encode, Text};

/// A value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue<'a> {
    /// `java.lang.String`.
    String(Text<'a>),
    /// `java.lang.Boolean`.
    Boolean(bool),
    /// `java.lang.Integer`.
    Integer(i32),
    /// `java.lang.Float`.
    Float(f32),
    /// `java.lang.Long`.
    Long(i64),
    /// `java.util.Date`, milliseconds since 1970.
    Date(i64),
    /// Any other class, of which Nutch writes only the name.
    Other(Text<'a>),
}

impl<'a> FieldValue<'a> {
    /// The Java class.
    pub fn class(&self) -> std::borrow::Cow<'_, str> {
        match self {
            FieldValue::String(_) => "java.lang.String".into(),
            FieldValue::Boolean(_) => "java.lang.Boolean".into(),
            FieldValue::Integer(_) => "java.lang.Integer".into(),
            FieldValue::Float(_) => "java.lang.Float".into(),
            FieldValue::Long(_) => "java.lang.Long".into(),
            FieldValue::Date(_) => "java.util.Date".into(),
            FieldValue::Other(name) => name.to_str(),
        }
    }

    fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let class = d.text("class of a value")?;
        Ok(match class.as_bytes() {
            b"java.lang.String" => FieldValue::String(d.text("a string")?),
            b"java.lang.Boolean" => FieldValue::Boolean(d.bool("a boolean")?),
            b"java.lang.Integer" => FieldValue::Integer(d.i32("an integer")?),
            b"java.lang.Float" => FieldValue::Float(d.f32("a float")?),
            b"java.lang.Long" => FieldValue::Long(d.i64("a long")?),
            b"java.util.Date" => FieldValue::Date(d.i64("a date")?),
            _ => FieldValue::Other(class),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_text(self.class().as_bytes());
        match self {
            FieldValue::String(text) => out.put_text(text.as_bytes()),
            FieldValue::Boolean(v) => out.put_bool(*v),
            FieldValue::Integer(v) => out.put_i32(*v),
            FieldValue::Float(v) => out.put_f32(*v),
            FieldValue::Long(v) | FieldValue::Date(v) => out.put_i64(*v),
            FieldValue::Other(_) => {}
        }
    }
}

/// A field of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct NutchField<'a> {
    /// Weight.
    pub weight: f32,
    /// Values.
    pub values: Vec<FieldValue<'a>>,
}

impl<'a> NutchField<'a> {
    /// Reads a field.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let weight = d.f32("weight of a field")?;
        let count = d.count(1, "number of values")?;
        let values = (0..count).map(|_| FieldValue::decode(d)).collect::<Decoded<_>>()?;
        Ok(NutchField { weight, values })
    }

    /// Writes a field.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_f32(self.weight);
        out.put_len(self.values.len());
        for value in &self.values {
            value.encode(out);
        }
    }
}

/// A document for an index.
#[derive(Debug, Clone, PartialEq)]
pub struct NutchDocument<'a> {
    /// Fields by name, in the order they are stored in.
    pub fields: Vec<(Text<'a>, NutchField<'a>)>,
    /// Weight.
    pub weight: f32,
    /// Metadata.
    pub metadata: Metadata<'a>,
}

impl<'a> NutchDocument<'a> {
    /// Reads version 2, the only one.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let version = d.u8("version of a NutchDocument")?;
        if version != 2 {
            return Err(d.error("a NutchDocument of version 2", version.to_string()));
        }
        let count = d.vint_count(9, "number of fields")?;
        let field = |_| Ok((d.text("name of a field")?, NutchField::decode(d)?));
        let fields = (0..count).map(field).collect::<Decoded<_>>()?;
        Ok(NutchDocument { fields, weight: d.f32("weight")?, metadata: Metadata::decode(d, Default::default())? })
    }

    /// Writes version 2.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(2);
        out.put_vlong(self.fields.len() as i64);
        for (name, field) in &self.fields {
            out.put_text(name.as_bytes());
            field.encode(out);
        }
        out.put_f32(self.weight);
        self.metadata.encode(out);
    }
}

/// What to do with a document.
#[derive(Debug, Clone, PartialEq)]
pub struct NutchIndexAction<'a> {
    /// 0 add, 1 delete, 2 update.
    pub action: u8,
    /// The document.
    pub document: NutchDocument<'a>,
}

impl<'a> NutchIndexAction<'a> {
    /// Reads an action.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        Ok(NutchIndexAction { action: d.u8("action")?, document: NutchDocument::decode(d)? })
    }

    /// Writes an action.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.action);
        self.document.encode(out);
    }
}
