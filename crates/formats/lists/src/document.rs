//! JSON that is not one object a line: a list of objects, objects printed over many lines, or a HAR file.
//!
//! ```text
//! [ {"url": …}, {"url": …} ]          DuckDB, pandas, browsers
//! [ "http://…", "http://…" ]
//! [ ["urlkey","original"], ["com,a)/","http://a.com/"] ]      the Wayback CDX server: names, then rows
//! { "url": …                          one after the other, over as many lines as they like
//! }
//! {"log": {"entries": [ … ]}}         HAR
//! ```
//! A list inside an object is not looked for: it is unknown which one is meant.

use crate::csv::looks_like_url;
use crate::fields::{Fields, Roles, Value};
use crate::file::text_of;
use crate::json::whole_characters;
use crate::lines::MAX_LINE;
use crate::scan::Scanner;
use crate::source::failed;
use crate::{BadItem, Options};
use std::borrow::Cow;
use std::io::{self, BufRead};
use trawl_model::{DoorError, Items, Place, UrlRecord};

/// Scalars of a HAR entry that are looked at: bodies, which may be long, are passed over.
const MAX_SCALAR: usize = 1 << 16;

/// The fields that the Wayback CDX server has; its user chooses which of them it answers (`fl=original,timestamp`).
const ANSWERED: &[&str] = &[
    "urlkey",
    "timestamp",
    "original",
    "mimetype",
    "statuscode",
    "digest",
    "redirect",
    "robotflags",
    "length",
    "offset",
    "filename",
    "dupecount",
    "groupcount",
    "uniqcount",
    "endtimestamp",
    "skipcount",
];

/// Bytes of a rejected entry that are kept.
const SHOWN: usize = 200;

/// Reads a JSON text that holds records.
pub(crate) fn read(uri: &str, options: &Options, stream: impl BufRead, each: &mut Items<'_>) -> Result<(), DoorError> {
    let mut scan = Scanner::new(stream);
    let mut value = Vec::new();
    // The names of a table of lists, once they were read.
    let mut header: Option<Vec<String>> = None;
    let (mut in_list, mut any) = (false, false);
    loop {
        let next = scan.peek().map_err(|e| failed(uri, scan.offset, e))?;
        let at = scan.offset;
        let fail = |e| failed(uri, at, e);
        match next {
            None if in_list => {
                return Err(fail(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "expected the end of a list in JSON, found the end of the file",
                )));
            }
            None => return Ok(()),
            Some(mark @ (b'[' | b']')) if in_list == (mark == b']') => {
                scan.take(mark).map_err(fail)?;
                in_list = !in_list;
                continue;
            }
            Some(b',') if in_list && scan.take(b',').map_err(fail)? => continue,
            Some(_) => {}
        }
        let whole = scan.value(&mut value, MAX_LINE).map_err(fail)?;
        let item = match value.first() {
            _ if !whole => Err(BadItem::new("line_too_long", "expected a value of at most 4 MiB", &value)),
            Some(b'[') => match row(options, &mut header, &value) {
                Some(item) => item,
                // The names were read: from here on a bad row is one row.
                None => {
                    any = true;
                    continue;
                }
            },
            Some(b'"') => text(options, &value),
            _ => crate::line::object(options, false, &text_of(&value), &value),
        };
        let place = Place::new(uri, at, value.len() as u64);
        match item {
            // A text that is not JSON at all is one mistake, not one for each of its words; so is a table without its names.
            Err(bad) if !any && (bad.code == "json" || value.starts_with(b"[")) => return Err(bad.ends(place)),
            item => each(at, item.map_err(|bad| bad.at(place)))?,
        }
        any = true;
    }
}

/// A text by itself is a URL, if it looks like one: others stand beside URLs in lists that are rows (`["http://…", "a title"]`).
fn text(options: &Options, value: &[u8]) -> Result<UrlRecord, BadItem> {
    let text = text_of(value);
    let url: Cow<'_, str> = serde_json::from_str(&whole_characters(&text)).map_err(|e| not_json(e, value))?;
    if !looks_like_url(url.trim()) {
        return Err(BadItem::new("no_url", "expected a url with its scheme or host, found another text", value));
    }
    let mut fields = Roles::guessed(options, Vec::new()).fields();
    fields.set_url(&url);
    fields.finish().ok_or_else(|| no_url(value))
}

