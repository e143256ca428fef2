//! Separated files (RFC 4180: quoted fields may hold separators, quotes and line ends), with a header line or without.
//!
//! Files in the wild do not keep to it: [`rows`] says when a quote is data instead of the beginning of a field.
//!
//! A first row without a name that is known (`url`, `domain`, …) is a row by itself if one of its fields looks like a URL or a
//! host: `1,google.com`, as the lists of popular sites are. Its columns are then called `column_1`, `column_2`, … A name may have
//! dots, too: `are_dotted_names` tells it from a host.

mod rows;
mod separator;

use crate::fields::{Fields, Role, Roles, Value, has_field_mark, is_known, may_be_url};
use crate::file::text_of;
use crate::lines::BOM;
use crate::oddity::{self, has_scheme};
use crate::source::failed;
use crate::{BadItem, Options};
use rows::{Row, Rows, Shape};
pub(crate) use separator::table_of_urls;
use separator::{
    Ambiguous, NO_SEPARATOR, announced, behind_comments, check_uneven, is_list, sample, separator_of, separator_of_urls,
};
use std::borrow::Cow;
use std::io::BufRead;
use trawl_model::{Aside, Asides, DoorError, Items, Place};
use trawl_url::SuffixList;

/// Bytes of a row of names that an error shows.
const SHOWN: usize = 200;
/// Hosts that must look reversed before a table counts as one of reversed hosts: fewer may be names of a network of their own.
const MIN_REVERSED: usize = 3;

/// Reads a separated file from its beginning.
pub(crate) fn read(
    uri: &str,
    separator: Option<u8>,
    options: &Options,
    mut stream: impl BufRead,
    each: &mut Items<'_>,
    aside: &mut Asides<'_>,
) -> Result<(), DoorError> {
    let fail = |e| failed(uri, 0, e);
    let announced = announced(stream.fill_buf().map_err(fail)?);
    let separator = match options.separator.or(separator).or(announced) {
        Some(separator) => separator,
        None => {
            let head = behind_comments(stream.fill_buf().map_err(fail)?);
            let ambiguous = |found: Ambiguous| found.into_bad_item().ends(Place::new(uri, 0, 0));
            let by_urls = separator_of_urls(head).map_err(ambiguous)?;
            let found = by_urls.or_else(|| separator_of(head)).unwrap_or(b',');
            if is_list(head, found) {
                NO_SEPARATOR
            } else {
                if by_urls.is_none() {
                    check_uneven(head, found).map_err(ambiguous)?;
                }
                found
            }
        }
    };
    let below = sample(stream.fill_buf().map_err(fail)?, separator, announced.is_some().into());
    let mut rows = Rows::new(stream, separator);
    let next = |rows: &mut Rows<_>| rows.next().map_err(|e| failed(uri, rows.at, e));
    let mut first = next(&mut rows)?;
    if announced.is_some() {
        first = next(&mut rows)?;
    }
    let header = |row: Option<Row>, rows: &Rows<_>| {
        row.filter(|row| *row == Row::Whole).and_then(|_| Header::of(options, rows, &below))
    };
    let mut found = header(first, &rows);
    // A first line with names may begin with `#`; others that do are comments, but not what a quote in one joins to the next line.
    let is_comment = |rows: &Rows<_>| rows.raw.starts_with(b"#") && !rows.raw.contains(&b'\n');
    let mut reversed = None;
    if found.is_none() && is_comment(&rows) {
        while first.is_some() && is_comment(&rows) {
            reversed = reversed.or_else(|| reversed_name(&rows));
            first = next(&mut rows)?;
        }
        found = header(first, &rows);
    }
    if let Some(header) = &found
        && options.url_column.is_none()
        && header.holds_hosts()
        && let Some(name) = reversed.or_else(|| header.reversed_in(&below))
    {
        let message = format!(
            "expected hosts, found a column {name:?} of hosts in reverse (com.example): turn them round, or name a column with --url-column"
        );
        return Err(BadItem::new("no_url", message, b"").ends(Place::new(uri, 0, 0)));
    }
    let Some(header) = found else {
        let shown = text_of(rows.raw.get(..SHOWN).unwrap_or(&rows.raw).trim_ascii()).into_owned();
        let expected = options.url_column.as_deref().unwrap_or("url");
        let advice = match options.url_column {
            Some(_) => "",
            None => ": name the column with --url-column, by its number if there is no header",
        };
        let message = format!("expected a header line with a column {expected:?}, found {shown:?}{advice}");
        return Err(BadItem::new("no_url", message, b"").ends(Place::new(uri, 0, 0)));
    };
    if let Some(column) = header.roles.missing_time(options) {
        let message =
            format!("expected a column {column:?}, as --time-column says, found {:?}", header.names.join(","));
        return Err(BadItem::new("no_time", message, b"").ends(Place::new(uri, 0, 0)));
    }
    rows.shape = header.shape();
    let is_guessed = header.is_row && options.url_column.is_none();
    let mut row = first.filter(|_| header.is_row);
    loop {
        if let Some(row) = row {
            let blank =
                matches!(row, Row::Whole | Row::Doubtful) && rows.fields().all(|field| field.trim_ascii().is_empty());
            if !blank {
                let bad = |bad: BadItem| bad.at(Place::new(uri, rows.at, 0));
                let record = header.record(row, &rows);
                let is_odd =
                    is_guessed && record.is_ok() && rows.fields().filter(|field| has_scheme(field)).count() > 1;
                each(rows.at, record.map_err(bad))?;
                if is_odd {
                    aside(rows.at, Aside::Oddity(oddity::BESIDE, None));
                }
            }
        }
        row = next(&mut rows)?;
        if row.is_none() {
            return Ok(());
        }
    }
}

