//! A tokenizer for HTML that keeps only what the caller asks for.
//!
//! It follows the states of the HTML standard, so that quotes, comments, raw text and script escapes end where a
//! browser ends them, but it builds no tree. All its memory is one tag's wanted attributes, within a limit; a chunk
//! boundary may fall on any byte.
//!
//! ```text
//! text --<--> tag open --letter--> tag name --blank--> before attribute <--> name, value --">"--> text or raw text
//!                 |--/--> end tag open --letter--> tag name …          raw text --"</name"--> before attribute
//!                 |--!--> markup --"--"--> comment --"-->"--> text      script also: escaped, doubly escaped
//! ```

use memchr::memchr;

use super::attributes::Attributes;
use super::foreign::Foreign;
use super::names::{self, Attr, tag};
use super::raw::Escape;

/// Takes the tags.
pub(super) trait Sink {
    /// A start tag that [`names::traits`] has attributes for.
    fn start(&mut self, name: u128, attributes: &Attributes);
    /// An end tag.
    fn end(&mut self, name: u128);
}

/// Where in the page the next byte stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Text,
    TagOpen,
    EndTagOpen,
    TagName,
    BeforeAttribute,
    AttributeName,
    AfterAttributeName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
    AfterQuoted,
    SelfClosing,
    Markup,
    MarkupDash,
    CdataOpen(u8),
    Cdata,
    Comment,
    Bogus,
    Raw,
    RawOpen,
    RawEnd,
    ScriptBang,
    ScriptBangDash,
    ScriptName,
    Plaintext,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Tokenizer {
    pub(super) state: State,
    pub(super) name: u128,
    end_tag: bool,
    self_closing: bool,
    /// See [`names::traits`].
    traits: u32,
    attribute_name: u128,
    attribute: Option<Attr>,
    attributes: Attributes,
    /// The element whose raw text is being passed over.
    pub(super) raw: u128,
    pub(super) escape: Escape,
    /// The last three bytes inside a comment, CDATA section or escaped script, and how many there were.
    pub(super) tail: u32,
    tail_len: u8,
    foreign: Foreign,
    /// Whether the page is XML, where `<script/>` is a whole element.
    xml: bool,
}

pub(super) const DASHES: u32 = 0x2D2D;
const DASHES_BANG: u32 = 0x2D_2D21;
const BRACKETS: u32 = 0x5D5D;
const CDATA: &[u8] = b"CDATA[";

impl Tokenizer {
    pub(super) fn new(attribute_limit: usize) -> Self {
        Tokenizer {
            state: State::Text,
            name: 0,
            end_tag: false,
            self_closing: false,
            traits: 0,
            attribute_name: 0,
            attribute: None,
            attributes: Attributes::new(attribute_limit),
            raw: 0,
            escape: Escape::None,
            tail: 0,
            tail_len: 0,
            foreign: Foreign::default(),
            xml: false,
        }
    }

    /// Reads XHTML.
    pub(super) fn xml(self, xml: bool) -> Self {
        Tokenizer { xml, ..self }
    }

