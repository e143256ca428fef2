//! About the server itself: health, readiness, metrics, the OpenAPI document and its page.

use crate::asker::Asker;
use crate::failure::Failure;
use crate::metrics::Gauges;
use crate::page;
use crate::server::State;
use crate::v1::Shared;
use crate::work::Answer;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use utoipa::ToSchema;

/// `GET /healthz`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    status: &'static str,
}

/// `GET /readyz`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ready {
    /// `ready`.
    status: &'static str,
    /// The version that answers.
    version: String,
    /// The number of the lake's state.
    state: u64,
    /// Times since the server started that the lake went back to an older state or became another one.
    lake_changes: u64,
    /// What happened the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_change: Option<&'static str>,
}

/// `GET /healthz`: the process answers. It does not ask the lake.
pub(crate) async fn healthz() -> Response {
    json(&Health { status: "ok" })
}

/// `GET /readyz`: the lake can be asked.
pub(crate) async fn readyz(axum::extract::State(state): Shared) -> Answer {
    if state.stopping.load(Ordering::Relaxed) {
        return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is about to stop"));
    }
    let mine = state.clone();
    let pinned = tokio::task::spawn_blocking(move || mine.lake.pin());
    let pinned = match tokio::time::timeout(state.timeout, pinned).await {
        Ok(Ok(Ok(pinned))) => pinned,
        _ => return Err(Failure::unavailable()),
    };
    Ok(json(&Ready {
        status: "ready",
        version: pinned.version().to_owned(),
        state: pinned.manifest().sequence,
        lake_changes: state.lake_state.changes(),
        last_change: state.lake_state.last_change(),
    }))
}

/// `GET /metrics`.
pub(crate) async fn metrics(axum::extract::State(state): Shared) -> Response {
    let text = state.metrics.text(&gauges(&state));
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

fn gauges(state: &Arc<State>) -> Gauges {
    Gauges {
        connections: state.connections.count(),
        questions: state.max_concurrent - state.permits.available_permits(),
        waiting: state.max_waiting - state.waiting.available_permits(),
        streams: [&state.streams, &state.exports]
            .map(|places| state.max_streams - places.available_permits())
            .iter()
            .sum(),
        lake_changes: state.lake_state.changes(),
    }
}

/// `GET /openapi.json`.
pub(crate) async fn openapi(axum::extract::State(state): Shared) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], state.openapi.clone()).into_response()
}

/// `GET /docs`.
pub(crate) async fn docs() -> Response {
    page::html(include_str!("../assets/docs.html"))
}

/// `GET /docs.js`.
pub(crate) async fn docs_js() -> Response {
    page::asset("text/javascript; charset=utf-8", include_str!("../assets/docs.js"))
}

/// `GET /admin/datasets`: every dataset, with who may see it; for the operator of the lake.
pub(crate) async fn admin_datasets(axum::extract::State(state): Shared, asker: Asker) -> Answer {
    if !asker.principal.is_operator() {
        return Err(Failure::unauthorized());
    }
    crate::work::ask(&state, asker, |pinned, who| {
        Ok(crate::v1::Datasets { version: pinned.version().to_owned(), datasets: pinned.datasets(who)? })
    })
    .await
}

/// Anything that is not here.
pub(crate) async fn nowhere() -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "unknown_path", "there is nothing at this address; /docs lists what there is")
}

/// A method that an address does not have.
pub(crate) async fn no_method() -> Response {
    let message = "only GET and HEAD are answered here";
    let mut response = Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message).into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    response
}

fn json(value: &impl Serialize) -> Response {
    // Plain structs of texts and numbers always become JSON.
    let body = serde_json::to_vec(value).unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], body).into_response()
}
