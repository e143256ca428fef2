//! Refusals of the HTTP library, with a body as ours have.
//!
//! What cannot be read as a request at all never gets to a handler: the library answers by itself, without a body. Such an answer
//! is known by what it lacks, since every answer of ours says `x-content-type-options`; it is replaced as it is written. The
//! connection also learns here when bytes of a request arrive: this is the first place behind TLS.

use crate::connections::Connection;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest head that the library makes by itself.
const MAX_BARE: usize = 512;

/// A stream on which every refusal has a body.
pub(crate) struct Bare<S> {
    inner: S,
    one: Arc<Connection>,
    /// What is written in place of a refusal, and how much of it is.
    instead: Option<(Vec<u8>, usize)>,
}

impl<S> Bare<S> {
    pub(crate) fn new(inner: S, one: Arc<Connection>) -> Self {
        Self { inner, one, instead: None }
    }
}

/// What to write in place of these bytes, if they are a refusal of the library.
fn instead_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let status = bytes.strip_prefix(b"HTTP/1.1 ").filter(|_| bytes.len() <= MAX_BARE)?.get(..3)?;
    let head = std::str::from_utf8(bytes).ok()?;
    if !head.ends_with("\r\n\r\n") || !head.contains("content-length: 0\r\n") || head.contains("x-content-type-options")
    {
        return None;
    }
    let (code, message) = match status {
        b"400" => ("bad_request", "this cannot be read as an HTTP request"),
        b"408" => ("timeout", "the head of the request did not come in time"),
        b"414" => ("address_too_long", "the address is too long"),
        b"431" => ("head_too_large", "the head of the request is too large"),
        _ => return None,
    };
    let body = format!("{{\"error\":\"{code}\",\"message\":\"{message}\"}}");
    let more = format!(
        "content-length: {}\r\ncontent-type: application/json\r\ncache-control: no-cache\r\nx-content-type-options: nosniff\r\n",
        body.len()
    );
    Some(format!("{}{body}", head.replacen("content-length: 0\r\n", &more, 1)).into_bytes())
}

impl<S: AsyncRead + Unpin> AsyncRead for Bare<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.one.received();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> Bare<S> {
    /// Writes what stands in place of `len` bytes, all of it.
    fn write_instead(&mut self, len: usize, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while let Some((bytes, done)) = &mut self.instead {
            let rest = bytes.get(*done..).unwrap_or_default();
            if rest.is_empty() {
                self.instead = None;
                break;
            }
            match ready!(Pin::new(&mut self.inner).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => *done += n,
            }
        }
        Poll::Ready(Ok(len))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bare<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.instead.is_none() {
            self.instead = instead_of(bytes).map(|instead| (instead, 0));
        }
        if self.instead.is_some() {
            return self.write_instead(bytes.len(), cx);
        }
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match bufs.iter().find(|buf| !buf.is_empty()) {
            Some(first) if self.instead.is_some() || instead_of(first).is_some() => self.poll_write(cx, first),
            _ => Pin::new(&mut self.inner).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_without_our_headers_are_replaced() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: x\r\n\r\n";
        let text = String::from_utf8(instead_of(bare).unwrap()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "{\"error\":\"head_too_large\",\"message\":\"the head of the request is too large\"}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())) && head.contains("connection: close"));
        for other in [
            &b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nx-content-type-options: nosniff\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\nmore",
            b"{\"HTTP/1.1 400\"}",
            b"",
        ] {
            assert_eq!(instead_of(other), None);
        }
    }
}
