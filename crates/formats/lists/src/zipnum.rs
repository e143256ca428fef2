//! ZipNum: a CDX or CDXJ index in gzip members, and a small index of those, which names the files.
//!
//! ```text
//! com,a)/ 20260624010203 ⇥ cdx-00000.gz ⇥ 0 ⇥ 12345 ⇥ 1                  key, file, offset, length, number
//! !meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}        the same in JSON
//! com,a)/ 20260624010203 {"offset": 0, "length": 12345}
//! ```

use serde::Deserialize;

/// What a line of JSON says.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    filename: Option<String>,
    #[serde(default)]
    offset: Option<u64>,
}

/// Whether a text begins as an index of ZipNum does.
pub fn is_index(head: &str) -> bool {
    let line = head.lines().find(|line| !line.is_empty()).unwrap_or_default();
    let tabs: Vec<&str> = line.split('\t').collect();
    let numbers = || tabs.iter().skip(2).all(|word| word.parse::<u64>().is_ok());
    line.starts_with("!meta ") || tabs.len() >= 4 && numbers()
}

/// The files that an index names, each once, in order. The error is the number of a line and what is wrong with it.
pub fn parts(text: &str) -> Result<Vec<String>, (usize, String)> {
    let mut names: Vec<String> = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let bad = |expected: &str| Err((n + 1, format!("expected {expected}, found {line:?}")));
        let name = match (line.split('\t').nth(1), line.find('{').and_then(|at| line.get(at..))) {
            (Some(name), _) => Some(name.to_owned()),
            (None, Some(json)) => match serde_json::from_str::<Part>(json) {
                Ok(part) if part.filename.is_some() => part.filename,
                // Members of the file that was named before.
                Ok(part) if part.offset.is_some() && !names.is_empty() => None,
                _ => return bad("a file name, or a member of a file that was named"),
            },
            (None, None) => return bad("a key, a tab and a file name"),
        };
        // Parts lie beside their index: nothing else may be reached through it.
        match name {
            Some(name) if name.is_empty() || name.contains(['/', '\\']) => {
                return bad("the name of a file beside the index");
            }
            Some(name) if !names.contains(&name) => names.push(name),
            _ => {}
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds() {
        let text = "com,a)/ 2026\tcdx-00000.gz\t0\t10\t1\ncom,b)/ 2026\tcdx-00001.gz\t0\t9\t2\n\ncom,c)/ 2026\tcdx-00000.gz\t10\t9\t3\n";
        assert!(is_index(text));
        assert_eq!(parts(text).unwrap(), ["cdx-00000.gz", "cdx-00001.gz"]);
        let json = "!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}\ncom,a)/ 2026 {\"offset\": 0, \"length\": 10}\n";
        assert!(is_index(json));
        assert_eq!(parts(json).unwrap(), ["index.cdx.gz"]);
        for bad in
            ["x\n", "com,a)/ 2026 {\"offset\": 0}", "k\t../x\t0\t1\t1", "k\t\t0\t1\t1", "!meta 0 {", "a\\b\tc\\d\t1\t2"]
        {
            assert_eq!(parts(bad).unwrap_err().0, 1, "{bad}");
        }
        assert!(!is_index("http://a.com/\t2026\n") && !is_index("") && !is_index("a\tb\tc\td"));
    }
}
