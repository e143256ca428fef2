use super::*;

/// A URL and its extras, or why there is none.
type Read = Result<(String, String), &'static str>;

fn read_text(options: &Options, text: &str) -> Result<Vec<Read>, String> {
    let mut out = Vec::new();
    let mut each = |_, item: Result<trawl_model::UrlRecord, DoorError>| {
        out.push(match item {
            Ok(record) => Ok((record.url, record.extras.unwrap_or_default())),
            Err(error) => Err(error.source.downcast::<BadItem>().unwrap().code),
        });
        Ok(())
    };
    read("x", None, options, text.as_bytes(), &mut each, &mut |_, _| {}).map_err(|e| e.to_string())?;
    Ok(out)
}

#[test]
fn separators_are_found() {
    for (text, expected) in [
        ("a,b", Some(b',')),
        ("a;b;\"c,d,e,f\"", Some(b';')),
        ("a\tb,c\td\n,,,,,", Some(b'\t')),
        ("a|b", Some(b'|')),
        ("\n\na;b", Some(b';')),
        ("a\nb,c", None),
        ("", None),
    ] {
        assert_eq!(separator_of(text.as_bytes()), expected, "{text:?}");
    }
    let expected = Ok(vec![Ok(("http://a.com/?a,b".to_owned(), r#"{"n":"1"}"#.to_owned()))]);
    for text in ["n;url\n1;http://a.com/?a,b\n", "n\turl\n1\thttp://a.com/?a,b", "n|url\r\n1|http://a.com/?a,b\r\n"] {
        assert_eq!(read_text(&Options::default(), text), expected, "{text:?}");
    }
    let asked = Options { separator: Some(b'~'), ..Options::default() };
    assert_eq!(read_text(&asked, "n~url\n1~http://a.com/?a,b"), expected);
}

#[test]
fn commas_of_urls_in_a_list_that_is_called_a_table() {
    let text = "http://a.com/?a=1,2\nhttp://b.com/\nhttp://c.com/a,b,c\n";
    let row = |url: &str| Ok((url.to_owned(), String::new()));
    let expected = vec![row("http://a.com/?a=1,2"), row("http://b.com/"), row("http://c.com/a,b,c")];
    assert_eq!(read_text(&Options::default(), text).unwrap(), expected);
    let table = read_text(&Options::default(), "http://a.com/,1\nhttp://b.com/,2\n").unwrap();
    assert_eq!(table[1], Ok(("http://b.com/".to_owned(), r#"{"column_2":"2"}"#.to_owned())));
}

#[test]
fn a_line_for_excel_and_comments_are_no_rows() {
    let row = |url: &str, extras: &str| Ok((url.to_owned(), extras.to_owned()));
    for text in ["\u{feff}sep=;\r\nurl;n\r\nhttp://a.com/?a,b,c;1\r\n", "\"sep=|\"\nn|url\n1|http://a.com/?a,b,c\n"] {
        let found = read_text(&Options::default(), text).unwrap();
        assert_eq!(found, [row("http://a.com/?a,b,c", r#"{"n":"1"}"#)], "{text:?}");
    }
    let text = "#####\n# list;url;and, more\n#\n\"7\";\"http://a.com/?a,b,c\"\n\"8\";\"http://b.com/\"\n";
    let found = read_text(&Options::default(), text).unwrap();
    assert_eq!(found, [row("http://a.com/?a,b,c", r#"{"column_1":"7"}"#), row("http://b.com/", r#"{"column_1":"8"}"#)]);
    let found = read_text(&Options::default(), "#,url\n1,http://a.com/\n").unwrap();
    assert_eq!(found, [row("http://a.com/", r##"{"#":"1"}"##)]);
    for text in ["# a\n# b\n", "# a,\"b\n\"7\",\"http://a.com/\"\n"] {
        assert!(read_text(&Options::default(), text).is_err(), "{text:?}");
    }
}

#[test]
fn separators_in_urls_of_tables_without_names() {
    for (text, expected) in [
        ("http://a.com/0,1518,7,00.html;x\nhttp://a.com/0,1518,8,00.html;y\n", Some(b';')),
        ("http://a.com/,text/html; charset=utf-8,200\nhttp://a.com/b,text/html; charset=utf-8,404\n", Some(b',')),
        ("http://a.com/,Home | A,1\nhttp://a.com/b,Page | A,2\n", Some(b',')),
        ("http://a.com/;jsessionid=1,200\nhttp://a.com/b;jsessionid=2,not found\n", Some(b',')),
        ("http://a.com/x,200\nhttp://a.com/y.html,404\n", Some(b',')),
        ("https://a.com,1000\nhttps://b.com:8443,5000\n", Some(b',')),
        ("http://a.com/,news;sport\nhttp://b.com/,news;tv\n", Some(b',')),
        ("\"http://a.com/a,b\";\"x\"\n\"http://b.com/c,d\";\"y\"\n", Some(b';')),
        ("http://a.com/a,b\tx\nhttp://b.com/\ty,z\n", Some(b'\t')),
        ("\thttp://a.com/a,b\r\nx\thttp://b.com/\r\n", Some(b'\t')),
        ("\u{feff}\"http://a.com/a,b\"|\"x\n,|y\"\nhttp://b.com/|y,z\nhttp://cut", Some(b'|')),
        ("1,http://a.com/x;y=1\n2,http://b.com/\n", Some(b',')),
        ("1,http://a.com/x;y=1", Some(b',')),
        ("http://a.com/a,b\nhttp://b.com/\n", None),
        ("http://a.com/a,b\tx\nhttp://b.com/c,d\ty\n", Some(b'\t')),
        ("http://a.com/0,1518,7,00.html;x\n", Some(b';')),
        ("http://a.com,a;b\nhttp://b.com,c;d\n", Some(b',')),
        ("url;x,y,z\nhttp://a.com/;1\n", None),
        ("", None),
    ] {
        assert_eq!(separator_of_urls(text.as_bytes()), Ok(expected), "{text:?}");
    }
    let text = "http://a.com/0,1518,7,00.html;x\nhttp://a.com/0,1518,8,00.html;y\n";
    let found = urls(&Options::default(), text);
    assert_eq!(found, [Ok("http://a.com/0,1518,7,00.html".to_owned()), Ok("http://a.com/0,1518,8,00.html".to_owned())]);
}

/// By a wrong guess, every URL of the table was cut at its comma, with exit code 0.
#[test]
fn a_separator_that_cannot_be_told_is_asked_for() {
    let text = "http://a.com/x,y;1\nhttp://b.com/z,w;2\n";
    let error = read_text(&Options::default(), text).unwrap_err();
    let expected = "found ',' and ';', by which the first URL is \"http://a.com/x\" or \"http://a.com/x,y\": give the right one with --separator";
    assert!(error.contains(expected), "{error}");
    let given = Options { separator: Some(b';'), ..Options::default() };
    assert_eq!(urls(&given, text), [Ok("http://a.com/x,y".to_owned()), Ok("http://b.com/z,w".to_owned())]);
    // What is not in every row separates nothing, so there is no doubt.
    let text = "http://a.com/x,1;2 h\nhttp://b.com/y,3\n";
    assert_eq!(urls(&Options::default(), text), [Ok("http://a.com/x".to_owned()), Ok("http://b.com/y".to_owned())]);
}

/// Common Crawl's web graphs have such hosts: `com.example.www` came into the lake, with exit code 0.
#[test]
fn hosts_in_reverse_are_refused() {
    let text = "#harmonicc_pos\t#pr_val\t#host_rev\n1\t0.5\tcom.example.www\n2\t0.4\torg.example\n";
    let error = read_text(&Options::default(), text).unwrap_err();
    assert!(error.contains("\"#host_rev\" of hosts in reverse"), "{error}");
    let named = Options { url_column: Some("3".into()), ..Options::default() };
    assert_eq!(urls(&named, text), [Ok("com.example.www".to_owned()), Ok("org.example".to_owned())]);
    // A remark above the table is not a header, and a column of whole URLs is not one of hosts.
    for text in ["# see last_rev\n1\ta.com\n", "#n\t#host_rev\n1\thttp://a.com\n"] {
        assert_eq!(read_text(&Options::default(), text).map(|rows| rows.len()), Ok(1), "{text:?}");
    }
    // The vertices have no header, and `google` and `blog` are top-level domains themselves.
    let vertices =
        "0\tcom.example\n1\tcom.example.www\n2\tcom.google\n3\torg.example.blog\n4\tde.a.www\n5\tUK.co.example\n";
    for text in [vertices.to_owned(), format!("id\thost\n{vertices}")] {
        let error = read_text(&Options::default(), &text).unwrap_err();
        assert!(error.contains("of hosts in reverse"), "{text:?}: {error}");
    }
    let named = Options { url_column: Some("2".into()), ..Options::default() };
    assert_eq!(urls(&named, vertices).len(), 6);
    // Hosts of a network of one's own may begin as those do, but few of a list, and the others end in a top-level domain.
    for text in [
        "1\tgoogle.com\n2\tapp.x.lan\n3\tdev.x.lan\n",
        "1\tgoogle.com\n2\tcom.x.lan\n3\tapp.x.lan\n4\tdev.x.lan\n5\tmail.x.lan\n6\tblog.example.org\n7\tpay.example.org\n",
    ] {
        assert_eq!(urls(&Options::default(), text).len(), text.lines().count(), "{text:?}");
    }
}

/// Hive separates fields by U+0001. Every row was one URL of all its fields, with exit code 0.
#[test]
fn fields_that_only_hive_separates_are_no_part_of_a_url() {
    let text = "http://a.com/1\u{1}one\u{1}200\nhttp://a.com/2\u{1}two\u{1}404\n";
    assert_eq!(urls(&Options::default(), text), [Err("columns"), Err("columns")]);
    let given = Options { separator: Some(1), ..Options::default() };
    assert_eq!(urls(&given, text), [Ok("http://a.com/1".to_owned()), Ok("http://a.com/2".to_owned())]);
}

/// Every URL of the list was cut at its comma, with exit code 0.
#[test]
fn lines_that_may_be_urls_with_a_separator_are_asked_for() {
    let text = "http://a.com/x-1,00.html\nhttp://a.com/x-2,00.html?y#z\n";
    for text in [
        text,
        "http://a.com/x-1,00.html",
        "http://a.com/0,1518,7,00.html\nhttp://a.com/0,1518,8,00.html\n",
        "https://a.com/maps/@52.5,13.4,15z\nhttps://a.com/maps/@48.1,11.5,12z\n",
        "http://a.com/s0,1/pizza/all.html\nhttp://a.com/s1,1/soup/all.html\n",
        "http://a.com/x,200\nhttp://a.com/y,404\n",
        "http://a.com/x,b.com\n",
        "http://a.com/x,a/b.html\n",
        // The URL is not the first field.
        "1,http://a.com/x,y.html\n",
        "200,text/html,http://a.com/x,y\n404,text/html,http://a.com/z,w\n",
        "https://a.com/abc,79cf,A title\nhttps://a.com/def,80cf,Another\n",
        // Nothing separates these evenly.
        "https://a.com/a,b/c,2026-11-19 04:03:05\nhttps://a.com/x/y,2026-11-19 04:03:05\n",
        "1,http://a.com/x,y\n2,http://a.com/\n",
        "1,http://a.com/\n2,http://a.com/x,y\n",
    ] {
        let error = read_text(&Options::default(), text).unwrap_err();
        assert!(error.contains("--separator ','") && error.contains("--format lines"), "{text:?}: {error}");
    }
    let given = Options { separator: Some(b','), ..Options::default() };
    assert_eq!(urls(&given, text), [Ok("http://a.com/x-1".to_owned()), Ok("http://a.com/x-2".to_owned())]);
    let sessions = "http://a.com/x;jsessionid=1\nhttp://a.com/y;jsessionid=2\n";
    assert!(read_text(&Options::default(), sessions).unwrap_err().contains("--separator ';'"));
    for (text, url) in [
        ("http://a.com/x,b c\n", "http://a.com/x"),
        ("\"http://a.com/x\",1\n", "http://a.com/x"),
        ("http://a.com/x|1\n", "http://a.com/x"),
        ("http://a.com/x,,\n", "http://a.com/x"),
        ("http://a.com/,x.html\n", "http://a.com/"),
        ("http://a.com/x.html,y.html\n", "http://a.com/x.html"),
        ("http://a.com/x,http://a.com/y.html\n", "http://a.com/x"),
        ("1,http://a.com/x\n", "http://a.com/x"),
    ] {
        assert_eq!(urls(&Options::default(), text), [Ok(url.to_owned())], "{text:?}");
    }
}

/// Names of flattened JSON were taken for hosts: `response.status` and each status became a row.
#[test]
fn names_with_dots_are_no_hosts() {
    for text in [
        "response.status,request.url\n200,http://a.com/\n",
        "response.status,request.url\n",
        "request.url\nhttp://a.com/\n",
        "meta.title,page.link\nHello,http://a.com/",
        "server.name,server.ip\na.com,1.2.3.4\n",
        "sep=;\n# x\nmeta.title;page.link\nHello;http://a.com/\n",
    ] {
        let error = read_text(&Options::default(), text).unwrap_err();
        assert!(error.contains("expected a header line") && error.contains("--url-column"), "{text:?}: {error}");
    }
    let text = "response.status,request.url\n200,http://a.com/\n";
    let expected = [Ok(("http://a.com/".to_owned(), r#"{"response.status":"200"}"#.to_owned()))];
    for column in ["request.url", "2"] {
        let named = Options { url_column: Some(column.into()), ..Options::default() };
        assert_eq!(read_text(&named, text).unwrap(), expected, "{column}");
    }
    for (text, hosts) in [
        ("a.com,mail.a.com\nb.com,\n", ["a.com", "b.com"]),
        ("my.host,1\nyour.host,2\n", ["my.host", "your.host"]),
        ("a.com\nb.com/x\n", ["a.com", "b.com/x"]),
    ] {
        assert_eq!(urls(&Options::default(), text), hosts.map(|host| Ok(host.to_owned())), "{text:?}");
    }
}

#[test]
fn a_header_in_the_middle_is_no_host() {
    let text = "url,n\nhttp://a.com/,1\nurl,n\n\u{feff}url, n\nurl,2\nhttp://b.com/,3\n";
    let row = |url: &str, n: u8| Ok((url.to_owned(), format!("{{\"n\":\"{n}\"}}")));
    let expected = [row("http://a.com/", 1), Err("header"), Err("header"), row("url", 2), row("http://b.com/", 3)];
    assert_eq!(read_text(&Options::default(), text).unwrap(), expected);
    assert_eq!(read_text(&Options::default(), "url\nurl\n").unwrap(), [Err("header")]);
}

#[test]
fn tables_without_a_header() {
    let row = |url: &str, extras: &str| Ok((url.to_owned(), extras.to_owned()));
    let expected = [row("google.com", r#"{"column_1":"1"}"#), row("youtube.com", r#"{"column_1":"2"}"#)];
    assert_eq!(read_text(&Options::default(), "1,google.com\r\n2,youtube.com\r\n").unwrap(), expected);
    let crawl = Options::crawl();
    assert_eq!(read_text(&crawl, "1,google.com\n").unwrap(), [row("http://google.com/", r#"{"column_1":"1"}"#)]);
    let urls = read_text(&Options::default(), "x;http://a.com/;b.com\ny;http://c.com/\n,,\n");
    let expected = [
        row("http://a.com/", r#"{"column_1":"x","column_3":"b.com"}"#),
        row("http://c.com/", r#"{"column_1":"y"}"#),
        Err("no_url"),
    ];
    assert_eq!(urls.unwrap(), expected);
    let second = Options { url_column: Some("2".into()), time_column: Some("1".into()), ..Options::default() };
    assert_eq!(read_text(&second, "2026,a\n2026,b.com\n").unwrap(), [row("a", ""), row("b.com", "")]);
    assert_eq!(read_text(&second, "2026,a.com\n").unwrap(), [row("a.com", "")]);
    for (options, text) in [(&crawl, "a,b\n1,2\n"), (&crawl, ""), (&crawl, "1,2.5\n"), (&second, "a\n")] {
        let error = read_text(options, text).unwrap_err();
        assert!(error.contains("expected a header line with a column"), "{error}");
    }
    let misspelt = Options { time_column: Some("sen".into()), ..Options::default() };
    let error = read_text(&misspelt, "url,seen\nhttp://a.com/,2026\n").unwrap_err();
    assert!(error.contains(r#"expected a column "sen", as --time-column says, found "url,seen""#), "{error}");
    let error = read_text(&Options::default(), "id,link\n1,2\n").unwrap_err();
    assert!(error.contains(r#"found "id,link""#), "{error}");
}

/// A value such as `url` was taken for the name of its column: the first row vanished, and every row became that of a word.
#[test]
fn a_row_with_a_url_is_no_header() {
    let found = urls(&Options::default(), "url,http://a.com/x\ndomain,http://b.com/\n");
    assert_eq!(found, [Ok("http://a.com/x".to_owned()), Ok("http://b.com/".to_owned())]);
    let named = Options { url_column: Some("link".into()), ..Options::default() };
    assert_eq!(urls(&named, "link,http://ns.example/title\nhttp://a.com/,x\n"), [Ok("http://a.com/".to_owned())]);
}

/// The first row was taken for names, and vanished with exit code 0, where its address was not a bare host: the very tables for which
/// an error advises to give the number.
#[test]
fn a_number_for_a_column_costs_no_row() {
    let numbered = |column: &str| Options { url_column: Some(column.into()), ..Options::default() };
    for (column, text, expected) in [
        ("2", "1,a.com/path\n2,b.com/x\n", &["a.com/path", "b.com/x"][..]),
        ("2", "1,com\n2,net\n", &["com", "net"]),
        ("2", "1,com\n2,google.com\n", &["com", "google.com"]),
        ("2", "1,192.0.2.1\n2,192.0.2.7\n", &["192.0.2.1", "192.0.2.7"]),
        ("2", "1,localhost:8080\n2,b.com:80\n", &["localhost:8080", "b.com:80"]),
        ("2", "1,a.com.\n", &["a.com."]),
        ("1", "www.a.com/x\nwww.b.com/y\n", &["www.a.com/x", "www.b.com/y"]),
        ("1", "Address,Code\nhttp://a.com/,200\n", &["http://a.com/"]),
        ("2", ",0\n0,http://a.com/\n1,http://b.com/\n", &["http://a.com/", "http://b.com/"]),
        ("2", ",0,1\n0,http://a.com/,x\n", &["http://a.com/"]),
        ("1", "Address,Code\n", &[]),
        // The number is that of a column, although the first row has the same in another one.
        ("1", "http://a.com/x,1\nhttp://b.com/,2\n", &["http://a.com/x", "http://b.com/"]),
        ("1", "a.com/x,1\nb.com,2\n", &["a.com/x", "b.com"]),
        ("1", ",0,1\n0,x,http://a.com/\n", &["http://a.com/"]),
    ] {
        let found = urls(&numbered(column), text);
        assert_eq!(found, expected.iter().map(|url| Ok((*url).to_owned())).collect::<Vec<_>>(), "{text:?}");
    }
    // Something that is not an address is reported.
    assert_eq!(urls(&numbered("2"), "1,\n2,http://b.com/\n"), [Err("no_url"), Ok("http://b.com/".to_owned())]);
    let crawl = Options { purpose: crate::Purpose::Crawl, ..numbered("2") };
    let seeds = urls(&crawl, "1,a.com/path\n2,b.com\n");
    assert_eq!(seeds, [Ok("http://a.com/path".to_owned()), Ok("http://b.com/".to_owned())]);
}

#[test]
fn a_domain_or_host_alone_is_enough() {
    let found = read_text(&Options::default(), "GlobalRank,TldRank,Domain\n1,1,google.com\n");
    let extras = r#"{"GlobalRank":"1","TldRank":"1"}"#;
    assert_eq!(found.unwrap(), [Ok(("google.com".to_owned(), extras.to_owned()))]);
}

#[test]
fn tables_are_told_from_lines() {
    let of = |line: &str| looks_like_table(line.as_bytes());
    for line in ["url,ts", "id;\"URL\";x", "GlobalRank,Domain", "n\turl", "1,google.com", "1\tgoogle.com", "7;a.com;x"]
    {
        assert!(of(line), "{line}");
    }
    for line in ["url", "http://a.com/,x", "url,http://a.com/", "a,b", "1,2", "1,a b.com", "com,a)/ 2026 {}", ",a.com"]
    {
        assert!(!of(line), "{line}");
    }
}

fn urls(options: &Options, text: &str) -> Vec<Result<String, &'static str>> {
    read_text(options, text).unwrap().into_iter().map(|row| row.map(|(url, _)| url)).collect()
}

#[test]
fn a_stray_quote_costs_no_row() {
    let options = Options::default();
    for (name, first, row) in [
        ("bare hosts", "url,t\na.com,\"5 inch\n", "hN.com,x\n"),
        ("short rows", "url,t,z\nhttp://a.com/,\"5 inch,\n", "http://hN.com/,x\n"),
        ("a URL behind it", "n,url\n\"5 inch,a.com/x?y\n", "x,hN.com:80/\n"),
    ] {
        let text: String = (0..50).map(|n| row.replace('N', &n.to_string())).collect();
        let found = urls(&options, &format!("{first}{text}"));
        assert_eq!(found.iter().filter(|url| url.is_ok()).count(), 51, "{name}");
    }
    // What is not a URL is not made one.
    let found = urls(&options, "t,url\nx,\"a.com\nhello, world\nx,localhost\n1,b.com\n");
    assert_eq!(found, [Err("quote"), Err("quote"), Err("quote"), Ok("b.com".to_owned())]);
}

#[test]
fn rows_inside_a_text_are_not_rows() {
    for (text, expected) in [
        (
            "text,url\n\"Hello\nsee also, http://foo.com/\nbye\",http://a.com/\nx,http://b.com/\n",
            ["http://a.com/", "http://b.com/"],
        ),
        (
            "url,text\nhttp://a.com/,\"links:\nhttp://x.com/,\nhttp://y.com/, and more\"\nhttp://b.com/,z\n",
            ["http://a.com/", "http://b.com/"],
        ),
        ("domain,text\na.com,\"first\nexample.org, a site\nend\"\nb.com,z\n", ["a.com", "b.com"]),
    ] {
        assert_eq!(urls(&Options::default(), text), expected.map(|url| Ok(url.to_owned())), "{text}");
    }
}

#[test]
fn blanks_around_a_url_are_not_part_of_it() {
    let found = urls(&Options::default(), "url,x\n http://a.com/ ,1\n\thttp://a.com/,2\n  ,3\n");
    assert_eq!(found, [Ok("http://a.com/".to_owned()), Ok("http://a.com/".to_owned()), Err("no_url")]);
}

/// A field as Python's `csv.writer` writes it.
fn written(field: &str) -> String {
    let special = field.contains([',', '"', '\n', '\r']);
    if special { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

/// Texts that make it hard: lines that look like rows, and every mark of the format.
fn text(rng: &mut u64, marks: &[&str]) -> String {
    let mut next = |most: u64| {
        *rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*rng >> 33) % most
    };
    (0..next(12)).map(|_| marks[next(marks.len() as u64) as usize]).collect()
}

#[test]
fn what_a_csv_writer_writes_is_read_back() {
    let marks = ["\n", "\r\n", "\"", ",", ", ", " ", "x", "http://no.example/", "no.example", "\n5,y,no.example", "é"];
    let rng = &mut 15;
    for _ in 0..300 {
        let place = (*rng >> 40) as usize % 3;
        let names: Vec<&str> = (0..3).map(|at| if at == place { "url" } else { ["a", "b", "c"][at] }).collect();
        let mut file = names.join(",") + "\r\n";
        let mut expected = Vec::new();
        for n in 0..20 {
            let url = format!("http://h{n}.example/?a,b");
            let row: Vec<String> =
                (0..3).map(|at| written(&if at == place { url.clone() } else { text(rng, &marks) })).collect();
            file += &(row.join(",") + "\r\n");
            expected.push(Ok(url));
        }
        assert_eq!(urls(&Options::default(), &file), expected, "{file}");
    }
}

#[test]
fn stray_quotes_lose_and_invent_nothing() {
    // No separators: a field of two more is a URL to nobody.
    let marks = ["\"", "\"\"", " ", "x", "5"];
    let rng = &mut 16;
    for round in 0..500 {
        let mut file = "t,url,u\n".to_owned();
        let lines = 30;
        for n in 0..lines {
            let (before, behind) = (text(rng, &marks), text(rng, &marks));
            file += &format!("{before},http://h{n}.example/,{behind}\n");
        }
        let found = read_text(&Options::default(), &file).unwrap();
        let mut seen = 0;
        for row in &found {
            let Ok((url, extras)) = row else { continue };
            seen += 1;
            let is_known = (0..lines).any(|n| *url == format!("http://h{n}.example/"));
            assert!(is_known, "round {round}: {url} {extras}\n{file}");
        }
        // Every line is a row, a reject, or a line of a field that RFC 4180 closes.
        let inside: usize =
            found.iter().map(|row| row.as_ref().map_or(0, |(_, extras)| extras.matches("\\n").count())).sum();
        let rejected_lines = rejected_line_ends(&file);
        assert!(seen > 0 && found.len() + inside + rejected_lines >= lines, "round {round}\n{file}");
    }
}

/// Line ends inside rows that were rejected.
fn rejected_line_ends(file: &str) -> usize {
    let mut ends = 0;
    let mut each = |_, item: Result<trawl_model::UrlRecord, DoorError>| {
        if let Err(error) = item {
            let text = error.source.downcast::<BadItem>().unwrap().text;
            ends += text.as_bytes().iter().filter(|b| **b == b'\n').count();
        }
        Ok(())
    };
    read("x", None, &Options::default(), file.as_bytes(), &mut each, &mut |_, _| {}).unwrap();
    ends
}