/// A row of a table of lists; `None` for its first one, which holds the names.
fn row(options: &Options, header: &mut Option<Vec<String>>, value: &[u8]) -> Option<Result<UrlRecord, BadItem>> {
    let text = text_of(value);
    let cells: Vec<serde_json::Value> = match serde_json::from_str(&whole_characters(&text)) {
        Ok(cells) => cells,
        Err(e) => return Some(Err(not_json(e, value))),
    };
    let Some(names) = header else {
        let names: Vec<String> = cells.iter().filter_map(|cell| cell.as_str().map(str::to_owned)).collect();
        if names.len() < cells.len() || !roles_of(options, &names).has_url() {
            return Some(Err(BadItem::new("no_url", "expected a row of names, one of them \"url\"", value)));
        }
        *header = Some(names);
        return None;
    };
    // Every page of an answer has the names, and `cat` and `jq -s add` keep them: as a row, `original` would be a host.
    let is_name = |(cell, name): (&serde_json::Value, &String)| cell.as_str() == Some(name.as_str());
    if cells.len() == names.len() && cells.iter().zip(names.iter()).all(is_name) {
        return Some(Err(BadItem::new("header", "expected a row, found the names again", value)));
    }
    if cells.len() > names.len() {
        let message = "expected as many values as there are names, found more";
        return Some(Err(BadItem::new("columns", message, value)));
    }
    let roles = roles_of(options, names);
    let mut fields: Fields = roles.fields();
    for ((role, name), cell) in roles.each.iter().zip(names).zip(&cells) {
        let json = cell.to_string();
        let cell = match cell {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::String(text) => Value::Text(text),
            serde_json::Value::Number(_) => Value::Number(&json),
            _ => Value::Json(&json),
        };
        fields.put(*role, name, cell);
    }
    Some(fields.finish().ok_or_else(|| no_url(value)))
}

/// What the columns of a table of lists are. `original` is a URL only beside nothing but what a CDX server answers: elsewhere it may be
/// anything.
fn roles_of(options: &Options, names: &[String]) -> Roles {
    let is_answer =
        names.iter().any(|name| name == "original") && names.iter().all(|name| ANSWERED.contains(&name.as_str()));
    Roles::of(options, is_answer, names.iter().map(|name| &**name))
}

fn not_json(error: serde_json::Error, value: &[u8]) -> BadItem {
    BadItem::new("json", format!("expected json: {error}"), value)
}

fn no_url(value: &[u8]) -> BadItem {
    BadItem::new("no_url", "expected a text under \"url\", found none", value)
}

/// Reads a HAR file: a record for each request that a browser made. Kept are URL, time, status, type and size of the body, and
/// the method where it is not GET; heads and bodies are the archive's business.
pub(crate) fn read_har(
    uri: &str,
    options: &Options,
    stream: impl BufRead,
    each: &mut Items<'_>,
) -> Result<(), DoorError> {
    let mut scan = Scanner::new(stream);
    let mut ended = None;
    let mut entry = |scan: &mut Scanner<_>| {
        let begins = scan.ahead(SHOWN)?;
        let at = scan.offset;
        let item = har_entry(options, scan)?;
        let item = item.ok_or_else(|| {
            let bad = BadItem::new("no_url", "expected a request with a url in the entry, found none", &begins);
            bad.at(Place::new(uri, at, scan.offset - at))
        });
        each(at, item).map_err(|error| {
            ended = Some(error);
            io::Error::other("ended by the reader")
        })
    };
    let mut skipped = Vec::new();
    let mut found = false;
    let read = scan.members(|scan, name| {
        if name != "log" {
            return scan.value(&mut skipped, 0).map(drop);
        }
        scan.members(|scan, name| {
            if name != "entries" {
                return scan.value(&mut skipped, 0).map(drop);
            }
            found = true;
            scan.elements(&mut entry)
        })
    });
    // What stands behind the end would never be looked at.
    let read = read.and_then(|()| scan.end());
    match (read, ended) {
        (_, Some(error)) => Err(error),
        (Err(e), None) => Err(failed(uri, scan.offset, e)),
        (Ok(()), None) if found => Ok(()),
        (Ok(()), None) => {
            let bad =
                BadItem::new("no_url", "expected a HAR file, found JSON without \"log\" and its \"entries\"", b"");
            Err(bad.ends(Place::new(uri, 0, 0)))
        }
    }
}

fn har_entry<R: BufRead>(options: &Options, scan: &mut Scanner<R>) -> io::Result<Option<UrlRecord>> {
    // Names as the lake has them; what a crawl does not need it does not get.
    const KEPT: &[(&[&str], &str)] = &[
        (&["request", "url"], "url"),
        (&["startedDateTime"], "ts"),
        (&["response", "status"], "status"),
        (&["response", "content", "mimeType"], "content_type"),
        (&["response", "content", "size"], "body_length"),
        (&["request", "method"], "method"),
    ];
    let roles = Roles::of(options, false, KEPT.iter().map(|(_, name)| *name));
    let mut fields = roles.fields();
    scan.walk(MAX_SCALAR, &mut |path, value| {
        let Some(at) = KEPT.iter().position(|(kept, _)| kept.iter().eq(path.iter())) else { return };
        let (Some(role), Some((_, name))) = (roles.each.get(at), KEPT.get(at)) else { return };
        let text = text_of(value);
        let text = whole_characters(&text);
        match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(serde_json::Value::String(text)) if text.is_empty() || *name == "method" && text == "GET" => {}
            Ok(serde_json::Value::String(text)) => fields.put(*role, name, Value::Text(&text)),
            // -1 is how HAR says that a size is not known.
            Ok(serde_json::Value::Number(_)) if text != "-1" => fields.put(*role, name, Value::Number(&text)),
            _ => {}
        }
    })?;
    Ok(fields.finish())
}
