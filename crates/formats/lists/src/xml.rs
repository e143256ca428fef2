//! A lenient reader for XML that strangers wrote: tags, text and attributes, no tree, no entities but the known ones.
//!
//! It never fails: what is not well-formed is read as far as it makes sense, and [`Reader::damaged`] says so. Document
//! type definitions are passed over, so that nothing external is ever read and nothing expands.

use memchr::{memchr, memchr2, memchr3, memmem};

/// A piece of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event<'a> {
    /// `<name …>`.
    Start(Tag<'a>),
    /// `</name>`.
    End(&'a [u8]),
    /// Text as written, with its references.
    Text(&'a [u8]),
    /// The content of a CDATA section, to be taken literally.
    Literal(&'a [u8]),
}

/// A start tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag<'a> {
    /// Its name with prefix, as written.
    pub(crate) name: &'a [u8],
    attributes: &'a [u8],
    /// Whether it ends its own element: `<name/>`.
    pub(crate) empty: bool,
}

impl<'a> Tag<'a> {
    /// The value of an attribute as written, by its name without prefix.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'a [u8]> {
        let mut rest = self.attributes;
        loop {
            let equals = memchr(b'=', rest)?;
            let (found, after) = rest.split_at_checked(equals)?;
            let found = found.trim_ascii();
            let found =
                found.iter().rposition(|b| b.is_ascii_whitespace()).and_then(|at| found.get(at + 1..)).unwrap_or(found);
            let value = after.get(1..)?.trim_ascii_start();
            let (value, behind) = match value.split_first()? {
                (quote @ (b'"' | b'\''), quoted) => {
                    let end = memchr(*quote, quoted)?;
                    (quoted.get(..end)?, quoted.get(end + 1..)?)
                }
                // As old HTML has it.
                _ => value.split_at_checked(value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len()))?,
            };
            if local(found).eq_ignore_ascii_case(name.as_bytes()) {
                return Some(value);
            }
            rest = behind;
        }
    }
}

impl<'a> Tag<'a> {
    /// The value of `xml:base`, as written. Other attributes called `base` mean other things.
    pub(crate) fn xml_base(&self) -> Option<&'a [u8]> {
        memmem::find(self.attributes, b"xml:base").and_then(|_| self.attribute("base"))
    }
}

/// A name without its prefix.
pub(crate) fn local(name: &[u8]) -> &[u8] {
    memchr(b':', name).and_then(|at| name.get(at + 1..)).unwrap_or(name)
}

/// The prefix of a name, empty if there is none.
pub(crate) fn prefix(name: &[u8]) -> &[u8] {
    memchr(b':', name).and_then(|at| name.get(..at)).unwrap_or_default()
}

