//! A JSON text piece by piece, whatever its length: where values begin and end, without judging what is inside them.
//!
//! One pass, each byte looked at once. Values that are wanted are judged by `serde_json` afterwards.

use crate::lines::BOM;
use std::io::{self, BufRead};

/// Lists inside each other at most: what is deeper is not worth the stack.
const MAX_DEPTH: usize = 128;

/// Reads a JSON text.
pub(crate) struct Scanner<R> {
    inner: R,
    /// Where the next byte is.
    pub offset: u64,
}

impl<R: BufRead> Scanner<R> {
    pub fn new(inner: R) -> Self {
        Self { inner, offset: 0 }
    }

    /// The next byte that is not white space; `None` at the end.
    pub fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let chunk = self.inner.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            if self.offset == 0 && chunk.starts_with(BOM) {
                self.skip(BOM.len());
                continue;
            }
            let blank = chunk.iter().take_while(|b| b.is_ascii_whitespace()).count();
            let found = chunk.get(blank).copied();
            self.skip(blank);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Some of the bytes ahead, without passing over them: how the next value begins, for a message.
    pub fn ahead(&mut self, most: usize) -> io::Result<Vec<u8>> {
        self.peek()?;
        let chunk = self.inner.fill_buf()?;
        Ok(chunk.get(..most).unwrap_or(chunk).to_vec())
    }

    /// Passes over some bytes that were seen.
    fn skip(&mut self, bytes: usize) {
        self.inner.consume(bytes);
        self.offset += bytes as u64;
    }

    /// Passes over the next byte if it is `byte`; tells whether it was.
    pub fn take(&mut self, byte: u8) -> io::Result<bool> {
        let found = self.peek()? == Some(byte);
        if found {
            self.skip(1);
        }
        Ok(found)
    }

    /// Reads one value into `out`, which holds at most `limit` bytes of it; tells whether that is all of it. What cannot begin a
    /// value is a value of one byte.
    pub fn value(&mut self, out: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
        out.clear();
        let Some(first) = self.peek()? else { return Err(cut("a value")) };
        let mut state = State { depth: 0, in_text: false, escaped: false, is_scalar: !b"{[\"".contains(&first) };
        let (mut whole, mut is_first) = (true, true);
        loop {
            let chunk = self.inner.fill_buf()?;
            if chunk.is_empty() {
                return if state.is_scalar { Ok(whole) } else { Err(cut("the end of a value")) };
            }
            let end = state.end_in(chunk, std::mem::take(&mut is_first));
            let used = end.unwrap_or(chunk.len());
            let room = limit.saturating_sub(out.len()).min(used);
            whole &= room == used;
            out.extend(chunk.iter().take(room));
            self.skip(used);
            if end.is_some() {
                return Ok(whole);
            }
        }
    }

    /// Walks through one value, and hands over each scalar in it that is shorter than `limit` bytes with the names that lead
    /// to it; elements of lists have no name of their own.
    pub fn walk(&mut self, limit: usize, leaf: &mut dyn FnMut(&[String], &[u8])) -> io::Result<()> {
        self.walk_at(&mut Vec::new(), limit, leaf)
    }

    fn walk_at(
        &mut self,
        path: &mut Vec<String>,
        limit: usize,
        leaf: &mut dyn FnMut(&[String], &[u8]),
    ) -> io::Result<()> {
        let mut text = Vec::new();
        match self.peek()? {
            Some(b'{') if path.len() < MAX_DEPTH => self.members(|scan, name| {
                path.push(name);
                scan.walk_at(path, limit, leaf)?;
                path.pop();
                Ok(())
            }),
            _ => {
                if self.value(&mut text, limit)? && !text.starts_with(b"[") && !text.starts_with(b"{") {
                    leaf(path, &text);
                }
                Ok(())
            }
        }
    }

    /// Enters an object; `each` has to read the value of every member.
    pub fn members(&mut self, mut each: impl FnMut(&mut Self, String) -> io::Result<()>) -> io::Result<()> {
        self.expect(b'{')?;
        while !self.take(b'}')? {
            let mut name = Vec::new();
            self.value(&mut name, 1 << 16)?;
            let name = serde_json::from_str(&crate::json::whole_characters(&crate::file::text_of(&name)))
                .map_err(|_| self.found("the name of a member"))?;
            self.expect(b':')?;
            each(self, name)?;
            self.take(b',')?;
        }
        Ok(())
    }

