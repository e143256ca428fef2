//! What the case files share.

/// One line of a document in a case: `\r`, `\n`, `\xHH` and `\uHHHH` decoded; a final `\` means no line feed.
pub fn decode(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let Some(kind) = chars.next() else { return out };
        let mut hex = |digits| u32::from_str_radix(&chars.by_ref().take(digits).collect::<String>(), 16).unwrap();
        match kind {
            'r' => out.push(b'\r'),
            'n' => out.push(b'\n'),
            'x' => out.push(u8::try_from(hex(2)).unwrap()),
            'u' => out.extend(char::from_u32(hex(4)).unwrap().to_string().as_bytes()),
            other => panic!("unknown escape {other}"),
        }
    }
    out.push(b'\n');
    out
}
