use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> Option<Head> {
    let end = end_of_head(text.as_bytes(), 0)?;
    Head::parse(Bytes::copy_from_slice(&text.as_bytes()[..end]))
}

#[test]
fn odd_heads_are_understood() {
    for (text, status, alive) in [
        ("HTTP/1.1 200 OK\r\n\r\n", 200, true),
        ("HTTP/1.1 200\r\n\r\n", 200, true),
        ("HTTP/1.1  404   Not here\n\n", 404, true),
        ("HTTP/1.1 200 ok\nA: b\r\n\n", 200, true),
        ("\r\n\r\nHTTP/1.1 301 Moved\r\n\r\n", 301, true),
        ("HTTP/1.0 200 OK\r\n\r\n", 200, false),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", 200, true),
        ("HTTP/1.1 200 OK\r\nconnection: foo, CLOSE\r\n\r\n", 200, false),
        ("HTTP/2 200\r\n\r\n", 200, true),
        ("HTTP/1.2 299 Custom\r\n\r\n", 299, true),
        ("HTTP/0.9 200 OK\r\n\r\n", 200, false),
        ("HTTP/1.1 999 No\r\n\r\n", 999, true),
        ("HTTP/1.1 200OK\r\n\r\n", 200, true),
    ] {
        let head = parse(text).unwrap_or_else(|| panic!("{text:?}"));
        assert_eq!((head.status(), head.keeps_alive()), (status, alive), "{text:?}");
    }
    for text in
        ["<html>\n\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 OK\r\n\r\n", "HTTP/1.1 99 x\r\n\r\n", "HTTP/1.1 2000 x\r\n\r\n"]
    {
        assert!(parse(text).is_none(), "{text:?}");
    }
    assert!(end_of_head(b"HTTP/1.1 200 OK\r\nA: b\r\n", 0).is_none());
}

#[test]
fn headers_repeat_fold_and_lack_colons() {
    let head = parse("HTTP/1.1 200 OK\r\nA: 1\r\na : 2\r\n  folded\r\nnonsense\r\n: empty\r\nB:\r\nC: \u{e9}\r\n\r\n")
        .unwrap();
    assert_eq!(head.all("A").collect::<Vec<_>>(), [&b"1"[..], b"2 folded"]);
    assert_eq!(head.text("b").as_deref(), Some(""));
    assert_eq!(head.text("c").as_deref(), Some("\u{e9}"));
    assert_eq!(head.text("nonsense"), None);
}

#[test]
fn the_stored_head_is_the_received_one_when_nothing_contradicts() {
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-LENGTH:   5  \r\nX: y\r\n\r\n",
        "HTTP/1.1 200\nX: y\n\n",
        "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
    ] {
        let head = parse(text).unwrap();
        assert_eq!(head.stored(5), text.as_bytes());
    }
}

#[test]
fn what_contradicts_the_body_is_renamed() {
    for (text, stored) in [
        (
            "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\nC: d\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 5\r\nC: d\r\n\r\n",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-Crawler-content-length: 99\r\nContent-Length: 5\r\n\r\n",
        ),
        // Bare line feeds stay bare; folded lines stay with their header.
        (
            "HTTP/1.1 200 OK\nTransfer-Encoding:\n chunked\nContent-Length: 5\n\n",
            "HTTP/1.1 200 OK\nX-Crawler-Transfer-Encoding:\n chunked\nContent-Length: 5\n\n",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-Crawler-Content-Length: 7\r\nContent-Length: 5\r\n\r\n",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        ),
    ] {
        assert_eq!(String::from_utf8(parse(text).unwrap().stored(5).to_vec()).unwrap(), stored);
    }
}

proptest! {
    #[test]
    fn never_panics_and_length_is_always_true(lines in proptest::collection::vec("[ -~\t]{0,30}|Content-Length: [0-9]{1,3}|Transfer-Encoding: chunked", 0..8), crlf: bool, n in 0u64..1000) {
        let end = if crlf { "\r\n" } else { "\n" };
        let mut text = format!("HTTP/1.1 200 OK{end}");
        for line in &lines {
            text += line;
            text += end;
        }
        text += end;
        let head = parse(&text).unwrap();
        let stored = head.stored(n);
        let again = Head::parse(stored.clone()).unwrap();
        prop_assert!(again.all("transfer-encoding").next().is_none());
        let lengths: Vec<_> = again.all("content-length").collect();
        prop_assert!(lengths.len() <= 1);
        if let Some(length) = lengths.first() {
            prop_assert_eq!(length.to_vec(), n.to_string().into_bytes());
        }
        // Storing again changes nothing.
        prop_assert_eq!(again.stored(n), stored);
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
        let whole = end_of_head(&bytes, 0);
        // Looking in two steps finds the same end.
        let cut = cut.min(bytes.len());
        let stepwise = end_of_head(&bytes[..cut], 0).or_else(|| end_of_head(&bytes, cut));
        prop_assert_eq!(whole, stepwise);
        if let Some(end) = whole {
            let _ = Head::parse(Bytes::copy_from_slice(&bytes[..end])).map(|h| h.stored(3));
        }
    }
}