/// Reads a document from its first byte to its last, in one pass.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    damaged: bool,
    cut_end_tag: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(document: &'a [u8]) -> Self {
        Reader { rest: document, damaged: false, cut_end_tag: false }
    }

    /// Whether the document ended inside a tag, comment or section.
    pub(crate) fn damaged(&self) -> bool {
        self.damaged
    }

    /// Whether it ended inside an end tag, so that the text before is whole.
    pub(crate) fn cut_end_tag(&self) -> bool {
        self.cut_end_tag
    }

    /// How many bytes have not been read.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Takes what stands before the first `end` at or after `from`, and skips the end.
    fn take_until(&mut self, from: usize, end: &[u8]) -> Option<&'a [u8]> {
        let body = self.rest.get(from..).unwrap_or_default();
        match memmem::find(body, end) {
            Some(at) => {
                self.rest = body.get(at + end.len()..).unwrap_or_default();
                body.get(..at)
            }
            None => self.stop(),
        }
    }

    fn stop<T>(&mut self) -> Option<T> {
        self.damaged = true;
        self.rest = &[];
        None
    }

    /// Passes over `<!DOCTYPE …[…]>`.
    fn skip_declaration(&mut self) -> Option<()> {
        let mut at = 2;
        loop {
            let from = self.rest.get(at..).unwrap_or_default();
            let Some(found) = memchr2(b'>', b'[', from) else { return self.stop() };
            at += found + 1;
            if from.get(found) == Some(&b'>') {
                self.rest = self.rest.get(at..).unwrap_or_default();
                return Some(());
            }
            let Some(close) = memchr(b']', from.get(found..).unwrap_or_default()) else { return self.stop() };
            at += close;
        }
    }

    /// The end of a start tag: the first `>` outside quotes.
    fn tag_end(&self) -> Option<usize> {
        let mut at = 1;
        loop {
            let from = self.rest.get(at..)?;
            let found = memchr3(b'>', b'"', b'\'', from)?;
            let byte = *from.get(found)?;
            if byte == b'>' {
                return Some(at + found);
            }
            at += found + 1;
            at += memchr(byte, self.rest.get(at..)?)? + 1;
        }
    }

    fn start_tag(&mut self) -> Option<Tag<'a>> {
        let Some(end) = self.tag_end() else { return self.stop() };
        let inside = self.rest.get(1..end).unwrap_or_default();
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        // A slash at the end of a value without quotes is part of it.
        let last = inside.rsplit(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'')).next().unwrap_or_default();
        let is_bare = memchr(b'=', last).is_some_and(|at| at + 1 < last.len());
        let bare = inside.strip_suffix(b"/").filter(|_| !is_bare);
        let (inside, empty) = bare.map_or((inside, false), |inside| (inside, true));
        let name_end = inside.iter().position(|b| b.is_ascii_whitespace() || *b == b'/').unwrap_or(inside.len());
        let (name, attributes) = inside.split_at_checked(name_end)?;
        Some(Tag { name, attributes, empty })
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            match self.rest {
                [] => return None,
                [b'<', b'!', b'-', b'-', ..] => {
                    self.take_until(4, b"-->")?;
                }
                [b'<', b'!', b'[', b'C', b'D', b'A', b'T', b'A', b'[', ..] => {
                    return self.take_until(9, b"]]>").map(Event::Literal);
                }
                [b'<', b'!', ..] => self.skip_declaration()?,
                [b'<', b'?', ..] => {
                    self.take_until(2, b"?>")?;
                }
                [b'<', b'/', ..] => {
                    let name = self.take_until(2, b">");
                    self.cut_end_tag = name.is_none();
                    return name.map(|name| Event::End(name.trim_ascii()));
                }
                [b'<', first, ..] if first.is_ascii_alphabetic() || *first == b'_' || *first >= 0x80 => {
                    return self.start_tag().map(Event::Start);
                }
                [_, rest @ ..] => {
                    // A `<` that starts nothing is text.
                    let end = memchr(b'<', rest).map_or(self.rest.len(), |at| at + 1);
                    let (text, rest) = self.rest.split_at_checked(end)?;
                    self.rest = rest;
                    return Some(Event::Text(text));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: &str) -> (Vec<String>, bool) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut reader = Reader::new(document.as_bytes());
        let events = reader
            .by_ref()
            .map(|event| match event {
                Event::Start(tag) => format!("<{}{}", text(tag.name), if tag.empty { "/" } else { "" }),
                Event::End(name) => format!("/{}", text(name)),
                Event::Text(content) => text(content),
                Event::Literal(content) => format!("[{}]", text(content)),
            })
            .collect();
        (events, reader.damaged())
    }

    #[test]
    fn events() {
        for (document, want, damaged) in [
            ("<?xml version='1.0'?><a><b/>x</a >", &["<a", "<b/", "x", "/a"][..], false),
            ("<!DOCTYPE a [ <!ENTITY b \"c>\"> ]><a>", &["<a"], false),
            ("<!DOCTYPE a SYSTEM 'x'><a>", &["<a"], false),
            ("<a x='>' y=\"/>\">t<!-- <b> -->u</a>", &["<a", "t", "u", "/a"], false),
            ("<a><![CDATA[<b>&amp;]]></a>", &["<a", "[<b>&amp;]", "/a"], false),
            ("1 < 2 <3", &["1 ", "< 2 ", "<3"], false),
            ("<a", &[], true),
            ("<a>x<b y='", &["<a", "x"], true),
            ("<a><!-- x", &["<a"], true),
            ("<a><![CDATA[x", &["<a"], true),
            ("<a></a", &["<a"], true),
            ("<!DOCTYPE a [", &[], true),
        ] {
            let (events, broken) = read(document);
            assert_eq!(
                (&*events, broken),
                (&*want.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(), damaged),
                "{document}"
            );
        }
    }

    #[test]
    fn attributes() {
        let Some(Event::Start(tag)) = Reader::new(b"<link rel = 'a' x:href=\"b'c\" bad y='>' Type='t'/>").next() else {
            panic!("no tag")
        };
        assert_eq!(tag.attribute("rel"), Some(&b"a"[..]));
        assert_eq!(tag.attribute("href"), Some(&b"b'c"[..]));
        assert_eq!(tag.attribute("y"), Some(&b">"[..]));
        assert_eq!(tag.attribute("type"), Some(&b"t"[..]));
        assert_eq!(tag.attribute("none"), None);
        for (tag, href) in [
            (&b"<a href=http://b.com/>"[..], "http://b.com/"),
            (b"<a id=1 href=http://b.com/?a=b x='y' />", "http://b.com/?a=b"),
            (b"<a x=\"1\" href=http://b.com/x/>", "http://b.com/x/"),
        ] {
            let Some(Event::Start(tag)) = Reader::new(tag).next() else { panic!("no tag") };
            assert_eq!(tag.attribute("href"), Some(href.as_bytes()));
        }
    }
}
