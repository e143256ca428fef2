//! WARC records made for a test.

/// A record of this type about a URL, with a block and more header lines.
pub fn record(kind: &str, url: &str, n: usize, more: &str, block: &str) -> String {
    let target = if url.is_empty() { String::new() } else { format!("WARC-Target-URI: {url}\r\n") };
    let date = if more.contains("WARC-Date") { "" } else { "WARC-Date: 2026-06-24T01:02:03Z\r\n" };
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\n{date}{target}{more}\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

/// A page.
pub fn page(url: &str, n: usize) -> String {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello {n}");
    record("response", url, n, "Content-Type: application/http\r\n", &block)
}
