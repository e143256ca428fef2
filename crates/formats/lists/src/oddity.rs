//! What may not be meant so, and is taken as it is: nothing shows that it is wrong, but whoever brought it should hear of it.

/// Longest scheme that is looked for.
const MAX_SCHEME: usize = 12;

/// A line has another URL behind a comma, a semicolon or a bar. A URL may hold one there (`/image/fetch/w_300,https://…`), and then
/// the line is one URL; else it is several that somebody joined.
pub(crate) const JOINED: &str = "joined_urls";
/// The first lines hold a separator equally often, as the rows of a table do that has no header and is called a list of lines. URLs may
/// hold it as well (`/article-7,00.html`).
pub(crate) const ROWS: &str = "like_rows";
/// Beside the URL of a row there is another one, in a table whose header does not say which of them is the URL.
pub(crate) const BESIDE: &str = "urls_beside";

/// What the code of an oddity says of so many items.
pub fn describe_oddity(code: &str) -> &'static str {
    match code {
        JOINED => {
            "line(s) hold another URL behind a comma, semicolon or bar, and were taken as one URL each: if they are several, put each into its own line"
        }
        ROWS => "line(s) look like rows of a table, and were taken as one URL each: --format csv reads them as rows",
        BESIDE => {
            "row(s) of a table without header hold more than one URL, of which the first was taken: --url-column takes another, --format lines the whole line"
        }
        _ => "item(s) may not be meant as they were taken",
    }
}

/// Whether a URL has another one right behind a comma, a semicolon or a bar.
pub(crate) fn has_joined_url(text: &str) -> bool {
    let text = text.as_bytes();
    memchr::memchr3_iter(b',', b';', b'|', text).any(|at| {
        let behind = text.get(at + 1..).unwrap_or_default();
        has_scheme(behind.strip_prefix(b"\"").unwrap_or(behind))
    })
}

/// Whether a text begins with a scheme, as a URL does.
pub(crate) fn has_scheme(text: &[u8]) -> bool {
    let letters = text.iter().take(MAX_SCHEME).take_while(|b| b.is_ascii_alphanumeric()).count();
    letters > 0 && text.get(letters..).is_some_and(|rest| rest.starts_with(b"://"))
}

#[cfg(test)]
mod tests {
    use crate::tests::file_of;
    use crate::{Format, Options, over};
    use trawl_model::Aside;

    /// How many records there are, and the oddities: where, which, in which line.
    fn odd(format: Format, text: &str, target: u64) -> (usize, Vec<(u64, String, Option<u64>)>) {
        let source = over(file_of("f", text.as_bytes()), format, &Options::default()).unwrap();
        let (mut records, mut found) = (0, Vec::new());
        for split in source.splits(target).unwrap() {
            let mut each = |_, item: Result<_, _>| {
                records += usize::from(item.is_ok());
                Ok(())
            };
            let mut aside = |at, aside: Aside<'_>| {
                let Aside::Oddity(code, line) = aside else { panic!("{aside:?}") };
                found.push((at, code.to_owned(), line));
            };
            source.read_all(split, &mut each, &mut aside).unwrap();
        }
        (records, found)
    }

    /// They became one URL with exit code 0, and nothing said so.
    #[test]
    fn lines_with_several_urls_are_told() {
        let image = "https://img.example/image/fetch/w_300,https://a.example/a.jpg";
        let text =
            format!("# c\r\nhttp://a.example/1,http://b.example/2\r\n\r\nhttp://a.example/a,b;c|d://e\n{image}\n");
        let first = (5, "joined_urls".to_owned(), Some(2));
        let (records, found) = odd(Format::Lines, &text, u64::MAX);
        assert_eq!((records, found.len(), &found[0], found[2].2), (3, 3, &first, Some(5)));
        // Of what is read from the middle on, the line is not known.
        let (records, found) = odd(Format::Lines, &text, 10);
        assert_eq!((records, found.len(), found[2].2), (3, 3, None));
        for usual in ["http://a.example/a,b", "http://a.example/?u=http://b.example/", "a.example,b.example", "x,://y"]
        {
            assert_eq!(odd(Format::Lines, usual, u64::MAX), (1, Vec::new()), "{usual}");
        }
        // As `sqlite3` prints rows, in a file called .txt: the number became part of the URL.
        let rows = "http://a.example/x|3\nhttp://b.example/y|12\nhttp://c.example/\n";
        assert_eq!(odd(Format::Lines, rows, u64::MAX), (3, Vec::new()), "not equally often");
        let (records, found) = odd(Format::Lines, rows.get(..43).unwrap(), u64::MAX);
        assert_eq!((records, found), (2, vec![(0, "like_rows".into(), Some(1)), (21, "like_rows".into(), Some(2))]));
        // What has a value of its own is what a program wrote.
        let object = format!("{{\"url\":\"{image}\"}}\n");
        assert_eq!(odd(Format::Jsonl, &object, u64::MAX), (1, Vec::new()));
    }

    #[test]
    fn rows_with_several_urls_are_told_where_no_name_says_which_one_counts() {
        let rows =
            "https://img.example/w_300,https://a.example/a.jpg\nhttps://img.example/w_9,https://a.example/b.jpg\n";
        let (records, found) = odd(Format::Csv, rows, u64::MAX);
        assert_eq!((records, found.len(), &found[1]), (2, 2, &(50, "urls_beside".to_owned(), None)));
        assert_eq!(odd(Format::Csv, &format!("url,image\n{rows}"), u64::MAX), (2, Vec::new()));
        let numbered = "1,http://a.example/\n2,http://b.example/\n";
        assert_eq!(odd(Format::Csv, numbered, u64::MAX), (2, Vec::new()));
    }
}
