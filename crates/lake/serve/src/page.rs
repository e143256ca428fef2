//! The explorer page: files compiled in, nothing loaded from elsewhere.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// Only our own files, nothing inline, no framing: a URL from a hostile crawl must stay text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /`.
pub(crate) async fn explorer() -> Response {
    html(include_str!("../assets/explorer.html"))
}

/// `GET /explorer.css`.
pub(crate) async fn css() -> Response {
    asset("text/css; charset=utf-8", include_str!("../assets/explorer.css"))
}

/// `GET /explorer.js`.
pub(crate) async fn js() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("../assets/explorer.js"))
}

pub(crate) fn html(body: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, body).into_response()
}

pub(crate) fn asset(kind: &'static str, body: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], body).into_response()
}
