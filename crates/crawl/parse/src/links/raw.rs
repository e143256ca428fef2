//! The states inside `script`, `style`, `title` and the like, where only the matching end tag counts.
//!
//! ```text
//! raw --<--> raw open --/--> raw end --name, then blank, "/" or ">"--> the end tag's attributes
//! script also: "<!--" escapes; "<script" inside an escape escapes again; "</script" then ends only the inner escape;
//!              "-->" ends both
//! ```

use memchr::{memchr, memchr2};

use super::names::{self, tag};
use super::tokenizer::{DASHES, Sink, State, Tokenizer};

/// How far a script has hidden its end tag: `<!--`, then `<script` inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Escape {
    None,
    Once,
    Twice,
}

impl Tokenizer {
    /// The states inside `script`, `style`, `title` and the like.
    pub(super) fn raw_text<'a>(&mut self, byte: u8, rest: &'a [u8], after: &'a [u8], sink: &mut impl Sink) -> &'a [u8] {
        match self.state {
            State::Raw if self.escape == Escape::None => match memchr(b'<', rest) {
                Some(at) => self.go(State::RawOpen, rest, at + 1),
                None => &[],
            },
            State::Raw => match memchr2(b'<', b'>', rest) {
                Some(at) => {
                    self.slide(rest.get(..at).unwrap_or_default());
                    let open = rest.get(at) == Some(&b'<');
                    if !open && self.tail & 0xFFFF == DASHES {
                        self.escape = Escape::None;
                    }
                    self.tail = 0;
                    self.go(if open { State::RawOpen } else { State::Raw }, rest, at + 1)
                }
                None => {
                    self.slide(rest);
                    &[]
                }
            },
            State::RawOpen => match byte {
                b'/' => {
                    self.name = 0;
                    self.next(State::RawEnd, after)
                }
                b'!' if self.raw == tag::SCRIPT && self.escape == Escape::None => self.next(State::ScriptBang, after),
                _ if byte.is_ascii_alphabetic() && self.escape == Escape::Once => {
                    self.name = 0;
                    self.next(State::ScriptName, rest)
                }
                _ => self.next(State::Raw, rest),
            },
            State::RawEnd | State::ScriptName if byte.is_ascii_alphabetic() => {
                self.name = names::push(self.name, byte);
                after
            }
            State::RawEnd => {
                let after_name = match byte {
                    b' ' | b'\n' | b'\t' | b'\r' | 0x0C => State::BeforeAttribute,
                    b'/' => State::SelfClosing,
                    b'>' => State::Text,
                    _ => return self.next(State::Raw, rest),
                };
                if self.name != self.raw {
                    return self.next(State::Raw, rest);
                }
                if self.escape == Escape::Twice {
                    self.escape = Escape::Once;
                    return self.next(State::Raw, after);
                }
                self.tag_parts(true);
                self.next(after_name, after);
                if after_name == State::Text { self.finish_tag(after, sink) } else { after }
            }
            State::ScriptName => {
                let ends = matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0C | b'/' | b'>');
                if ends && self.name == tag::SCRIPT {
                    self.escape = Escape::Twice;
                    return self.next(State::Raw, after);
                }
                self.next(State::Raw, rest)
            }
            State::ScriptBang if byte == b'-' => self.next(State::ScriptBangDash, after),
            State::ScriptBangDash if byte == b'-' => {
                self.escape = Escape::Once;
                self.tail = DASHES;
                self.next(State::Raw, after)
            }
            _ => self.next(State::Raw, rest),
        }
    }
}