/// Whether a first line is that of a table with URLs: with a known name in its header, or with a host behind a number. No list of
/// lines has such a line, so it says more than a name does.
pub(crate) fn looks_like_table(line: &[u8]) -> bool {
    let Some(separator) = separator_of(line) else { return false };
    let fields: Vec<Cow<'_, str>> = line.split(|b| *b == separator).map(|field| text_of(field.trim_ascii())).collect();
    let name = |field: &Cow<'_, str>| may_be_url(field.trim_matches('"'));
    match &fields[..] {
        fields if fields.iter().any(name) && !fields.iter().any(|field| field.contains("://")) => true,
        [rank, host, ..] => {
            !rank.is_empty() && rank.bytes().all(|b| b.is_ascii_digit()) && looks_like_host(host.trim_matches('"'))
        }
        _ => false,
    }
}

/// Whether a field is a host name: labels, the last of which is not a number.
pub(crate) fn looks_like_host(text: &str) -> bool {
    let label = |label: &str| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let is_name = |last: &str| last.len() > 1 && !last.starts_with(|c: char| c.is_ascii_digit());
    text.len() <= 253 && text.split('.').all(label) && text.rsplit_once('.').is_some_and(|(_, last)| is_name(last))
}

/// Whether the fields of a first row that look like hosts are names of columns, as flattened JSON has them:
/// `response.status,request.url`. They are if one ends in a name that is known, or if a column goes on without any host.
fn are_dotted_names(fields: &[String], below: &[Vec<String>]) -> bool {
    // `host` is a top-level domain as well.
    let is_name = |label: &str| is_known(label) && !label.eq_ignore_ascii_case("host");
    let host_of = |text: &str| text.split(['/', '?', '#', ':']).next().is_some_and(looks_like_host);
    let ends_there = |column: usize| {
        let mut values = below.iter().filter_map(|row| row.get(column)).filter(|value| !value.is_empty()).peekable();
        values.peek().is_some() && !values.any(|value| host_of(value))
    };
    let mut hosts = fields.iter().enumerate().filter(|(_, field)| looks_like_host(field));
    hosts.any(|(at, field)| field.rsplit('.').next().is_some_and(is_name) || ends_there(at))
}

/// The name, in a comment above a table, of a column whose hosts begin with their last label, as in the web graphs of Common Crawl
/// (`#host_rev`). Read as hosts they are others, or none.
fn reversed_name<R: BufRead>(rows: &Rows<R>) -> Option<String> {
    let mut names = rows.fields().map(|name| text_of(name.trim_ascii()).into_owned()).filter(|_| rows.count() > 1);
    names.find(|name| name.ends_with("_rev") || name.ends_with("_reversed"))
}

