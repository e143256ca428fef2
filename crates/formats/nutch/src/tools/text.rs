//! Values as their `toString` prints them.

use crate::class;
use crate::types::{Content, CrawlDatum, Inlink, Metadata, Outlink, ParseData, ProtocolStatus, whole};
use data_encoding::HEXLOWER;
use std::fmt::Write as _;
use trawl_hadoop::java_text::{date_utc, double, float};
use trawl_hadoop::{Any, Decoder, MapWritable, class as hadoop};

/// A value inside a map.
pub fn any(value: &Any<'_>) -> String {
    let mut d = Decoder::new(&value.bytes);
    let printed = match &*value.class {
        hadoop::NULL => Ok("(null)".into()),
        hadoop::BOOLEAN => d.bool("a value").map(|v| v.to_string()),
        hadoop::BYTE => d.i8("a value").map(|v| v.to_string()),
        hadoop::SHORT => d.i16("a value").map(|v| v.to_string()),
        hadoop::INT => d.i32("a value").map(|v| v.to_string()),
        hadoop::LONG => d.i64("a value").map(|v| v.to_string()),
        hadoop::VINT | hadoop::VLONG => d.vlong("a value").map(|v| v.to_string()),
        hadoop::FLOAT => d.f32("a value").map(float),
        hadoop::DOUBLE => d.f64("a value").map(double),
        hadoop::TEXT => d.text("a value").map(|v| v.to_string()),
        hadoop::UTF8 => d.utf8("a value").map(|v| v.to_string()),
        hadoop::MD5 => d.take(16, "a value").map(|v| HEXLOWER.encode(v)),
        hadoop::BYTES => d.bytes("a value").map(|v| v.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")),
        hadoop::MAP | hadoop::SORTED_MAP => MapWritable::decode(&mut d, &class::NutchClasses).map(|m| {
            let pair = |(k, v): &(Any<'_>, Any<'_>)| format!("{}={}", any(k), any(v));
            format!("{{{}}}", m.entries().iter().map(pair).collect::<Vec<_>>().join(", "))
        }),
        class::PROTOCOL_STATUS => ProtocolStatus::decode(&mut d).map(|v| v.to_string()),
        class::CRAWL_DATUM => CrawlDatum::decode(&mut d).map(|v| datum(&v)),
        other => Ok(format!("{other}:{}", HEXLOWER.encode(&value.bytes))),
    };
    // Values were measured when their map was read; one that does not decode shows its bytes.
    printed.unwrap_or_else(|_| HEXLOWER.encode(&value.bytes))
}

/// A CrawlDatum: nine lines, and a tab, name and value for each entry of its metadata.
pub fn datum(c: &CrawlDatum<'_>) -> String {
    let seconds = c.interval.seconds();
    let signature = if c.signature.is_empty() { "null".into() } else { HEXLOWER.encode(&c.signature) };
    let mut text = format!(
        "Version: 7\nStatus: {}\nFetch time: {}\nModified time: {}\nRetries since fetch: {}\n\
         Retry interval: {seconds} seconds ({} days)\nScore: {}\nSignature: {signature}\nMetadata: \n ",
        c.status(),
        date_utc(c.fetch_time),
        date_utc(c.modified_time),
        c.retries,
        seconds / 86_400,
        float(c.score),
    );
    for (key, value) in c.metadata.entries() {
        let _ = writeln!(text, "\t{}={}", any(key), any(value));
    }
    text
}

fn pairs(metadata: &Metadata<'_>) -> impl Iterator<Item = (String, String)> {
    metadata.0.iter().flat_map(|(name, values)| values.iter().map(move |value| (name.to_string(), value.to_string())))
}

/// A Content, its bytes as UTF-8.
pub fn content(c: &Content<'_>) -> String {
    let metadata: Vec<_> = pairs(&c.metadata).map(|(name, value)| format!("{name}={value}")).collect();
    format!(
        "Version: -1\nurl: {}\nbase: {}\ncontentType: {}\nmetadata: {}\nContent:\n{}",
        c.url,
        c.base,
        c.content_type,
        metadata.join(" "),
        String::from_utf8_lossy(&c.content),
    )
}

/// Entries of a link's metadata: a space, the name, a colon, a space and the value of each.
fn link_metadata(metadata: Option<&MapWritable<'_>>) -> String {
    let pair = |(k, v): &(Any<'_>, Any<'_>)| format!(" {}: {}", any(k), any(v));
    metadata.map_or_else(String::new, |m| m.entries().iter().map(pair).collect())
}

/// An Outlink.
pub fn outlink(l: &Outlink<'_>) -> String {
    format!("toUrl: {} anchor: {}{}", l.to_url, l.anchor, link_metadata(l.metadata.as_ref()))
}

/// An Inlink, in the shape of 1.21 and later.
pub fn inlink(l: &Inlink<'_>) -> String {
    format!("fromUrl: {} anchor: {} metadata: {}", l.from_url, l.anchor, link_metadata(l.metadata.as_ref()))
}

/// A ParseData.
pub fn parse_data(p: &ParseData<'_>) -> String {
    let status = p.status.as_ref().map_or_else(|| "success(1,0)".into(), ToString::to_string);
    let mut text = format!("Version: 5\nStatus: {status}\nTitle: {}\nOutlinks: {}\n", p.title, p.outlinks.len());
    for link in &p.outlinks {
        let _ = writeln!(text, "  outlink: {}", outlink(link));
    }
    for (heading, metadata) in [("Content", &p.content_meta), ("Parse", &p.parse_meta)] {
        let _ = writeln!(text, "{heading} Metadata:");
        for (name, value) in pairs(metadata) {
            let _ = writeln!(text, "  {name} = {value}");
        }
    }
    text
}

/// A value of a map as JSON: numbers, booleans and null as such, anything else as text.
pub(super) fn json_any(value: &Any<'_>) -> String {
    let number = |text: String| if text.contains(['N', 'I']) { format!("\"{text}\"") } else { text };
    match &*value.class {
        hadoop::NULL => "null".into(),
        hadoop::BOOLEAN | hadoop::BYTE | hadoop::SHORT | hadoop::INT | hadoop::LONG | hadoop::VINT | hadoop::VLONG => {
            any(value)
        }
        hadoop::FLOAT | hadoop::DOUBLE => number(any(value)),
        _ => json_string(&any(value)),
    }
}

/// A JSON string with everything outside ASCII escaped.
pub(super) fn json_string(text: &str) -> String {
    let mut out = String::from("\"");
    for unit in text.encode_utf16() {
        match char::from_u32(u32::from(unit)) {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some(c @ ' '..='\u{7f}') => out.push(c),
            _ => {
                let _ = write!(out, "\\u{unit:04X}");
            }
        }
    }
    out.push('"');
    out
}

/// Decodes and prints a datum.
pub fn datum_of(bytes: &[u8]) -> trawl_hadoop::Decoded<String> {
    whole(bytes, CrawlDatum::decode).map(|c| datum(&c))
}
