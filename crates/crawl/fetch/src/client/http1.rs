//! An exchange by HTTP/1.1, head and body as they come.

use super::{Ask, Attempt, Notes, Response, Shared, millis_since};
use crate::body;
use crate::conn::{Conn, Link, Stop, Waiting};
use crate::error::{class_of, failure};
use crate::target::Origin;
use bytes::Bytes;
use tokio::time::Instant;
use trawl_http::{Framing, Head, head_len, may_begin};
use trawl_model::ErrorClass;

impl Shared {
    /// One exchange on an open connection, which goes back to the pool if it can.
    pub(super) async fn on(
        &self,
        mut conn: Conn,
        origin: &Origin,
        request: &Bytes,
        ask: &Ask,
        total: Instant,
        notes: &mut Notes,
    ) -> Result<Response, Attempt> {
        let limits = &self.config.limits;
        (notes.ip, notes.tls) = (Some(conn.peer), conn.tls.clone());
        let sent = conn.send(request, total.min(Instant::now() + limits.idle)).await;
        match sent {
            Err(failed) if conn.reused && failed.class == ErrorClass::Reset => return Err(Attempt::Stale),
            Err(failed) => return Err(Attempt::Failed(failed)),
            Ok(()) => notes.request = Some(request.clone()),
        }
        let head = match self.head(&mut conn, total, notes).await {
            // No response at all: what a page before it left over.
            Err(Attempt::Failed(failed)) if conn.reused && failed.class == ErrorClass::ProtocolError => {
                self.pool.distrust(origin);
                return Err(Attempt::Stale);
            }
            head => head?,
        };
        let parsed = Head::new(&head);
        // Said by a server that is about to close an idle connection, before it saw our request.
        if conn.reused && parsed.status() == Some(408) {
            return Err(Attempt::Stale);
        }
        self.reach.heard();
        let terms = self.terms(&parsed, ask, total);
        let received = body::receive(&mut conn, Framing::of(&parsed), terms).await.map_err(Attempt::Failed)?;
        self.reach.heard();
        if received.at_end {
            match conn.waiting() {
                Waiting::Bytes => {
                    self.pool.distrust(origin);
                    // The first response on a connection is the answer to its only request. Later on, this may have been
                    // left over from before, and what waits behind it the answer.
                    if conn.reused {
                        return Err(Attempt::Stale);
                    }
                }
                Waiting::Nothing if may_be_reused(&parsed) => {
                    conn.acknowledge();
                    conn.reused = true;
                    self.pool.put(origin, Link::Http1(conn));
                }
                Waiting::Nothing | Waiting::End => {}
            }
        }
        Ok(Response { protocol: None, head, body: received.body, truncated: received.truncated })
    }

    /// The final response head, which has a status; interim ones (1xx) are passed over.
    async fn head(&self, conn: &mut Conn, total: Instant, notes: &mut Notes) -> Result<Bytes, Attempt> {
        let limits = &self.config.limits;
        let (asked, mut looked, mut left) = (Instant::now(), 0, limits.head_bytes);
        let mut first = None;
        let failed = |class, message: String| Err(Attempt::Failed(failure(class, message)));
        loop {
            if let Some(end) = head_len(&conn.buf, looked).filter(|end| *end <= left) {
                let raw = conn.buf.split_to(end);
                let head = Head::new(&raw);
                match head.status() {
                    None => {
                        let found = show(&raw);
                        return failed(
                            ErrorClass::ProtocolError,
                            format!("expected an HTTP status line, found {found}"),
                        );
                    }
                    Some(100 | 102..=199) => (left, looked) = (left - end, 0),
                    // A head is small and lives as long as its capture: it must not keep the whole read buffer alive.
                    Some(_) => return Ok(Bytes::copy_from_slice(head.bytes())),
                }
                continue;
            }
            looked = conn.buf.len();
            if looked >= left {
                return failed(ErrorClass::TooLarge, format!("head of more than {} bytes", limits.head_bytes));
            }
            if looked >= 8 && not_http(&conn.buf) {
                return failed(
                    ErrorClass::ProtocolError,
                    format!("expected an HTTP status line, found {}", show(&conn.buf)),
                );
            }
            let idle = if first.is_none() { asked + limits.first_byte } else { Instant::now() + limits.idle };
            match conn.fill(idle, total).await {
                Ok(()) => {
                    first.get_or_insert_with(|| notes.timings.ttfb_ms = Some(millis_since(asked)));
                }
                Err(Stop::Timeout) if conn.buf.is_empty() => {
                    return failed(ErrorClass::HeaderTimeout, "no response in time".into());
                }
                Err(Stop::Timeout) => return failed(ErrorClass::HeaderTimeout, "the head did not end in time".into()),
                Err(Stop::Eof | Stop::Broken(_)) if conn.reused && first.is_none() => return Err(Attempt::Stale),
                Err(Stop::Eof) if conn.buf.is_empty() => {
                    return failed(ErrorClass::Reset, "the connection ended before a response".into());
                }
                Err(Stop::Eof) if not_http(&conn.buf) => {
                    let found = show(&conn.buf);
                    return failed(ErrorClass::ProtocolError, format!("expected an HTTP status line, found {found}"));
                }
                Err(Stop::Eof) => return failed(ErrorClass::Reset, "the connection ended inside the head".into()),
                Err(Stop::Broken(e)) => {
                    return failed(class_of(&e, ErrorClass::Reset), format!("reading the head: {e}"));
                }
            }
        }
    }
}

/// Whether what a head says of its connection and of its body leaves no doubt about where the next response begins.
fn may_be_reused(head: &Head<'_>) -> bool {
    let doubtful = match head.status() {
        Some(101) => true,
        // These have no body: where one is announced, it may come all the same.
        Some(204 | 205) => {
            head.text("transfer-encoding").is_some() || head.text("content-length").is_some_and(|n| n.trim() != "0")
        }
        _ => head.text("transfer-encoding").is_some() && head.text("content-length").is_some(),
    };
    head.keeps_alive() && !doubtful
}

fn not_http(buf: &[u8]) -> bool {
    let text = buf.trim_ascii_start();
    !may_begin(text, false)
}

/// The start of what came, fit for a message.
fn show(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(bytes.get(..bytes.len().min(40)).unwrap_or_default()))
}
