//! Separated files (RFC 4180: quoted fields may hold separators, quotes and line ends), with a header line or without.
//!
//! Files in the wild do not keep to it: [`rows`] says when a quote is data instead of the beginning of a field.
//!
//! A first row without a name that is known (`url`, `domain`, …) is a row by itself if one of its fields looks like a URL or a
//! host: `1,google.com`, as the lists of popular sites are. Its columns are then called `column_1`, `column_2`, …

mod rows;

use crate::fields::{Fields, Role, Roles, Value, may_be_url};
use crate::file::text_of;
use crate::lines::BOM;
use crate::source::failed;
use crate::{BadItem, Options};
use rows::{Row, Rows, Shape};
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::BufRead;
use trawl_model::{DoorError, Items, Place};

/// What may separate fields, the most usual first.
const SEPARATORS: &[u8] = b",;\t|";
/// Stands between the fields of no row.
const NO_SEPARATOR: u8 = 0;
/// Bytes of a row of names that an error shows.
const SHOWN: usize = 200;

/// Reads a separated file from its beginning.
pub(crate) fn read(
    uri: &str,
    separator: Option<u8>,
    options: &Options,
    mut stream: impl BufRead,
    each: &mut Items<'_>,
) -> Result<(), DoorError> {
    let fail = |e| failed(uri, 0, e);
    let announced = announced(stream.fill_buf().map_err(fail)?);
    let separator = match options.separator.or(separator).or(announced) {
        Some(separator) => separator,
        None => {
            let head = behind_comments(stream.fill_buf().map_err(fail)?);
            let found = separator_of_urls(head).or_else(|| separator_of(head)).unwrap_or(b',');
            if is_list(head, found) { NO_SEPARATOR } else { found }
        }
    };
    let mut rows = Rows::new(stream, separator);
    let next = |rows: &mut Rows<_>| rows.next().map_err(|e| failed(uri, rows.at, e));
    let mut first = next(&mut rows)?;
    if announced.is_some() {
        first = next(&mut rows)?;
    }
    let header =
        |row: Option<Row>, rows: &Rows<_>| row.filter(|row| *row == Row::Whole).and_then(|_| Header::of(options, rows));
    let mut found = header(first, &rows);
    // A first line with names may begin with `#`; others that do are comments, but not what a quote in one joins to the next line.
    let is_comment = |rows: &Rows<_>| rows.raw.starts_with(b"#") && !rows.raw.contains(&b'\n');
    if found.is_none() && is_comment(&rows) {
        while first.is_some() && is_comment(&rows) {
            first = next(&mut rows)?;
        }
        found = header(first, &rows);
    }
    let Some(header) = found else {
        let shown = text_of(rows.raw.get(..SHOWN).unwrap_or(&rows.raw).trim_ascii()).into_owned();
        let expected = options.url_column.as_deref().unwrap_or("url");
        let message = format!("expected a header line with a column {expected:?}, found {shown:?}");
        return Err(BadItem::new("no_url", message, b"").ends(Place::new(uri, 0, 0)));
    };
    rows.shape = header.shape();
    let mut row = first.filter(|_| header.is_row);
    loop {
        if let Some(row) = row {
            let blank =
                matches!(row, Row::Whole | Row::Doubtful) && rows.fields().all(|field| field.trim_ascii().is_empty());
            if !blank {
                let bad = |bad: BadItem| bad.at(Place::new(uri, rows.at, 0));
                each(rows.at, header.record(row, &rows).map_err(bad))?;
            }
        }
        row = next(&mut rows)?;
        if row.is_none() {
            return Ok(());
        }
    }
}

/// The separator that a first line names for Excel: `sep=;`.
fn announced(head: &[u8]) -> Option<u8> {
    let text = head.strip_prefix(BOM).unwrap_or(head);
    let line = text.split(|b| matches!(b, b'\n' | b'\r')).next().unwrap_or_default();
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let (name, separator) = line.split_at_checked(4)?;
    match separator {
        [separator] if name.eq_ignore_ascii_case(b"sep=") => Some(*separator),
        _ => None,
    }
}

/// Skips comment lines at the beginning of a text. A header line is not a comment, even if it begins with `#`.
fn behind_comments(head: &[u8]) -> &[u8] {
    let mut rest = head.strip_prefix(BOM).unwrap_or(head);
    let line_end = |text: &[u8]| memchr::memchr(b'\n', text);
    if line_end(rest).and_then(|end| rest.get(..end)).is_some_and(looks_like_table) {
        return head;
    }
    while rest.starts_with(b"#")
        && let Some((_, after)) = line_end(rest).and_then(|end| rest.split_at_checked(end + 1))
    {
        rest = after;
    }
    rest
}