    /// Enters a list; `each` has to read every element.
    pub fn elements(&mut self, mut each: impl FnMut(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.expect(b'[')?;
        while !self.take(b']')? {
            if self.peek()?.is_none() {
                return Err(cut("the end of a list"));
            }
            each(self)?;
            self.take(b',')?;
        }
        Ok(())
    }

    /// Makes sure that nothing follows.
    pub fn end(&mut self) -> io::Result<()> {
        if self.peek()?.is_none() { Ok(()) } else { Err(self.found("the end of the file")) }
    }

    fn expect(&mut self, byte: u8) -> io::Result<()> {
        if self.take(byte)? { Ok(()) } else { Err(self.found(&format!("{:?}", char::from(byte)))) }
    }

    fn found(&mut self, expected: &str) -> io::Error {
        let found = match self.peek() {
            Ok(Some(byte)) => format!("{:?}", char::from(byte)),
            _ => "the end".to_owned(),
        };
        io::Error::new(io::ErrorKind::InvalidData, format!("expected {expected} in JSON, found {found}"))
    }
}

fn cut(expected: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("expected {expected} in JSON, found the end of the file"))
}

/// Where in a value a reading is.
struct State {
    depth: u64,
    in_text: bool,
    escaped: bool,
    is_scalar: bool,
}

impl State {
    /// Where the value ends in a chunk of it, if it does. `is_first` says that the chunk begins with the value.
    fn end_in(&mut self, chunk: &[u8], is_first: bool) -> Option<usize> {
        if self.is_scalar {
            let end = chunk.iter().position(|b| b.is_ascii_whitespace() || b",:[]{}\"".contains(b))?;
            // A mark that begins nothing is passed over, or reading would never end.
            return Some(if is_first { end.max(1) } else { end });
        }
        for (at, byte) in chunk.iter().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                _ if self.in_text => continue,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => continue,
            }
            if self.depth == 0 && !self.in_text && !self.escaped {
                return Some(at + 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::BufReader;

    fn values(text: &str, buffer: usize) -> io::Result<Vec<String>> {
        let mut scan = Scanner::new(BufReader::with_capacity(buffer, text.as_bytes()));
        let (mut out, mut value) = (Vec::new(), Vec::new());
        while scan.peek()?.is_some() {
            assert!(scan.value(&mut value, 100)?);
            out.push(String::from_utf8(value.clone()).unwrap());
        }
        assert_eq!(scan.offset, text.len() as u64);
        Ok(out)
    }

    #[test]
    fn values_end_where_they_end() {
        let text = r#" {"a":"}\"","b":[1,{}]} "x\\" 12 true[ ] , nul"#;
        let expected = [r#"{"a":"}\"","b":[1,{}]}"#, r#""x\\""#, "12", "true", "[ ]", ",", "nul"];
        for buffer in [1, 2, 3, 7, 1000] {
            assert_eq!(values(text, buffer).unwrap(), expected, "{buffer}");
        }
        assert_eq!(values("\u{feff} 1", 100).unwrap(), ["1"]);
        for open in ["{", "[1,2", "\"a", "\"\\\"", "{\"a\":\"}"] {
            assert_eq!(values(open, 5).unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{open}");
        }
    }

    #[test]
    fn a_value_too_long_is_passed_over() {
        let mut scan = Scanner::new(&br#"{"a":"xxxxxxxxxxxxxxxxxxxx"} 1"#[..]);
        let mut value = Vec::new();
        assert!(!scan.value(&mut value, 10).unwrap());
        assert_eq!(value.len(), 10);
        assert!(scan.value(&mut value, 10).unwrap());
        assert_eq!(value, b"1");
    }

    #[test]
    fn walking_gives_names_and_scalars() {
        let text = br#"{"a":{"b":1,"long":"xxxxxxxxxxxxxxxxxxxxxxxx","l":[{"n":5}]},"c":"d"}"#;
        let mut found = Vec::new();
        let mut leaf =
            |path: &[String], value: &[u8]| found.push((path.join("."), String::from_utf8_lossy(value).into_owned()));
        Scanner::new(&text[..]).walk(12, &mut leaf).unwrap();
        assert_eq!(found, [("a.b".into(), "1".into()), ("c".to_owned(), "\"d\"".to_owned())]);
        assert!(Scanner::new(&b"{\"a\" 1}"[..]).walk(12, &mut |_, _| ()).is_err());
        let deep = "{\"a\":".repeat(1000);
        assert!(Scanner::new(deep.as_bytes()).walk(12, &mut |_, _| ()).is_err());
    }

    proptest! {
        #[test]
        fn never_panics_and_always_ends(text in "[{}\\[\\]\":,\\\\a1 ]{0,60}", buffer in 1usize..20) {
            let mut scan = Scanner::new(BufReader::with_capacity(buffer, text.as_bytes()));
            let (mut value, mut steps) = (Vec::new(), 0);
            while scan.peek().unwrap().is_some() && scan.value(&mut value, 5).is_ok() {
                steps += 1;
                prop_assert!(steps <= text.len());
            }
            let _ = Scanner::new(text.as_bytes()).walk(5, &mut |_, _| ());
        }
    }
}
