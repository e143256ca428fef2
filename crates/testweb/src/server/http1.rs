//! HTTP/1.x by hand: the server must be able to send any bytes, also wrong ones, so no library stands in between.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Shared;
use super::reply;
use crate::log::{Proto, Request};

/// Longest request head accepted.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Most header lines accepted.
const MAX_HEADERS: usize = 100;
/// Longest request body that is read and thrown away to keep a connection.
const MAX_BODY_BYTES: u64 = 1 << 20;

/// Serves one connection until it ends.
pub(super) async fn connection(mut stream: TcpStream, conn: u64, shared: &Shared) -> io::Result<()> {
    let mut input = Vec::with_capacity(4 << 10);
    let mut output = Vec::with_capacity(16 << 10);
    let mut count = 0;
    loop {
        let Some(head_len) = read_head(&mut stream, &mut input).await? else { return Ok(()) };
        count += 1;
        let start = shared.log.now();
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let head = input.get(..head_len).unwrap_or_default();
        let keep = match parsed.parse(head) {
            Ok(httparse::Status::Complete(_)) => {
                let fields = Fields::of(&parsed);
                let request = fields.request(&parsed, conn, count);
                if !shared.latency.is_zero() {
                    tokio::time::sleep(shared.latency).await;
                }
                output.clear();
                let reply = reply::write(&shared.world, &request, fields.keep, &mut output);
                let mut guard = Unfinished { shared, start, request: &request, reply, whole: false };
                stream.write_all(&output).await?;
                guard.whole = true;
                drop(guard);
                let keep = fields.keep && fields.body_bytes <= MAX_BODY_BYTES;
                if keep { Some(fields.body_bytes) } else { None }
            }
            _ => {
                let request = Request {
                    conn,
                    stream: count,
                    proto: Proto::Http1,
                    host: None,
                    method: b"-",
                    target: head.get(..head.len().min(200)).unwrap_or_default(),
                    agent: None,
                    if_none_match: None,
                    if_modified_since: None,
                };
                stream.write_all(reply::BAD_REQUEST).await?;
                shared.log.request(start, &request, 400, 0, true);
                None
            }
        };
        let Some(body_bytes) = keep else { return Ok(()) };
        input.drain(..head_len.min(input.len()));
        skip(&mut stream, &mut input, body_bytes).await?;
    }
}

/// Logs a request however its response ends, also when the client or a stop cuts it.
struct Unfinished<'a> {
    shared: &'a Shared,
    start: u64,
    request: &'a Request<'a>,
    reply: reply::Sent,
    whole: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let bytes = if self.whole { self.reply.body_bytes } else { 0 };
        self.shared.log.request(self.start, self.request, self.reply.status, bytes, self.whole);
    }
}

/// The headers that matter here.
struct Fields<'a> {
    host: Option<&'a [u8]>,
    agent: Option<&'a [u8]>,
    if_none_match: Option<&'a [u8]>,
    if_modified_since: Option<&'a [u8]>,
    body_bytes: u64,
    keep: bool,
}

impl<'a> Fields<'a> {
    fn of(parsed: &httparse::Request<'_, 'a>) -> Self {
        let value = |name: &str| parsed.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value);
        let says = |word: &[u8]| value("connection").is_some_and(|v| v.eq_ignore_ascii_case(word));
        let length = value("content-length").and_then(|v| std::str::from_utf8(v).ok()).map(|v| v.trim().parse());
        let chunked = value("transfer-encoding").is_some();
        Self {
            host: value("host"),
            agent: value("user-agent"),
            if_none_match: value("if-none-match"),
            if_modified_since: value("if-modified-since"),
            body_bytes: length.unwrap_or(Ok(0)).unwrap_or(u64::MAX),
            // Nobody needs to send this server a chunked body; closing is simpler than reading one.
            keep: !chunked && if parsed.version == Some(1) { !says(b"close") } else { says(b"keep-alive") },
        }
    }

    fn request(&self, parsed: &httparse::Request<'_, 'a>, conn: u64, stream: u64) -> Request<'a> {
        Request {
            conn,
            stream,
            proto: Proto::Http1,
            host: self.host,
            method: parsed.method.unwrap_or("").as_bytes(),
            target: parsed.path.unwrap_or("").as_bytes(),
            agent: self.agent,
            if_none_match: self.if_none_match,
            if_modified_since: self.if_modified_since,
        }
    }
}

/// Reads until the buffer starts with a whole head; its length, or `None` when the client is done.
async fn read_head(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<Option<usize>> {
    let mut searched = 0;
    loop {
        let tail = input.get(searched..).unwrap_or_default();
        if let Some(at) = tail.windows(4).position(|w| w == b"\r\n\r\n") {
            return Ok(Some(searched + at + 4));
        }
        if input.len() > MAX_HEAD_BYTES {
            return Ok(Some(input.len()));
        }
        searched = input.len().saturating_sub(3);
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    }
}

/// Throws away a request body, part of which may have been read already.
async fn skip(stream: &mut TcpStream, input: &mut Vec<u8>, body_bytes: u64) -> io::Result<()> {
    let mut left = body_bytes;
    while left > 0 {
        if input.is_empty() && stream.read_buf(input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let take = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        input.drain(..take);
        left -= take as u64;
    }
    Ok(())
}
