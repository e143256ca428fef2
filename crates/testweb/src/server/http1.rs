//! HTTP/1.x by hand: the server must be able to send any bytes, also wrong ones, so no library stands in between.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::accept::Wire;
use super::send::{After, Sender};
use super::{Shared, plan};
use crate::log::{Pending, Proto, Request};

/// Longest request head accepted.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Most header lines accepted.
const MAX_HEADERS: usize = 100;
/// Longest request body that is read and thrown away to keep a connection.
const MAX_BODY_BYTES: u64 = 1 << 20;
/// How much of what is not HTTP goes into the log.
const LOGGED_NONSENSE: usize = 200;

/// The answer to what is not HTTP.
const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Serves one connection until it ends, and ends it in order: over TLS with a notice, or the client would see a cut.
pub(super) async fn connection<S: Wire>(mut stream: S, conn: u64, shared: &Shared, secure: bool) -> io::Result<()> {
    match requests(&mut stream, conn, shared, secure).await? {
        After::Drop => Ok(()),
        _ => stream.shutdown().await,
    }
}

async fn requests<S: Wire>(stream: &mut S, conn: u64, shared: &Shared, secure: bool) -> io::Result<After> {
    let mut input = Vec::with_capacity(4 << 10);
    let mut output = Vec::with_capacity(16 << 10);
    let mut count = 0;
    let proto = if secure { Proto::Https1 } else { Proto::Http1 };
    loop {
        let Some(head_len) = read_head(stream, &mut input).await? else { return Ok(After::End) };
        count += 1;
        let start = shared.log.now();
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let head = input.get(..head_len).unwrap_or_default();
        let Ok(httparse::Status::Complete(_)) = parsed.parse(head) else {
            let target = head.get(..head.len().min(LOGGED_NONSENSE)).unwrap_or_default();
            let request = Request { conn, stream: count, target, ..Request::unknown(proto) };
            let mut pending = Pending::new(&shared.log, start, &request);
            pending.status = 400;
            pending.writing();
            stream.write_all(BAD_REQUEST).await?;
            pending.whole = true;
            return Ok(After::End);
        };
        let fields = Fields::of(&parsed);
        let request = fields.request(&parsed, proto, conn, count);
        let mut pending = Pending::new(&shared.log, start, &request);
        let reply = plan::plan(shared, &request, secure);
        let wait = shared.latency + Duration::from_millis(reply.wait_ms);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        pending.status = reply.status;
        let keep = fields.keep && !reply.close && fields.body_bytes <= MAX_BODY_BYTES;
        let mut out = Sender { stream, output: &mut output, pending: &mut pending, shared };
        let after = out.send(&reply, keep, request.method != b"HEAD").await?;
        let body_bytes = fields.body_bytes;
        drop(pending);
        if after != After::Again {
            return Ok(after);
        }
        if !keep {
            return Ok(After::End);
        }
        input.drain(..head_len.min(input.len()));
        skip(stream, &mut input, body_bytes).await?;
    }
}

/// The headers that matter here.
struct Fields<'a> {
    host: Option<&'a [u8]>,
    agent: Option<&'a [u8]>,
    if_none_match: Option<&'a [u8]>,
    if_modified_since: Option<&'a [u8]>,
    accept_encoding: Option<&'a [u8]>,
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
            accept_encoding: value("accept-encoding"),
            body_bytes: length.unwrap_or(Ok(0)).unwrap_or(u64::MAX),
            // No client needs to send this server a chunked body; closing is simpler than reading one.
            keep: !chunked && if parsed.version == Some(1) { !says(b"close") } else { says(b"keep-alive") },
        }
    }

    fn request(&self, parsed: &httparse::Request<'_, 'a>, proto: Proto, conn: u64, stream: u64) -> Request<'a> {
        Request {
            conn,
            stream,
            proto,
            host: self.host,
            method: parsed.method.unwrap_or("").as_bytes(),
            target: parsed.path.unwrap_or("").as_bytes(),
            agent: self.agent,
            if_none_match: self.if_none_match,
            if_modified_since: self.if_modified_since,
            accept_encoding: self.accept_encoding,
        }
    }
}

/// Reads until the buffer starts with a whole head; its length, or `None` when the client is done.
async fn read_head<S: Wire>(stream: &mut S, input: &mut Vec<u8>) -> io::Result<Option<usize>> {
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
async fn skip<S: Wire>(stream: &mut S, input: &mut Vec<u8>, body_bytes: u64) -> io::Result<()> {
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
