//! Replies over HTTP/1.x: heads and bodies as bytes, right or wrong.

use std::io::{self, Write};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Shared;
use super::accept::Wire;
use super::plan::{Manner, Reply};
use crate::log::Pending;

/// Pieces of a dripping body.
pub(super) const DRIPS: usize = 20;
/// Most bytes handed over at once: over TLS a single write may go on while the client reads, uncounted until its end.
const WRITE_BYTES: usize = 64 << 10;
/// What an endless body consists of.
pub(super) const ENDLESS: &[u8] = &[b'a'; 16 << 10];
/// How much a body that is too long has too much.
const EXCESS: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlies";

/// What a reply leaves of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It can serve another request.
    Again,
    /// It is to be ended in order.
    End,
    /// It is to be dropped as it is.
    Drop,
}

/// Sends one reply on a connection.
pub(super) struct Sender<'a, 'r, S> {
    pub(super) stream: &'a mut S,
    pub(super) output: &'a mut Vec<u8>,
    pub(super) pending: &'a mut Pending<'r>,
    pub(super) shared: &'a Shared,
}

impl<S: Wire> Sender<'_, '_, S> {
    /// Sends the reply.
    pub(super) async fn send(&mut self, reply: &Reply, keep: bool, with_body: bool) -> io::Result<After> {
        self.output.clear();
        let body: &[u8] = if with_body { &reply.body } else { b"" };
        let manner = if with_body || matches!(reply.manner, Manner::Silence | Manner::HangUp) {
            reply.manner
        } else {
            Manner::Plain
        };
        match manner {
            Manner::Plain => {
                let length = reply.body.len() as u64;
                // 304 has no body and, here, no length.
                self.head(reply, (reply.status != 304).then_some(length), keep);
                self.output.extend_from_slice(body);
                self.write_out(body.len()).await?;
            }
            Manner::Chunked => {
                self.head_with(reply, "Transfer-Encoding: chunked", keep);
                self.chunks(body);
                self.write_out(body.len()).await?;
            }
            Manner::UntilClose => {
                self.head(reply, None, false);
                self.output.extend_from_slice(body);
                self.write_out(body.len()).await?;
                self.pending.whole = true;
                return Ok(After::End);
            }
            Manner::Drip => {
                self.head(reply, Some(body.len() as u64), keep);
                self.write_out(0).await?;
                let pause =
                    Duration::from_millis(self.shared.world.config().slow_ms) / u32::try_from(DRIPS).unwrap_or(1);
                for piece in body.chunks(body.len().div_ceil(DRIPS).max(1)) {
                    tokio::time::sleep(pause).await;
                    self.piece(piece).await?;
                }
            }
            Manner::Reset => {
                self.head(reply, Some(body.len() as u64), keep);
                self.write_out(0).await?;
                self.piece(half(body)).await?;
                // Let the half be read before the reset throws away what is on the way.
                tokio::time::sleep(Duration::from_millis(20)).await;
                self.stream.reset_on_close();
                return Ok(After::Drop);
            }
            Manner::Short => {
                self.head(reply, Some(body.len() as u64), keep);
                self.write_out(0).await?;
                self.piece(half(body)).await?;
                return Ok(After::Drop);
            }
            Manner::Long => {
                self.head(reply, Some(body.len() as u64), keep);
                self.output.extend_from_slice(body);
                self.output.extend_from_slice(EXCESS);
                self.write_out(body.len() + EXCESS.len()).await?;
                return Ok(After::End);
            }
            Manner::Surplus => {
                // A 204 has no length to name, and no body either: its whole body is surplus.
                self.head(reply, (reply.status != 204).then_some(body.len() as u64), keep);
                self.output.extend_from_slice(body);
                self.output.extend_from_slice(EXCESS);
                self.write_out(body.len() + EXCESS.len()).await?;
            }
            Manner::Stall => {
                self.head(reply, Some(body.len() as u64), keep);
                self.write_out(0).await?;
                self.piece(half(body)).await?;
                self.wait_for_end().await?;
                return Ok(After::Drop);
            }
            Manner::Endless => {
                self.head(reply, None, false);
                self.write_out(0).await?;
                while self.pending.bytes < self.shared.world.config().endless_bytes {
                    self.piece(ENDLESS).await?;
                }
                return Ok(After::End);
            }
            Manner::BadHead(kind) => return self.bad_head(reply, kind).await,
            Manner::Silence => {
                self.wait_for_end().await?;
                return Ok(After::Drop);
            }
            Manner::HangUp => {
                self.stream.reset_on_close();
                return Ok(After::Drop);
            }
        }
        self.pending.whole = true;
        Ok(After::Again)
    }

    /// Appends a head with the reply's headers and a length, if there is to be one.
    fn head(&mut self, reply: &Reply, length: Option<u64>, keep: bool) {
        match length {
            Some(length) => self.head_with(reply, &format!("Content-Length: {length}"), keep),
            None => self.head_with(reply, "", keep),
        }
    }

