//! What every request goes through: refusals, headers that all answers have, CORS, counting, logging.

use crate::event::{Event, Facts, RequestLog};
use crate::failure::Failure;
use crate::server::State;
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Instant;

/// Longest address that is taken: that of the longest URL a lake has, with every byte escaped, and something around it.
const MAX_TARGET: usize = 256 << 10;

/// What pages of other origins may read of an answer beside its body.
const EXPOSED: &str =
    "etag, retry-after, link, location, memento-datetime, trawl-capture, trawl-body-of, trawl-content-type";

/// The application with everything around it.
pub(crate) fn wrap(app: Router, state: &Arc<State>) -> Router {
    app.layer(middleware::from_fn_with_state(state.clone(), pass))
}

async fn pass(
    axum::extract::State(state): axum::extract::State<Arc<State>>,
    matched: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let origin = request.headers().get(header::ORIGIN).cloned();
    let allowed = origin.as_ref().and_then(|origin| allowed_origin(&state.cors, origin));
    let mut response = match refuse(&request) {
        Some(failure) => {
            let mut response = failure.into_response();
            // Bytes after an unexpected body are not a request.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            response
        }
        None if method == Method::OPTIONS => preflight(allowed.is_some()),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if !state.cors.is_empty() {
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    if let Some(allowed) = allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
    let route = matched.as_ref().map_or("other", MatchedPath::as_str);
    let (status, took) = (response.status().as_u16(), begun.elapsed());
    state.metrics.count(route, status, took);
    let principal = response.extensions().get::<Option<Arc<str>>>().cloned().flatten();
    let facts = response.extensions().get::<Facts>().copied().unwrap_or_default();
    let method = if method.as_str().len() <= 7 { method.as_str() } else { "other" };
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let log = RequestLog { method, route, status, micros, principal: principal.as_deref(), facts };
    (state.on_event)(&Event::Request(&log));
    response
}

/// Nothing here takes a body, and a server that reads none must not guess where it ends.
fn refuse(request: &Request) -> Option<Failure> {
    let headers = request.headers();
    let length = headers.get(header::CONTENT_LENGTH).map(HeaderValue::as_bytes);
    if headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length != b"0") {
        let message = "no call takes a request body";
        return Some(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "body_not_allowed", message));
    }
    // A proxy in front may have taken another of two hosts for the right one.
    let hosts = headers.get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Some(Failure::bad_request("a request of HTTP/1.1 has one Host header"));
    }
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > MAX_TARGET {
        let message = format!("the address has {target} bytes; {MAX_TARGET} are the most");
        return Some(Failure::new(StatusCode::URI_TOO_LONG, "address_too_long", message));
    }
    None
}

fn allowed_origin(cors: &[String], origin: &HeaderValue) -> Option<HeaderValue> {
    let fits = |allowed: &String| allowed == "*" || allowed.as_bytes() == origin.as_bytes();
    if !cors.iter().any(fits) {
        return None;
    }
    // A token goes in a header that scripts set themselves, never in a cookie: so `*` gives away nothing that is not public.
    Some(if cors.iter().any(|allowed| allowed == "*") { HeaderValue::from_static("*") } else { origin.clone() })
}

fn preflight(allowed: bool) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    if allowed {
        for (name, value) in [
            (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, x-api-key, if-none-match, accept-datetime"),
            (header::ACCESS_CONTROL_MAX_AGE, "600"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    (StatusCode::NO_CONTENT, headers).into_response()
}
