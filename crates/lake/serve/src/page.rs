//! The explorer page: three files compiled in, nothing loaded from elsewhere.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// Only our own files, nothing inline, no framing: a URL from a hostile crawl must stay text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /`.
pub(crate) async fn html() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, include_str!("../assets/explorer.html")).into_response()
}

/// `GET /explorer.css`.
pub(crate) async fn css() -> Response {
    asset("text/css; charset=utf-8", include_str!("../assets/explorer.css"))
}

/// `GET /explorer.js`.
pub(crate) async fn js() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("../assets/explorer.js"))
}

fn asset(kind: &'static str, body: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, body).into_response()
}