    fn head_with(&mut self, reply: &Reply, framing: &str, keep: bool) {
        // Writing to a Vec cannot fail.
        let _ = write!(self.output, "HTTP/1.1 {} {}\r\nServer: testweb\r\n", reply.status, reason(reply.status));
        self.headers(reply);
        if !framing.is_empty() {
            let _ = write!(self.output, "{framing}\r\n");
        }
        self.output.extend_from_slice(if keep {
            b"Connection: keep-alive\r\n\r\n"
        } else {
            b"Connection: close\r\n\r\n"
        });
    }

    fn headers(&mut self, reply: &Reply) {
        for (name, value) in &reply.headers {
            let _ = write!(self.output, "{name}: {value}\r\n");
        }
    }

    /// Appends a body in chunks of growing size, with an extension and a trailer, which clients must skip.
    fn chunks(&mut self, body: &[u8]) {
        let (mut rest, mut size) = (body, 61);
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(size.min(rest.len()));
            let extension = if size == 61 { ";note=first" } else { "" };
            let _ = write!(self.output, "{:X}{extension}\r\n", chunk.len());
            self.output.extend_from_slice(chunk);
            self.output.extend_from_slice(b"\r\n");
            (rest, size) = (after, size * 3);
        }
        self.output.extend_from_slice(b"0\r\nX-Trailer: yes\r\n\r\n");
    }

    /// Heads that break the rules. Most can be read by a tolerant client; kinds 10 and 11 cannot.
    async fn bad_head(&mut self, reply: &Reply, kind: u8) -> io::Result<After> {
        let length = reply.body.len();
        let out = &mut *self.output;
        let plain = |out: &mut Vec<u8>, first: &str, extra: &[u8]| {
            out.extend_from_slice(first.as_bytes());
            out.extend_from_slice(b"Content-Type: text/html\r\n");
            out.extend_from_slice(extra);
            let _ = write!(out, "Content-Length: {length}\r\nConnection: close\r\n\r\n");
        };
        let ok = "HTTP/1.1 200 OK\r\n";
        match kind {
            // Line feeds alone.
            0 => {
                let _ = write!(
                    out,
                    "HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: {length}\nConnection: close\n\n"
                );
            }
            // No reason phrase, not even the space before it.
            1 => plain(out, "HTTP/1.1 200\r\n", b""),
            // A line without a colon.
            2 => plain(out, ok, b"this is not a header\r\n"),
            // The same length twice.
            3 => plain(out, ok, format!("Content-Length: {length}\r\n").as_bytes()),
            // A folded line.
            4 => plain(out, ok, b"X-Folded: one\r\n two\r\n\tthree\r\n"),
            // A space before the colon, and none after it.
            5 => plain(out, ok, b"X-Spaced :value\r\nX-Tight:value\r\nX-Empty:\r\n"),
            // Bytes that are not text.
            6 => plain(out, ok, b"X-Bytes: \xff\xfe\x80\r\n"),
            // Interim answers first.
            7 => plain(
                out,
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n",
                b"",
            ),
            // An old version and no length.
            8 => out.extend_from_slice(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"),
            // One header of 60 KiB.
            9 => plain(out, ok, &[b"X-Large: ".as_slice(), &[b'x'; 60 << 10], b"\r\n"].concat()),
            // Two different lengths.
            10 => plain(out, ok, b"Content-Length: 7\r\n"),
            // No HTTP at all.
            _ => out.extend_from_slice(b"ICY 200 OK\x00\x01\x02\r\n\r\n"),
        }
        self.output.extend_from_slice(&reply.body);
        self.write_out(length).await?;
        self.pending.whole = true;
        Ok(After::End)
    }

    /// Writes what was gathered, the last `body_bytes` of which belong to the body.
    async fn write_out(&mut self, body_bytes: usize) -> io::Result<()> {
        let before = (self.output.len() - body_bytes.min(self.output.len())) as u64;
        let counted = self.pending.bytes;
        let mut done = 0;
        while let Some(rest) = self.output.get(done..).filter(|rest| !rest.is_empty()) {
            self.pending.writing();
            let piece = rest.get(..WRITE_BYTES).unwrap_or(rest);
            done += self.stream.write(piece).await?;
            self.pending.bytes = counted + (done as u64).saturating_sub(before);
        }
        self.stream.flush().await
    }

    async fn piece(&mut self, piece: &[u8]) -> io::Result<()> {
        self.pending.writing();
        self.stream.write_all(piece).await?;
        self.stream.flush().await?;
        self.pending.bytes += piece.len() as u64;
        Ok(())
    }

    /// Waits until the client gives up.
    async fn wait_for_end(&mut self) -> io::Result<()> {
        let mut scratch = [0; 1024];
        while self.stream.read(&mut scratch).await? > 0 {}
        Ok(())
    }
}

/// The first half of a body.
pub(super) fn half(body: &[u8]) -> &[u8] {
    body.get(..body.len() / 2).unwrap_or_default()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        410 => "Gone",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}