/// Whether the first row of a table has names, where the column of the URLs was given by its number, as it is where there are none.
/// A row that is taken for names vanishes untold (`1,a.com/x`, `1,com`, `1,192.0.2.1`), so it takes a word in place of an address,
/// addresses below it, and no number beside it.
fn has_header(fields: &[String], at: usize, below: &[Vec<String>], has_dotted_names: bool) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_name = |text: &str| !text.is_empty() && (!is_address(text) || has_dotted_names && looks_like_host(text));
    let Some(field) = fields.get(at).filter(|field| is_name(field)) else { return false };
    let mut values = below.iter().filter_map(|row| row.get(at)).filter(|value| !value.is_empty()).peekable();
    let has_addresses = values.peek().is_none() || values.any(|value| is_address(value));
    // A number that has addresses below it is a name as well: programs number columns that have none.
    let has_numbers = fields.iter().enumerate().any(|(other, field)| other != at && is_number(field));
    has_addresses && (is_number(field) || !has_numbers)
}

/// Whether a text may be a URL or a host, as far as its marks say.
fn is_address(text: &str) -> bool {
    text.contains(['.', ':', '/'])
}

/// Whether a text begins as a URL does, with a scheme or with a host.
pub fn looks_like_url(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        (1..12).contains(&scheme.len())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    };
    let host = text.split(['/', '?', '#', ':']).next().unwrap_or_default();
    text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme)) || looks_like_host(host)
}

/// What the columns of a table are.
struct Header {
    names: Vec<String>,
    roles: Roles,
    /// Whether the first row holds values, not names.
    is_row: bool,
}

impl Header {
    /// By the first row of a table and the fields of those below it; `None` if none of its columns holds URLs.
    fn of<R: BufRead>(options: &Options, rows: &Rows<R>, below: &[Vec<String>]) -> Option<Self> {
        let names: Vec<String> = rows.fields().map(|name| text_of(name).trim().to_owned()).collect();
        let has_scheme =
            |field: &String| field.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', ' ']));
        let numbered = |column: &String| column.parse::<usize>().ok()?.checked_sub(1);
        // No name has a scheme: of `url,http://a.example/` and `http://a.example/,1` neither `url` nor `1` names its column.
        let has_values = match &options.url_column {
            None => names.iter().any(has_scheme),
            Some(column) => numbered(column).and_then(|at| names.get(at)).is_some_and(|field| is_address(field)),
        };
        let roles = Roles::of(options, false, names.iter().map(|name| &**name));
        if roles.has_url() && !has_values {
            return Some(Self { names, roles, is_row: false });
        }
        let has_names = are_dotted_names(&names, below);
        let is_host = |field: &String| !has_names && looks_like_host(field);
        let (at, role) = match &options.url_column {
            // A column may be named by its number.
            Some(column) => {
                let at = numbered(column)?;
                (at, if names.get(at)?.contains("://") { Role::Url } else { Role::Host })
            }
            None => names
                .iter()
                .position(has_scheme)
                .map(|at| (at, Role::Url))
                .or_else(|| names.iter().position(is_host).map(|at| (at, Role::Host)))?,
        };
        // A column that was named by its number may have a name all the same.
        let is_named = options.url_column.is_none() || has_header(&names, at, below, has_names);
        let is_row = names.get(at).is_some_and(|field| has_scheme(field) || is_host(field) || !is_named);
        let mut each = vec![Role::Extra; names.len()];
        *each.get_mut(at)? = role;
        if let Some(slot) = options.time_column.as_ref().and_then(numbered).and_then(|at| each.get_mut(at)) {
            *slot = Role::Ts;
        }
        let names = if is_row { (1..=names.len()).map(|n| format!("column_{n}")).collect() } else { names };
        Some(Self { names, roles: Roles::guessed(options, each), is_row })
    }

    /// Whether its URLs are bare hosts.
    fn holds_hosts(&self) -> bool {
        self.roles.each.contains(&Role::Host)
    }