    /// Reads the next bytes of the page.
    pub(super) fn push(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            // Each arm takes bytes off `rest`, or leaves it and goes to a state that does.
            rest = match self.state {
                State::Text => match memchr(b'<', rest) {
                    Some(at) => match rest.get(at + 1) {
                        Some(letter) if letter.is_ascii_alphabetic() => {
                            self.open_tag(false);
                            self.go(State::TagName, rest, at + 1)
                        }
                        _ => self.go(State::TagOpen, rest, at + 1),
                    },
                    None => return,
                },
                State::TagOpen => match byte {
                    b'a'..=b'z' | b'A'..=b'Z' => {
                        self.open_tag(false);
                        self.next(State::TagName, rest)
                    }
                    b'/' => self.next(State::EndTagOpen, after),
                    b'!' => self.next(State::Markup, after),
                    b'?' => self.next(State::Bogus, after),
                    _ => self.next(State::Text, rest),
                },
                State::EndTagOpen => match byte {
                    b'a'..=b'z' | b'A'..=b'Z' => {
                        self.open_tag(true);
                        self.next(State::TagName, rest)
                    }
                    b'>' => self.next(State::Text, after),
                    _ => self.next(State::Bogus, rest),
                },
                State::TagName => self.tag_name(rest, sink),
                State::BeforeAttribute => self.attributes(rest, sink),
                State::AttributeName => self.attribute_name(rest),
                State::AfterAttributeName => match byte {
                    b' ' | b'\n' | b'\t' | b'\r' | 0x0C => after,
                    b'=' => self.next(State::BeforeValue, after),
                    _ => self.next(State::BeforeAttribute, rest),
                },
                State::BeforeValue => match byte {
                    b' ' | b'\n' | b'\t' | b'\r' | 0x0C => after,
                    b'"' | b'\'' => self.next(State::Quoted(byte), after),
                    b'>' => self.finish_tag(after, sink),
                    _ => self.next(State::Unquoted, rest),
                },
                State::Quoted(quote) => {
                    let end = memchr(quote, rest);
                    self.value(rest.get(..end.unwrap_or(rest.len())));
                    match end {
                        Some(end) => self.go(State::AfterQuoted, rest, end + 1),
                        None => return,
                    }
                }
                State::Unquoted => {
                    let end = rest.iter().position(|b| matches!(b, b' ' | b'\n' | b'\t' | b'\r' | 0x0C | b'>'));
                    self.value(rest.get(..end.unwrap_or(rest.len())));
                    match end {
                        Some(end) => self.go(State::BeforeAttribute, rest, end),
                        None => return,
                    }
                }
                State::AfterQuoted => match byte {
                    b'>' => self.finish_tag(after, sink),
                    _ => self.next(State::BeforeAttribute, rest),
                },
                State::SelfClosing => match byte {
                    b'>' => {
                        self.self_closing = true;
                        self.finish_tag(after, sink)
                    }
                    _ => self.next(State::BeforeAttribute, rest),
                },
                State::Markup => match byte {
                    b'-' => self.next(State::MarkupDash, after),
                    b'[' if self.xml || self.foreign.inside() => self.next(State::CdataOpen(0), after),
                    _ => self.next(State::Bogus, rest),
                },
                State::MarkupDash => match byte {
                    b'-' => {
                        (self.tail, self.tail_len) = (DASHES, 0);
                        self.next(State::Comment, after)
                    }
                    _ => self.next(State::Bogus, rest),
                },
                State::CdataOpen(matched) => match CDATA.get(usize::from(matched)) {
                    Some(&want) if want == byte => {
                        let last = usize::from(matched) + 1 == CDATA.len();
                        (self.tail, self.tail_len) = (0, 0);
                        self.next(if last { State::Cdata } else { State::CdataOpen(matched + 1) }, after)
                    }
                    _ => self.next(State::Bogus, rest),
                },
                State::Cdata => self.until(rest, |tail, _| tail & 0xFFFF == BRACKETS),
                State::Comment => {
                    self.until(rest, |tail, len| tail & 0xFFFF == DASHES || (tail == DASHES_BANG && len >= 3))
                }
                State::Bogus => match memchr(b'>', rest) {
                    Some(at) => self.go(State::Text, rest, at + 1),
                    None => return,
                },
                State::Plaintext => return,
                _ => self.raw_text(byte, rest, after, sink),
            };
        }
    }

    pub(super) fn next<'a>(&mut self, state: State, rest: &'a [u8]) -> &'a [u8] {
        self.state = state;
        rest
    }

    pub(super) fn go<'a>(&mut self, state: State, rest: &'a [u8], at: usize) -> &'a [u8] {
        self.state = state;
        rest.get(at..).unwrap_or_default()
    }

    fn open_tag(&mut self, end_tag: bool) {
        self.name = 0;
        self.tag_parts(end_tag);
    }

    /// Forgets all but the name of the last tag.
    pub(super) fn tag_parts(&mut self, end_tag: bool) {
        self.end_tag = end_tag;
        self.self_closing = false;
        self.traits = 0;
        self.attribute = None;
        self.attributes.clear();
    }

    fn tag_name<'a>(&mut self, rest: &'a [u8], sink: &mut impl Sink) -> &'a [u8] {
        let mut name = self.name;
        for (at, &byte) in rest.iter().enumerate() {
            let state = match byte {
                b' ' | b'\n' | b'\t' | b'\r' | 0x0C => State::BeforeAttribute,
                b'/' => State::SelfClosing,
                b'>' => State::Text,
                _ => {
                    name = names::push(name, byte);
                    continue;
                }
            };
            self.name = name;
            if !self.end_tag {
                self.traits = names::traits(name);
            }
            let rest = self.go(state, rest, at + 1);
            return if state == State::Text { self.finish_tag(rest, sink) } else { rest };
        }
        self.name = name;
        &[]
    }

    /// Reads attributes as long as each lies in `rest` as a whole, which is the common case; the other states take
    /// over where one does not.
    fn attributes<'a>(&mut self, mut rest: &'a [u8], sink: &mut impl Sink) -> &'a [u8] {
        while let Some((&byte, after)) = rest.split_first() {
            match byte {
                b' ' | b'\n' | b'\t' | b'\r' | 0x0C => {
                    rest = after;
                    continue;
                }
                b'/' => return self.next(State::SelfClosing, after),
                b'>' => return self.finish_tag(after, sink),
                _ => {}
            }
            // Whatever the first byte is, even `=`, it belongs to the name.
            let end = after.iter().position(|b| matches!(b, b' ' | b'\n' | b'\t' | b'\r' | 0x0C | b'/' | b'>' | b'='));
            let Some((name, tail)) = end.and_then(|end| rest.split_at_checked(end + 1)) else {
                self.attribute_name = names::push(0, byte);
                return self.next(State::AttributeName, after);
            };
            self.attribute = None;
            if self.traits & names::ATTRIBUTES != 0 {
                self.open_attribute(names::pack(name));
            }
            let (quote, value) = match tail {
                [b'=', quote @ (b'"' | b'\''), value @ ..] => (*quote, value),
                [b'=', value @ ..] => return self.next(State::BeforeValue, value),
                _ => return self.next(State::AfterAttributeName, tail),
            };
            let Some(end) = memchr(quote, value) else { return self.next(State::Quoted(quote), value) };
            self.value(value.get(..end));
            rest = value.get(end + 1..).unwrap_or_default();
        }
        self.next(State::BeforeAttribute, rest)
    }

    /// Notes the attribute that starts, if it is one to keep and the first of its name.
    fn open_attribute(&mut self, name: u128) {
        let kept = |attr: &Attr| self.traits & attr.bit() != 0 && !self.attributes.has(*attr);
        self.attribute = Attr::parse(name).filter(kept);
        if let Some(attr) = self.attribute {
            self.attributes.open(attr);
        }
    }

    fn attribute_name<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let mut name = self.attribute_name;
        for (at, &byte) in rest.iter().enumerate() {
            let (state, at) = match byte {
                b'=' => (State::BeforeValue, at + 1),
                b' ' | b'\n' | b'\t' | b'\r' | 0x0C | b'/' | b'>' => (State::AfterAttributeName, at),
                _ => {
                    name = names::push(name, byte);
                    continue;
                }
            };
            self.open_attribute(name);
            return self.go(state, rest, at);
        }
        self.attribute_name = name;
        &[]
    }

    fn value(&mut self, bytes: Option<&[u8]>) {
        if let (Some(attr), Some(bytes)) = (self.attribute, bytes) {
            self.attributes.append(attr, bytes);
        }
    }

    pub(super) fn finish_tag<'a>(&mut self, rest: &'a [u8], sink: &mut impl Sink) -> &'a [u8] {
        self.state = State::Text;
        if self.end_tag {
            self.foreign.end(self.name);
            if self.name != tag::TEMPLATE || self.foreign.end_template() {
                sink.end(self.name);
            }
            return rest;
        }
        let foreign = (self.traits & names::FOREIGN != 0 || self.foreign.any())
            && self.foreign.start(self.name, self.self_closing);
        // A template of SVG or MathML is an element like any other, and its contents are part of the page.
        let is_plain_template = foreign && self.name == tag::TEMPLATE;
        if self.traits & names::ATTRIBUTES != 0 && !is_plain_template {
            sink.start(self.name, &self.attributes);
        }
        if self.xml && self.self_closing {
            if !is_plain_template {
                sink.end(self.name);
            }
            return rest;
        }
        if self.traits & names::RAW != 0 && !foreign {
            self.raw = self.name;
            self.escape = Escape::None;
            self.state = State::Raw;
        } else if self.traits & names::PLAINTEXT != 0 && !foreign {
            self.state = State::Plaintext;
        }
        rest
    }

    /// Notes the bytes that were passed over inside a comment or the like.
    pub(super) fn slide(&mut self, passed: &[u8]) {
        let last = passed.get(passed.len().saturating_sub(3)..).unwrap_or_default();
        self.tail = last.iter().fold(self.tail, |tail, byte| (tail << 8 | u32::from(*byte)) & 0xFF_FFFF);
        self.tail_len = self.tail_len.saturating_add(u8::try_from(passed.len()).unwrap_or(u8::MAX));
    }

    /// Passes over everything up to the first `>` whose preceding bytes satisfy `ends`.
    fn until<'a>(&mut self, rest: &'a [u8], ends: impl Fn(u32, u8) -> bool) -> &'a [u8] {
        let Some(at) = memchr(b'>', rest) else {
            self.slide(rest);
            return &[];
        };
        self.slide(rest.get(..at).unwrap_or_default());
        if ends(self.tail, self.tail_len) {
            return self.go(State::Text, rest, at + 1);
        }
        self.slide(b">");
        rest.get(at + 1..).unwrap_or_default()
    }
}
