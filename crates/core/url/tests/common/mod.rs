//! Tables in Markdown files: cells are code spans with the vectors' escapes.

use std::path::Path;

/// The rows of the table whose header line starts with `header`; panics when there is none.
pub fn table(text: &str, header: &str) -> Vec<Vec<Vec<u8>>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(header));
    let columns = cells(lines.next().unwrap_or_else(|| panic!("no table \"{header}\""))).len();
    assert!(lines.next().is_some_and(|rule| rule.starts_with("| ---")), "{header}");
    let rows: Vec<Vec<Vec<u8>>> = lines.take_while(|line| line.starts_with('|')).map(cells).collect();
    for row in &rows {
        assert_eq!(row.len(), columns, "{row:?}");
    }
    rows
}

/// A file beside the tests.
pub fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Splits a row at bars that no backslash precedes.
fn cells(line: &str) -> Vec<Vec<u8>> {
    let line = line.trim_end();
    let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')).unwrap_or_else(|| panic!("{line}"));
    let mut cells = vec![String::new()];
    let mut chars = inner.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' if chars.peek() == Some(&'|') => cells.last_mut().unwrap().push(chars.next().unwrap()),
            '|' => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(char),
        }
    }
    cells.iter().map(|cell| span(cell)).collect()
}

/// What a cell stands for: nothing, plain text, or a code span with escapes.
pub fn span(cell: &str) -> Vec<u8> {
    let cell = cell.trim();
    match cell {
        "" | "(empty)" => Vec::new(),
        _ if cell.starts_with("``") => unescape(cell.strip_prefix("``").unwrap().strip_suffix("``").unwrap()),
        _ if cell.starts_with('`') && cell.ends_with('`') => unescape(&cell[1..cell.len() - 1]),
        _ => cell.as_bytes().to_vec(),
    }
}

/// `\t \n \xHH \uHHHH \u{H…} \{text*count}`; any other backslash is itself.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let tail = &rest[at + 1..];
        let hex = |range: std::ops::Range<usize>| tail.get(range).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let mut char = [0; 4];
        let (bytes, used): (Vec<u8>, usize) = if tail.starts_with('t') {
            (b"\t".to_vec(), 1)
        } else if tail.starts_with('n') {
            (b"\n".to_vec(), 1)
        } else if let (true, Some(byte)) = (tail.starts_with('x'), hex(1..3)) {
            (vec![byte as u8], 3)
        } else if let (true, Some(code)) = (tail.starts_with('u'), hex(1..5)) {
            (char::from_u32(code).unwrap().encode_utf8(&mut char).as_bytes().to_vec(), 5)
        } else if let Some((code, _)) = tail.strip_prefix("u{").and_then(|tail| tail.split_once('}')) {
            let code_point = char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap();
            (code_point.encode_utf8(&mut char).as_bytes().to_vec(), code.len() + 3)
        } else if let Some((repeat, _)) = tail.strip_prefix('{').and_then(|tail| tail.split_once('}')) {
            let (text, count) = repeat.split_once('*').unwrap();
            (text.repeat(count.parse().unwrap()).into_bytes(), repeat.len() + 2)
        } else {
            (b"\\".to_vec(), 0)
        };
        out.extend_from_slice(&bytes);
        rest = &tail[used..];
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// Bytes for a message.
pub fn show(bytes: &[u8]) -> String {
    let text: String = bytes.escape_ascii().to_string();
    if text.len() > 200 { format!("{}... ({} bytes)", &text[..200], bytes.len()) } else { text }
}
