//! ZipNum: a CDX or CDXJ index in gzip members, and a small index of those, which names the files.
//!
//! ```text
//! com,a)/ 20260624010203 ⇥ cdx-00000.gz ⇥ 0 ⇥ 12345 ⇥ 1                  key, file, offset, length, number
//! !meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}        the same in JSON
//! com,a)/ 20260624010203 {"offset": 0, "length": 12345}
//! ```

use serde::Deserialize;
use std::collections::HashMap;

/// What a line of JSON says.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    filename: Option<String>,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    length: Option<u64>,
}

/// A file that an index names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name; it lies beside the index.
    pub name: String,
    /// How long it is at least: where the last member that the index names ends.
    pub end: u64,
}

/// Whether a text begins as an index of ZipNum does.
pub fn is_index(head: &str) -> bool {
    let line = head.lines().find(|line| !line.is_empty()).unwrap_or_default();
    let tabs: Vec<&str> = line.split('\t').collect();
    let numbers = || tabs.iter().skip(2).all(|word| word.parse::<u64>().is_ok());
    line.starts_with("!meta ") || tabs.len() >= 4 && numbers()
}

/// The files that an index names, each once, in order. The error is the number of a line and what is wrong with it.
pub fn parts(text: &str) -> Result<Vec<Part>, (usize, String)> {
    let mut parts: Vec<Part> = Vec::new();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    // Members of JSON belong to the file that was named last.
    let mut current = None;
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let bad = |expected: &str| Err((n + 1, format!("expected {expected}, found {line:?}")));
        // Behind the key, which may hold a brace, but no blank.
        let json = line.find(" {").and_then(|at| line.get(at + 1..));
        let (name, offset, length) = match (line.split('\t').nth(1), json) {
            (Some(name), _) => {
                let number = |at: usize| line.split('\t').nth(at).and_then(|word| word.trim().parse::<u64>().ok());
                // Read as 0, a number that is none would let a part that was cut pass for whole.
                let (Some(offset), Some(length)) = (number(2), number(3)) else {
                    return bad("a file name, an offset and a length");
                };
                (Some(name.to_owned()), Some(offset), Some(length))
            }
            (None, Some(json)) => match serde_json::from_str::<Line>(json) {
                Ok(line) if line.filename.is_some() => (line.filename, line.offset, line.length),
                Ok(line) if line.offset.is_some() && current.is_some() => (None, line.offset, line.length),
                _ => return bad("a file name, or a member of a file that was named"),
            },
            (None, None) => return bad("a key, a tab and a file name"),
        };
        if let Some(name) = name {
            // Parts lie beside their index: nothing else may be reached through it.
            if name.is_empty() || name.contains(['/', '\\']) {
                return bad("the name of a file beside the index");
            }
            current = Some(*by_name.entry(name.clone()).or_insert(parts.len()));
            if current == Some(parts.len()) {
                parts.push(Part { name, end: 0 });
            }
        }
        let end = match (offset, length) {
            // The line that names the file says no more.
            (None, None) => Some(0),
            (Some(offset), Some(length)) => offset.checked_add(length),
            _ => return bad("an offset and a length"),
        };
        let Some(end) = end else { return bad("a member inside a file") };
        if let Some(part) = current.and_then(|at| parts.get_mut(at)) {
            part.end = part.end.max(end);
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds() {
        let text = "com,a)/ 2026\tcdx-00000.gz\t0\t10\t1\ncom,b)/ 2026\tcdx-00001.gz\t0\t9\t2\n\ncom,c)/ 2026\tcdx-00000.gz\t10\t9\t3\n";
        assert!(is_index(text));
        let part = |name: &str, end| Part { name: name.into(), end };
        assert_eq!(parts(text).unwrap(), [part("cdx-00000.gz", 19), part("cdx-00001.gz", 9)]);
        let json = "!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}\ncom,a)/ 2026 {\"offset\": 0, \"length\": 10}\n";
        assert!(is_index(json));
        assert_eq!(parts(json).unwrap(), [part("index.cdx.gz", 10)]);
        // A key keeps the braces of its URL.
        let braces = json.replace("com,a)/", "com,a)/{b}");
        assert_eq!(parts(&braces).unwrap(), [part("index.cdx.gz", 10)]);
        for bad in [
            "x\n",
            "k\tx.gz\t18446744073709551615\t1\t1",
            "com,a)/ 2026 {\"offset\": 0}",
            "k\t../x\t0\t1\t1",
            "k\t\t0\t1\t1",
            "!meta 0 {",
            "a\\b\tc\\d\t1\t2",
            "k\tx.gz\tten\t1\t1",
            "k\tx.gz\t10",
        ] {
            assert_eq!(parts(bad).unwrap_err().0, 1, "{bad}");
        }
        let without_length = json.replace(", \"length\": 10", "");
        assert_eq!(parts(&without_length).unwrap_err().0, 2);
        assert!(!is_index("http://a.com/\t2026\n") && !is_index("") && !is_index("a\tb\tc\td"));
    }
}
