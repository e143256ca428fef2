//! Finds out what separates the fields of a table.

use super::looks_like_table;
use crate::BadItem;
use crate::file::text_of;
use crate::lines::{BOM, HEAD};
use std::borrow::Cow;
use std::collections::HashSet;

/// What may separate fields, the most usual first.
const SEPARATORS: &[u8] = b",;\t|";
/// Rows behind the first that are looked at.
const SAMPLE: usize = 100;
/// Stands between the fields of no row.
pub(super) const NO_SEPARATOR: u8 = 0;

/// The separator that a first line names for Excel: `sep=;`.
pub(super) fn announced(head: &[u8]) -> Option<u8> {
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
pub(super) fn behind_comments(head: &[u8]) -> &[u8] {
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
pub(super) fn separator_of(text: &[u8]) -> Option<u8> {
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

/// Two characters that may both separate the fields of a table, and the URL of a row by each.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ambiguous(pub [(u8, String); 2]);

impl Ambiguous {
    /// The error that ends the reading: a wrong guess would cut every URL of the table, and no row would show it.
    pub fn into_bad_item(self) -> BadItem {
        let shown = |url: String| url.chars().take(super::SHOWN).collect::<String>();
        let Self([(one, short), (other, long)]) = self;
        let (one, short, long) = (char::from(one), shown(short), shown(long));
        let message = if other == NO_SEPARATOR {
            format!(
                "expected to tell whether {one:?} separates fields or is part of the URLs, one of which is {short:?} or {long:?}: give --separator {one:?}, or --format lines (or the ending .txt) where each line is a URL"
            )
        } else {
            let other = char::from(other);
            format!(
                "expected one character that can separate the fields, found {one:?} and {other:?}, by which the first URL is {short:?} or {long:?}: give the right one with --separator"
            )
        };
        BadItem::new("separator", message, b"")
    }
}

/// What separates the fields of a table that begins with a row, not with names: URLs hold commas and semicolons, so how often a
/// character is there says little. It has to be there equally often in every row, and to leave URLs that are whole. Of several,
/// one that stands beside quotes; else a tab, which no URL holds; else that which leaves most URLs apart (a comma inside them
/// leaves one for many); else that by which all URLs end as URLs mostly do. Where none of this decides and the URLs would differ,
/// only the user knows.
pub(super) fn separator_of_urls(head: &[u8]) -> Result<Option<u8>, Ambiguous> {
    let rows = whole_rows(head);
    if !begins_with_url(&rows) {
        return Ok(None);
    }
    let candidates: Vec<u8> = SEPARATORS.iter().copied().filter(|separator| separates(&rows, *separator)).collect();
    let is_beside_quote = |separator: &&u8| {
        let pairs = [[**separator, b'"'], [b'"', **separator]];
        rows.iter().any(|row| pairs.iter().any(|pair| memchr::memmem::find(row, pair).is_some()))
    };
    let is_tab = |separator: &&u8| **separator == b'\t';
    if let Some(found) = candidates.iter().find(is_beside_quote).or_else(|| candidates.iter().find(is_tab)) {
        return Ok(Some(*found));
    }
    let Some(found) = best(&rows, candidates)? else { return Ok(None) };
    // Where the URL of one row ends as URLs mostly do, what follows it is another field, and so it is in all rows.
    let doubt = rows.first().and_then(|row| longer(row, found));
    match doubt.filter(|_| rows.iter().all(|row| longer(row, found).is_some())) {
        Some(ambiguous) => Err(ambiguous),
        None => Ok(Some(found)),
    }
}

/// What separates the fields of a text without names, of several rows, that is a table and no list of lines: something other than a tab
/// may separate what stands beside the URLs, and is there equally often in every row. `head` is how the text begins, as
/// [`crate::lines::first_lines`] gives it.
pub(crate) fn table_of_urls(head: &[u8]) -> Option<u8> {
    let mut head = head.to_vec();
    // The last row of a short text is whole, even if its end was trimmed.
    if head.len() < HEAD / 2 {
        head.push(b'\n');
    }
    let found = match separator_of_urls(&head) {
        Ok(found) => found,
        Err(Ambiguous([(one, _), _])) => Some(one),
    };
    found.filter(|separator| *separator != b'\t' && whole_rows(&head).len() > 1)
}

/// Refuses a table that begins with a row, whose rows this character does not separate evenly, if it may cut a URL: URLs without
/// quotes hold it, then, in some rows and not in others.
pub(super) fn check_uneven(head: &[u8], separator: u8) -> Result<(), Ambiguous> {
    let rows = whole_rows(head);
    if !begins_with_url(&rows) {
        return Ok(());
    }
    rows.iter().find_map(|row| longer(row, separator)).map_or(Ok(()), Err)
}

fn begins_with_url(rows: &[&[u8]]) -> bool {
    rows.first().is_some_and(|row| memchr::memmem::find(row, b"://").is_some())
}

/// The URL of a row by this separator, and the longer one that may be meant: with the fields behind it, as far as a URL may hold them
/// (`/article-7,00.html`, `/maps/@52.5,13.4,15z`). `None` if the next one holds what no URL does, or if the URL ends as URLs mostly do.
fn longer(row: &[u8], separator: u8) -> Option<Ambiguous> {
    let between = match separator {
        b',' => ",",
        b';' => ";",
        // In URLs, tabs and bars are escaped.
        _ => return None,
    };
    let short = url_in(row, separator)?;
    let text = text_of(row.trim_ascii());
    let behind = text.find(&*short).and_then(|at| text.get(at + short.len()..))?;
    let is_part = |field: &&str| !field.contains(['"', '|', ' ', '\t']) && !field.contains("://");
    let more: Vec<&str> = behind.split(between).skip(1).take_while(is_part).collect();
    // What follows a host by itself is no part of it.
    let has_path = short.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?', '#']));
    if !has_path || ends_well(&short) || more.iter().all(|field| field.is_empty()) {
        return None;
    }
    let long = [&*short, more.join(between).as_str()].join(between);
    Some(Ambiguous([(separator, short.into_owned()), (NO_SEPARATOR, long)]))
}

/// Of the characters that may separate these rows the one that does, if any.
fn best(rows: &[&[u8]], mut candidates: Vec<u8>) -> Result<Option<u8>, Ambiguous> {
    let urls = |separator: u8| rows.iter().filter_map(move |row| url_in(row, separator));
    let apart = |separator: u8| urls(separator).collect::<HashSet<_>>().len();
    let most = candidates.iter().map(|separator| apart(*separator)).max();
    candidates.retain(|separator| Some(apart(*separator)) == most);
    let whole: Vec<u8> =
        candidates.iter().copied().filter(|separator| urls(*separator).all(|url| ends_well(&url))).collect();
    if let [found] = whole.as_slice() {
        return Ok(Some(*found));
    }
    let Some((first, others)) = candidates.split_first() else { return Ok(None) };
    // The most usual, if the URLs are the same by each.
    let other = others.iter().find(|other| !urls(**other).eq(urls(*first)));
    let shown = |separator: u8| (separator, urls(separator).next().unwrap_or_default().into_owned());
    other.map_or(Ok(Some(*first)), |other| Err(Ambiguous([shown(*first), shown(*other)])))
}

/// Whether a URL ends in its host, in a slash or in the name of a file with an extension. What is cut off by a character inside
/// a URL, or added by one behind it, mostly does not leave such an end.
fn ends_well(url: &str) -> bool {
    let url = url.trim_matches('"');
    let Some((_, rest)) = url.split_once("://") else { return false };
    let Some((_, name)) = rest.rsplit_once('/') else { return super::looks_like_host(rest) };
    let is_extension = |end: &str| {
        (2..=5).contains(&end.len())
            && end.bytes().all(|b| b.is_ascii_alphanumeric())
            && end.bytes().any(|b| b.is_ascii_alphabetic())
    };
    name.is_empty() || name.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && is_extension(end))
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
    let mut rows = rows_of(head);
    // All there is may be one row without its end.
    if rows.len() > 1 && !rows.last().is_some_and(|row| row.ends_with(b"\n") || row.ends_with(b"\r")) {
        rows.pop();
    }
    rows.retain(|row| !row.trim_ascii().is_empty());
    rows
}

/// The rows of how a table begins, empty lines too; the last may be cut.
fn rows_of(head: &[u8]) -> Vec<&[u8]> {
    let text = head.strip_prefix(BOM).unwrap_or(head);
    let mut quoted = false;
    text.split_inclusive(|b| {
        quoted ^= *b == b'"';
        !quoted && matches!(b, b'\n' | b'\r')
    })
    .collect()
}

/// The fields of rows behind the first one, `skipped` more left out, by which names are distinguished from values.
pub(super) fn sample(head: &[u8], separator: u8, skipped: usize) -> Vec<Vec<String>> {
    let is_row = |row: &&[u8]| !row.starts_with(b"#") && !row.trim_ascii().is_empty();
    let field = |field: &[u8]| text_of(field.trim_ascii()).trim_matches('"').to_owned();
    let rows = rows_of(head).into_iter().filter(is_row).skip(1 + skipped).take(SAMPLE);
    rows.map(|row| fields_of(row, separator).map(field).collect()).collect()
}

/// Whether a text is a list of URLs, some of which hold the separator and others do not: it is part of them, then.
pub(super) fn is_list(head: &[u8], separator: u8) -> bool {
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