/// What separates the fields of a first line: of the usual characters the one that is there most often, outside quotes.
pub(crate) fn separator_of(text: &[u8]) -> Option<u8> {
    let mut counts = [0u32; SEPARATORS.len()];
    let mut quoted = false;
    for byte in text.iter().skip_while(|b| b.is_ascii_whitespace()) {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            byte => {
                let found = SEPARATORS.iter().position(|separator| separator == byte);
                if let Some(count) = found.and_then(|at| counts.get_mut(at)) {
                    *count += 1;
                }
            }
        }
    }
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    counts.iter().position(|count| *count == most).and_then(|at| SEPARATORS.get(at)).copied()
}

/// What separates the fields of a table that begins with a row, not with names: URLs hold commas and semicolons, so how often a
/// character is there says little. It has to be there equally often in every row, and to leave URLs that are whole. Of several,
/// one that stands beside quotes; else that which leaves most URLs apart (a comma inside them leaves one for many); else the
/// most usual.
fn separator_of_urls(head: &[u8]) -> Option<u8> {
    let rows = whole_rows(head);
    rows.first().filter(|row| memchr::memmem::find(row, b"://").is_some())?;
    let candidates = SEPARATORS.iter().copied().filter(|separator| separates(&rows, *separator));
    let candidates: Vec<u8> = candidates.collect();
    let is_beside_quote = |separator: &&u8| {
        let pairs = [[**separator, b'"'], [b'"', **separator]];
        rows.iter().any(|row| pairs.iter().any(|pair| memchr::memmem::find(row, pair).is_some()))
    };
    let urls = |separator: u8| rows.iter().filter_map(|row| url_in(row, separator)).collect::<HashSet<_>>().len();
    let by_quotes = candidates.iter().find(is_beside_quote).copied();
    // Of equals the last is taken, so the most usual comes last.
    by_quotes.or_else(|| candidates.iter().rev().copied().max_by_key(|separator| urls(*separator)))
}

/// Whether a character may be what separates the fields of these rows. Text and URLs hold it otherwise: `text/html; charset=utf-8`,
/// `Home | Example`, `/x;jsessionid=1`.
fn separates(rows: &[&[u8]], separator: u8) -> bool {
    let is_inside = |field: &[u8]| {
        let name = field.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        field.starts_with(b" ") || separator == b';' && name > 0 && field.get(name) == Some(&b'=')
    };
    let mut counts = rows.iter().map(|row| fields_of(row, separator).count());
    counts.next().is_some_and(|first| first > 1 && counts.all(|count| count == first))
        && !rows.iter().any(|row| fields_of(row, separator).skip(1).any(is_inside))
        && rows.first().is_some_and(|row| url_in(row, separator).is_some())
        && !rows.iter().filter_map(|row| url_in(row, separator)).any(|url| url.contains(char::is_whitespace))
}

/// The first field of a row that is a URL.
fn url_in(row: &[u8], separator: u8) -> Option<Cow<'_, str>> {
    let fields = fields_of(row, separator).map(|field| text_of(field.trim_ascii()));
    fields.into_iter().find(|field| {
        let scheme = field.trim_matches('"').split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()))
    })
}

fn fields_of(row: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    row.split(move |b| {
        quoted ^= *b == b'"';
        !quoted && *b == separator
    })
}

/// The rows of how a table begins, but for one that is cut; empty lines are none.
fn whole_rows(head: &[u8]) -> Vec<&[u8]> {
    let text = head.strip_prefix(BOM).unwrap_or(head);
    let mut quoted = false;
    let mut rows: Vec<&[u8]> = text
        .split_inclusive(|b| {
            quoted ^= *b == b'"';
            !quoted && matches!(b, b'\n' | b'\r')
        })
        .collect();
    // All there is may be one row without its end.
    if rows.len() > 1 && !rows.last().is_some_and(|row| row.ends_with(b"\n") || row.ends_with(b"\r")) {
        rows.pop();
    }
    rows.retain(|row| !row.trim_ascii().is_empty());
    rows
}

