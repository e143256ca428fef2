//! From bytes to `field: value` lines.

use std::borrow::Cow;

/// Longer lines are cut here, where Google's parser cuts them: eight times the longest URL of old browsers.
const MAX_LINE: usize = 2083 * 8 - 1;

/// A field that Trawl knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

impl Field {
    /// The names, and those misspellings that Google's parser or crawler-commons takes.
    fn parse(name: &[u8]) -> Option<Field> {
        const NAMES: [(&str, Field); 29] = [
            ("user-agent", Field::UserAgent),
            ("disallow", Field::Disallow),
            ("allow", Field::Allow),
            ("sitemap", Field::Sitemap),
            ("crawl-delay", Field::CrawlDelay),
            ("useragent", Field::UserAgent),
            ("user agent", Field::UserAgent),
            ("useg-agent", Field::UserAgent),
            ("ser-agent", Field::UserAgent),
            ("users-agent", Field::UserAgent),
            ("user-agnet", Field::UserAgent),
            ("user-agents", Field::UserAgent),
            ("desallow", Field::Disallow),
            ("dissallow", Field::Disallow),
            ("dissalow", Field::Disallow),
            ("disalow", Field::Disallow),
            ("dssalow", Field::Disallow),
            ("dsallow", Field::Disallow),
            ("diasllow", Field::Disallow),
            ("disallaw", Field::Disallow),
            ("diallow", Field::Disallow),
            ("disallows", Field::Disallow),
            ("disallowed", Field::Disallow),
            ("allowed", Field::Allow),
            ("allows", Field::Allow),
            ("site-map", Field::Sitemap),
            ("sitemaps", Field::Sitemap),
            ("crawl delay", Field::CrawlDelay),
            ("crawldelay", Field::CrawlDelay),
        ];
        // Google's parser takes whatever begins like a field for it; the names of two fields never begin alike. Not so for
        // sitemaps: `Sitemap http://…` lacks its colon, and what it has belongs to the address.
        let starts = |known: &str| name.get(..known.len()).is_some_and(|s| s.eq_ignore_ascii_case(known.as_bytes()));
        let found = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        found.or_else(|| NAMES.iter().take(3).find(|(known, _)| starts(known))).map(|(_, field)| *field)
    }
}

/// The text of a file: at most `limit` bytes, cut after a whole line, as UTF-8 or another ASCII superset.
pub(super) fn text<'a>(bytes: &'a [u8], limit: usize, truncated: &mut bool) -> Cow<'a, [u8]> {
    let head = match bytes.get(..limit) {
        Some(head) if head.len() < bytes.len() => {
            *truncated = true;
            // Half a rule would forbid or allow too much.
            head.iter().rposition(|b| matches!(b, b'\n' | b'\r')).and_then(|end| head.get(..end)).unwrap_or_default()
        }
        _ => bytes,
    };
    match head {
        [0xFF, 0xFE, ..] => Cow::Owned(encoding_rs::UTF_16LE.decode(head).0.into_owned().into_bytes()),
        [0xFE, 0xFF, ..] => Cow::Owned(encoding_rs::UTF_16BE.decode(head).0.into_owned().into_bytes()),
        // Google's parser also skips a byte order mark that lost its end.
        [0xEF, 0xBB, 0xBF, rest @ ..] | [0xEF, 0xBB, rest @ ..] | [0xEF, rest @ ..] => Cow::Borrowed(rest),
        _ => Cow::Borrowed(head),
    }
}

/// Iterates over the lines that have a known field, with their numbers.
pub(super) struct Lines<'a> {
    rest: Option<&'a [u8]>,
    line: u32,
    /// The file starts like a page: tags are taken out of its lines.
    markup: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Lines { rest: Some(text), line: 0, markup: text.trim_ascii_start().first() == Some(&b'<') }
    }

    fn next_line(&mut self) -> Option<&'a [u8]> {
        let text = self.rest?;
        self.line = self.line.saturating_add(1);
        match memchr::memchr2(b'\n', b'\r', text) {
            None => {
                self.rest = None;
                Some(text)
            }
            Some(end) => {
                let after = text.get(end..).unwrap_or_default();
                self.rest = after.strip_prefix(b"\r\n").or_else(|| after.get(1..));
                text.get(..end)
            }
        }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (Field, Cow<'a, [u8]>, u32);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.next_line()?;
            let line = line.get(..MAX_LINE).unwrap_or(line);
            let line = match self.markup {
                true => Cow::Owned(without_tags(line)),
                false => Cow::Borrowed(line),
            };
            let parsed = match line {
                Cow::Borrowed(line) => split(line).map(|(field, value)| (field, Cow::Borrowed(value))),
                Cow::Owned(line) => split(&line).map(|(field, value)| (field, Cow::Owned(value.to_vec()))),
            };
            if let Some((field, value)) = parsed {
                return Some((field, value, self.line));
            }
        }
    }
}

/// `field: value`, or `field value` if there are exactly two words; comments and blanks around are dropped.
fn split(line: &[u8]) -> Option<(Field, &[u8])> {
    let line = line.split(|b| *b == b'#').next()?.trim_ascii();
    if let Some(colon) = line.iter().position(|b| *b == b':') {
        let (name, value) = line.split_at_checked(colon)?;
        return match Field::parse(name.trim_ascii()) {
            Some(field) => Some((field, value.get(1..)?.trim_ascii())),
            None => bare_sitemap(line).map(|url| (Field::Sitemap, url)),
        };
    }
    let blank = line.iter().position(|b| b.is_ascii_whitespace())?;
    let (name, value) = line.split_at_checked(blank)?;
    let value = value.trim_ascii();
    if value.iter().any(|b| b.is_ascii_whitespace()) {
        return None;
    }
    Some((Field::parse(name)?, value))
}

/// The URL of a line `Sitemap https://…` that lacks its colon, or of one that is nothing but the URL of an XML file.
fn bare_sitemap(line: &[u8]) -> Option<&[u8]> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (first, second) = (words.next()?, words.next());
    let is_url = |word: &[u8]| {
        [&b"http://"[..], b"https://"]
            .iter()
            .any(|scheme| word.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
    };
    let ends = |ending: &[u8]| first.len() > ending.len() && first.to_ascii_lowercase().ends_with(ending);
    let found = match second {
        Some(url) if Field::parse(first) == Some(Field::Sitemap) => url,
        None if ends(b".xml") || ends(b".xml.gz") => first,
        _ => return None,
    };
    (words.next().is_none() && is_url(found)).then_some(found)
}

/// A line of a page without its tags.
fn without_tags(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut in_tag = false;
    for &byte in line {
        match byte {
            b'<' => in_tag = true,
            b'>' => in_tag = false,
            _ if !in_tag => out.push(byte),
            _ => {}
        }
    }
    out
}
