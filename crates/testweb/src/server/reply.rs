//! From a request to the bytes of its response.

use std::io::Write;

use crate::log::Request;
use crate::world::{Outcome, World};

/// The answer to what is not HTTP.
pub(super) const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// What was sent, for the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) status: u16,
    pub(super) body_bytes: u64,
}

/// Appends the response to `out`.
pub(super) fn write(world: &World, request: &Request<'_>, keep: bool, out: &mut Vec<u8>) -> Sent {
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or("");
    let host = request.host.map_or("", text).to_ascii_lowercase();
    let host = host.split(':').next().unwrap_or("");
    let (status, kind, body) = if !matches!(request.method, b"GET" | b"HEAD") {
        ("405 Method Not Allowed", "text/plain", String::from("only GET and HEAD\n"))
    } else {
        match world.answer(host, text(request.target)) {
            Outcome::Page(page) => {
                let mut body = String::with_capacity(16 << 10);
                world.render(page, &mut body);
                ("200 OK", "text/html; charset=utf-8", body)
            }
            Outcome::Robots(id) => {
                ("200 OK", "text/plain; charset=utf-8", world.robots(id).unwrap_or_default().render())
            }
            Outcome::UnknownHost => {
                ("421 Misdirected Request", "text/plain", String::from("no such host in this web\n"))
            }
            _ => ("404 Not Found", "text/html; charset=utf-8", String::from(NOT_FOUND)),
        }
    };
    let connection = if keep { "keep-alive" } else { "close" };
    let _ = write!(
        out,
        "HTTP/1.1 {status}\r\nServer: testweb\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
        body.len()
    );
    let with_body = request.method != b"HEAD";
    if with_body {
        out.extend_from_slice(body.as_bytes());
    }
    let code = status.get(..3).and_then(|s| s.parse().ok()).unwrap_or(0);
    Sent { status: code, body_bytes: if with_body { body.len() as u64 } else { 0 } }
}

const NOT_FOUND: &str =
    "<!DOCTYPE html>\n<html><head><title>Not found</title></head><body><h1>Not found</h1></body></html>\n";