    /// The column of the hosts, if most of those in the first rows begin with a top-level domain and end in none: the vertices of
    /// Common Crawl's web graphs are such a table, without a header that says so. Read as hosts, they are others.
    fn reversed_in(&self, below: &[Vec<String>]) -> Option<String> {
        let at = self.shape()?.url;
        let column = below.iter().filter_map(|row| row.get(at));
        let hosts: Vec<&str> = column.map(String::as_str).filter(|host| looks_like_host(host)).collect();
        let list = SuffixList::builtin();
        let is_top = |label: Option<&str>| label.is_some_and(|label| list.has_top_level(label));
        let is_reversed = |host: &&&str| is_top(host.split('.').next()) && !is_top(host.rsplit('.').next());
        let reversed = hosts.iter().filter(is_reversed).count();
        let name = self.names.get(at)?;
        (reversed >= MIN_REVERSED && reversed * 2 > hosts.len()).then(|| name.clone())
    }

    /// What the rows look like.
    fn shape(&self) -> Option<Shape> {
        let url = self.roles.each.iter().position(|role| matches!(role, Role::Url | Role::Host))?;
        Some(Shape { columns: self.names.len(), url })
    }

    /// Whether a row is the header once more, as where tables were joined by `cat`: "url" would be taken for a host.
    fn is_repeated_in<R: BufRead>(&self, rows: &Rows<R>) -> bool {
        let names = rows.fields().map(|field| text_of(field.strip_prefix(BOM).unwrap_or(field)));
        !self.is_row && rows.count() == self.names.len() && self.names.iter().zip(names).all(|(a, b)| a == b.trim())
    }

    fn record<R: BufRead>(&self, row: Row, rows: &Rows<R>) -> Result<trawl_model::UrlRecord, BadItem> {
        let bad = |code, message| BadItem::new(code, message, rows.raw.trim_ascii_end());
        if row == Row::TooLong {
            return Err(bad("line_too_long", "expected a row of at most 4 MiB"));
        }
        if row == Row::Cut {
            return Err(bad("quote", "expected the end of a quoted field, found the end of the file"));
        }
        if self.is_repeated_in(rows) {
            return Err(bad("header", "expected a row, found the header line again"));
        }
        if rows.count() > self.names.len() {
            return Err(bad("columns", "expected as many fields as the header has, found more"));
        }
        let mut fields: Fields = self.roles.fields();
        let cells = self.names.iter().zip(&self.roles.each).zip(rows.fields());
        for ((name, role), value) in cells.filter(|(_, value)| !value.is_empty()) {
            let is_url = matches!(role, Role::Url | Role::Host);
            let value = if is_url { value.trim_ascii() } else { value };
            if value.is_empty() {
                continue;
            }
            if is_url {
                check_url(value).map_err(|(code, message)| bad(code, message))?;
            }
            if is_url && row == Row::Doubtful && !looks_like_url(&text_of(value)) {
                let message = "expected a url in a line at or behind a quote that does not match, found other text";
                return Err(bad("quote", message));
            }
            fields.put(*role, name, Value::Text(&text_of(value)));
        }
        fields.finish().ok_or_else(|| bad("no_url", "expected a url in the row, found none"))
    }
}

/// Finds what shows that a field is not a URL alone: a URL parser would drop the line end, or escape the quote or the mark between
/// fields, and give a URL that is not in the list.
fn check_url(value: &[u8]) -> Result<(), (&'static str, &'static str)> {
    if value.iter().any(|b| matches!(b, b'\n' | b'\r')) {
        return Err(("line_end", "expected a url, found a line end in it"));
    }
    if has_field_mark(value) {
        let message = "expected a url, found a character in it that separates fields elsewhere (U+0001 to U+0003, U+001C to U+001F): give it with --separator";
        return Err(("columns", message));
    }
    let quotes = value.iter().filter(|b| **b == b'"').count();
    if quotes % 2 == 1 && (value.starts_with(b"\"") || value.ends_with(b"\"")) {
        return Err(("quote", "expected a url, found a quote that is not closed or not opened"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