/// Whether a text is a list of URLs, some of which hold the separator and others do not: it is part of them, then.
fn is_list(head: &[u8], separator: u8) -> bool {
    // The last line may be cut.
    let whole = memchr::memrchr(b'\n', head).and_then(|end| head.get(..end)).unwrap_or_default();
    let lines = || whole.split(|b| *b == b'\n').map(|line| text_of(line.trim_ascii())).filter(|line| !line.is_empty());
    let is_url = |line: Cow<'_, str>| {
        line.split_once("://").is_some_and(|(scheme, _)| scheme.bytes().all(|b| b.is_ascii_alphanumeric()))
            && !line.contains(['"', ' ', '\t'])
    };
    let separated = |line: Cow<'_, str>| line.contains(char::from(separator));
    lines().all(is_url) && lines().any(separated) && !lines().all(separated)
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

/// Whether a text begins as a URL does, with a scheme or with a host.
pub(crate) fn looks_like_url(text: &str) -> bool {
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
    /// By the first row of a table; `None` if none of its columns holds URLs.
    fn of<R: BufRead>(options: &Options, rows: &Rows<R>) -> Option<Self> {
        let names: Vec<String> = rows.fields().map(|name| text_of(name).trim().to_owned()).collect();
        let roles = Roles::of(options, false, names.iter().map(|name| &**name));
        if roles.has_url() {
            return Some(Self { names, roles, is_row: false });
        }
        let has_scheme =
            |field: &String| field.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', ' ']));
        let is_host = |field: &String| looks_like_host(field);
        let (at, role) = match &options.url_column {
            // A column may be named by its number.
            Some(column) => {
                let at = column.parse::<usize>().ok()?.checked_sub(1)?;
                (at, if names.get(at)?.contains("://") { Role::Url } else { Role::Host })
            }
            None => names
                .iter()
                .position(has_scheme)
                .map(|at| (at, Role::Url))
                .or_else(|| names.iter().position(is_host).map(|at| (at, Role::Host)))?,
        };
        // A column that was named by its number may have a name all the same.
        let is_row = names.get(at).is_some_and(|field| has_scheme(field) || is_host(field));
        let mut each = vec![Role::Extra; names.len()];
        *each.get_mut(at)? = role;
        let by_number = |column: &String| column.parse::<usize>().ok()?.checked_sub(1);
        if let Some(slot) = options.time_column.as_ref().and_then(by_number).and_then(|at| each.get_mut(at)) {
            *slot = Role::Ts;
        }
        let numbered = (1..=names.len()).map(|n| format!("column_{n}")).collect();
        let names = if is_row { numbered } else { names };
        Some(Self { names, roles: Roles::guessed(options, each), is_row })
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

/// Finds what shows that a field is not a URL alone: a URL parser would drop the line end, or escape the quote, and give a URL
/// that nobody wrote.
fn check_url(value: &[u8]) -> Result<(), (&'static str, &'static str)> {
    if value.iter().any(|b| matches!(b, b'\n' | b'\r')) {
        return Err(("line_end", "expected a url, found a line end in it"));
    }
    let quotes = value.iter().filter(|b| **b == b'"').count();
    if quotes % 2 == 1 && (value.starts_with(b"\"") || value.ends_with(b"\"")) {
        return Err(("quote", "expected a url, found a quote that is not closed or not opened"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A URL and its extras, or why there is none.
    type Read = Result<(String, String), &'static str>;

    fn read_text(options: &Options, text: &str) -> Result<Vec<Read>, String> {
        let mut out = Vec::new();
        let mut each = |_, item: Result<trawl_model::UrlRecord, DoorError>| {
            out.push(match item {
                Ok(record) => Ok((record.url, record.extras.unwrap_or_default())),
                Err(error) => Err(error.source.downcast::<BadItem>().unwrap().code),
            });
            Ok(())
        };
        read("x", None, options, text.as_bytes(), &mut each).map_err(|e| e.to_string())?;
        Ok(out)
    }

    #[test]
    fn separators_are_found() {
        for (text, expected) in [
            ("a,b", Some(b',')),
            ("a;b;\"c,d,e,f\"", Some(b';')),
            ("a\tb,c\td\n,,,,,", Some(b'\t')),
            ("a|b", Some(b'|')),
            ("\n\na;b", Some(b';')),
            ("a\nb,c", None),
            ("", None),
        ] {
            assert_eq!(separator_of(text.as_bytes()), expected, "{text:?}");
        }
        let expected = Ok(vec![Ok(("http://a.com/?a,b".to_owned(), r#"{"n":"1"}"#.to_owned()))]);
        for text in ["n;url\n1;http://a.com/?a,b\n", "n\turl\n1\thttp://a.com/?a,b", "n|url\r\n1|http://a.com/?a,b\r\n"]
        {
            assert_eq!(read_text(&Options::default(), text), expected, "{text:?}");
        }
        let asked = Options { separator: Some(b'~'), ..Options::default() };
        assert_eq!(read_text(&asked, "n~url\n1~http://a.com/?a,b"), expected);
    }

    #[test]
    fn commas_of_urls_in_a_list_that_is_called_a_table() {
        let text = "http://a.com/?a=1,2\nhttp://b.com/\nhttp://c.com/a,b,c\n";
        let row = |url: &str| Ok((url.to_owned(), String::new()));
        let expected = vec![row("http://a.com/?a=1,2"), row("http://b.com/"), row("http://c.com/a,b,c")];
        assert_eq!(read_text(&Options::default(), text).unwrap(), expected);
        let table = read_text(&Options::default(), "http://a.com/,1\nhttp://b.com/,2\n").unwrap();
        assert_eq!(table[1], Ok(("http://b.com/".to_owned(), r#"{"column_2":"2"}"#.to_owned())));
    }

    #[test]
    fn a_line_for_excel_and_comments_are_no_rows() {
        let row = |url: &str, extras: &str| Ok((url.to_owned(), extras.to_owned()));
        for text in ["\u{feff}sep=;\r\nurl;n\r\nhttp://a.com/?a,b,c;1\r\n", "\"sep=|\"\nn|url\n1|http://a.com/?a,b,c\n"]
        {
            let found = read_text(&Options::default(), text).unwrap();
            assert_eq!(found, [row("http://a.com/?a,b,c", r#"{"n":"1"}"#)], "{text:?}");
        }
        let text = "#####\n# list;url;and, more\n#\n\"7\";\"http://a.com/?a,b,c\"\n\"8\";\"http://b.com/\"\n";
        let found = read_text(&Options::default(), text).unwrap();
        assert_eq!(
            found,
            [row("http://a.com/?a,b,c", r#"{"column_1":"7"}"#), row("http://b.com/", r#"{"column_1":"8"}"#)]
        );
        let found = read_text(&Options::default(), "#,url\n1,http://a.com/\n").unwrap();
        assert_eq!(found, [row("http://a.com/", r##"{"#":"1"}"##)]);
        for text in ["# a\n# b\n", "# a,\"b\n\"7\",\"http://a.com/\"\n"] {
            assert!(read_text(&Options::default(), text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn separators_in_urls_of_tables_without_names() {
        for (text, expected) in [
            ("http://a.com/0,1518,7,00.html;x\nhttp://a.com/0,1518,8,00.html;y\n", Some(b';')),
            ("http://a.com/,text/html; charset=utf-8,200\nhttp://a.com/b,text/html; charset=utf-8,404\n", Some(b',')),
            ("http://a.com/,Home | A,1\nhttp://a.com/b,Page | A,2\n", Some(b',')),
            ("http://a.com/;jsessionid=1,200\nhttp://a.com/b;jsessionid=2,200\n", Some(b',')),
            ("http://a.com/,news;sport\nhttp://b.com/,news;tv\n", Some(b',')),
            ("\"http://a.com/a,b\";\"x\"\n\"http://b.com/c,d\";\"y\"\n", Some(b';')),
            ("http://a.com/a,b\tx\nhttp://b.com/\ty,z\n", Some(b'\t')),
            ("\thttp://a.com/a,b\r\nx\thttp://b.com/\r\n", Some(b'\t')),
            ("\u{feff}\"http://a.com/a,b\"|\"x\n,|y\"\nhttp://b.com/|y,z\nhttp://cut", Some(b'|')),
            ("1,http://a.com/x;y=1\n2,http://b.com/\n", Some(b',')),
            ("1,http://a.com/x;y=1", Some(b',')),
            ("http://a.com/a,b\nhttp://b.com/\n", None),
            ("url;x,y,z\nhttp://a.com/;1\n", None),
            ("", None),
        ] {
            assert_eq!(separator_of_urls(text.as_bytes()), expected, "{text:?}");
        }
        let text = "http://a.com/0,1518,7,00.html;x\nhttp://a.com/0,1518,8,00.html;y\n";
        let found = urls(&Options::default(), text);
        assert_eq!(
            found,
            [Ok("http://a.com/0,1518,7,00.html".to_owned()), Ok("http://a.com/0,1518,8,00.html".to_owned())]
        );
    }

    #[test]
    fn a_header_in_the_middle_is_no_host() {
        let text = "url,n\nhttp://a.com/,1\nurl,n\n\u{feff}url, n\nurl,2\nhttp://b.com/,3\n";
        let row = |url: &str, n: u8| Ok((url.to_owned(), format!("{{\"n\":\"{n}\"}}")));
        let expected = [row("http://a.com/", 1), Err("header"), Err("header"), row("url", 2), row("http://b.com/", 3)];
        assert_eq!(read_text(&Options::default(), text).unwrap(), expected);
        assert_eq!(read_text(&Options::default(), "url\nurl\n").unwrap(), [Err("header")]);
    }

    #[test]
    fn tables_without_a_header() {
        let row = |url: &str, extras: &str| Ok((url.to_owned(), extras.to_owned()));
        let expected = [row("google.com", r#"{"column_1":"1"}"#), row("youtube.com", r#"{"column_1":"2"}"#)];
        assert_eq!(read_text(&Options::default(), "1,google.com\r\n2,youtube.com\r\n").unwrap(), expected);
        let crawl = Options::crawl();
        assert_eq!(read_text(&crawl, "1,google.com\n").unwrap(), [row("http://google.com/", r#"{"column_1":"1"}"#)]);
        let urls = read_text(&Options::default(), "x;http://a.com/;b.com\ny;http://c.com/\n,,\n");
        let expected = [
            row("http://a.com/", r#"{"column_1":"x","column_3":"b.com"}"#),
            row("http://c.com/", r#"{"column_1":"y"}"#),
            Err("no_url"),
        ];
        assert_eq!(urls.unwrap(), expected);
        let second = Options { url_column: Some("2".into()), time_column: Some("1".into()), ..Options::default() };
        assert_eq!(read_text(&second, "2026,a\n2026,b.com\n").unwrap(), [row("b.com", "")]);
        assert_eq!(read_text(&second, "2026,a.com\n").unwrap(), [row("a.com", "")]);
        for (options, text) in [(&crawl, "a,b\n1,2\n"), (&crawl, ""), (&crawl, "1,2.5\n"), (&second, "a\n")] {
            let error = read_text(options, text).unwrap_err();
            assert!(error.contains("expected a header line with a column"), "{error}");
        }
        let error = read_text(&Options::default(), "id,link\n1,2\n").unwrap_err();
        assert!(error.contains(r#"found "id,link""#), "{error}");
    }

    #[test]
    fn a_domain_or_host_alone_is_enough() {
        let found = read_text(&Options::default(), "GlobalRank,TldRank,Domain\n1,1,google.com\n");
        let extras = r#"{"GlobalRank":"1","TldRank":"1"}"#;
        assert_eq!(found.unwrap(), [Ok(("google.com".to_owned(), extras.to_owned()))]);
    }

    #[test]
    fn tables_are_told_from_lines() {
        let of = |line: &str| looks_like_table(line.as_bytes());
        for line in
            ["url,ts", "id;\"URL\";x", "GlobalRank,Domain", "n\turl", "1,google.com", "1\tgoogle.com", "7;a.com;x"]
        {
            assert!(of(line), "{line}");
        }
        for line in
            ["url", "http://a.com/,x", "url,http://a.com/", "a,b", "1,2", "1,a b.com", "com,a)/ 2026 {}", ",a.com"]
        {
            assert!(!of(line), "{line}");
        }
    }

    fn urls(options: &Options, text: &str) -> Vec<Result<String, &'static str>> {
        read_text(options, text).unwrap().into_iter().map(|row| row.map(|(url, _)| url)).collect()
    }

    #[test]
    fn a_stray_quote_costs_no_row() {
        let options = Options::default();
        for (name, first, row) in [
            ("bare hosts", "url,t\na.com,\"5 inch\n", "hN.com,x\n"),
            ("short rows", "url,t,z\nhttp://a.com/,\"5 inch,\n", "http://hN.com/,x\n"),
            ("a URL behind it", "n,url\n\"5 inch,a.com/x?y\n", "x,hN.com:80/\n"),
        ] {
            let text: String = (0..50).map(|n| row.replace('N', &n.to_string())).collect();
            let found = urls(&options, &format!("{first}{text}"));
            assert_eq!(found.iter().filter(|url| url.is_ok()).count(), 51, "{name}");
        }
        // What is not a URL is not made one.
        let found = urls(&options, "t,url\nx,\"a.com\nhello, world\nx,localhost\n1,b.com\n");
        assert_eq!(found, [Err("quote"), Err("quote"), Err("quote"), Ok("b.com".to_owned())]);
    }

    #[test]
    fn rows_inside_a_text_are_not_rows() {
        for (text, expected) in [
            (
                "text,url\n\"Hello\nsee also, http://foo.com/\nbye\",http://a.com/\nx,http://b.com/\n",
                ["http://a.com/", "http://b.com/"],
            ),
            (
                "url,text\nhttp://a.com/,\"links:\nhttp://x.com/,\nhttp://y.com/, and more\"\nhttp://b.com/,z\n",
                ["http://a.com/", "http://b.com/"],
            ),
            ("domain,text\na.com,\"first\nexample.org, a site\nend\"\nb.com,z\n", ["a.com", "b.com"]),
        ] {
            assert_eq!(urls(&Options::default(), text), expected.map(|url| Ok(url.to_owned())), "{text}");
        }
    }

    #[test]
    fn blanks_around_a_url_are_not_part_of_it() {
        let found = urls(&Options::default(), "url,x\n http://a.com/ ,1\n\thttp://a.com/,2\n  ,3\n");
        assert_eq!(found, [Ok("http://a.com/".to_owned()), Ok("http://a.com/".to_owned()), Err("no_url")]);
    }

    /// A field as Python's `csv.writer` writes it.
    fn written(field: &str) -> String {
        let special = field.contains([',', '"', '\n', '\r']);
        if special { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
    }

    /// Texts that make it hard: lines that look like rows, and every mark of the format.
    fn text(rng: &mut u64, marks: &[&str]) -> String {
        let mut next = |most: u64| {
            *rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*rng >> 33) % most
        };
        (0..next(12)).map(|_| marks[next(marks.len() as u64) as usize]).collect()
    }

    #[test]
    fn what_a_csv_writer_writes_is_read_back() {
        let marks =
            ["\n", "\r\n", "\"", ",", ", ", " ", "x", "http://no.example/", "no.example", "\n5,y,no.example", "é"];
        let rng = &mut 15;
        for _ in 0..300 {
            let place = (*rng >> 40) as usize % 3;
            let names: Vec<&str> = (0..3).map(|at| if at == place { "url" } else { ["a", "b", "c"][at] }).collect();
            let mut file = names.join(",") + "\r\n";
            let mut expected = Vec::new();
            for n in 0..20 {
                let url = format!("http://h{n}.example/?a,b");
                let row: Vec<String> =
                    (0..3).map(|at| written(&if at == place { url.clone() } else { text(rng, &marks) })).collect();
                file += &(row.join(",") + "\r\n");
                expected.push(Ok(url));
            }
            assert_eq!(urls(&Options::default(), &file), expected, "{file}");
        }
    }

    #[test]
    fn stray_quotes_lose_and_invent_nothing() {
        // No separators: a field of two more is a URL to nobody.
        let marks = ["\"", "\"\"", " ", "x", "5"];
        let rng = &mut 16;
        for round in 0..500 {
            let mut file = "t,url,u\n".to_owned();
            let lines = 30;
            for n in 0..lines {
                let (before, behind) = (text(rng, &marks), text(rng, &marks));
                file += &format!("{before},http://h{n}.example/,{behind}\n");
            }
            let found = read_text(&Options::default(), &file).unwrap();
            let mut seen = 0;
            for row in &found {
                let Ok((url, extras)) = row else { continue };
                seen += 1;
                let is_known = (0..lines).any(|n| *url == format!("http://h{n}.example/"));
                assert!(is_known, "round {round}: {url} {extras}\n{file}");
            }
            // Every line is a row, a reject, or a line of a field that RFC 4180 closes.
            let inside: usize =
                found.iter().map(|row| row.as_ref().map_or(0, |(_, extras)| extras.matches("\\n").count())).sum();
            let rejected_lines = rejected_line_ends(&file);
            assert!(seen > 0 && found.len() + inside + rejected_lines >= lines, "round {round}\n{file}");
        }
    }

    /// Line ends inside rows that were rejected.
    fn rejected_line_ends(file: &str) -> usize {
        let mut ends = 0;
        let mut each = |_, item: Result<trawl_model::UrlRecord, DoorError>| {
            if let Err(error) = item {
                let text = error.source.downcast::<BadItem>().unwrap().text;
                ends += text.as_bytes().iter().filter(|b| **b == b'\n').count();
            }
            Ok(())
        };
        read("x", None, &Options::default(), file.as_bytes(), &mut each).unwrap();
        ends
    }
}
