//! The handlers under `/v1`.

use crate::failure::Failure;
use crate::server::State;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trawl_query::{DEFAULT_LIMIT, Filter, Page, Pinned, Principal, QueryError, dataset_number};

type Shared = axum::extract::State<Arc<State>>;
type Answer = Result<Response, Failure>;

/// Names in one answer at most.
const MAX_NAMES: u32 = 1000;

/// `?offset= &limit= &cursor=` and the filters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UrlsParams {
    offset: Option<u64>,
    limit: Option<u32>,
    cursor: Option<String>,
    host: Option<String>,
    path_prefix: Option<String>,
    from: Option<String>,
    until: Option<String>,
    status: Option<u16>,
}

/// `?prefix= &after= &limit=`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamesParams {
    #[serde(default)]
    prefix: String,
    after: Option<String>,
    limit: Option<u32>,
}

/// `GET /v1/domain/{domain}`.
pub(crate) async fn domain(state: Shared, path: Result<Path<String>, PathRejection>) -> Answer {
    let Path(name) = path?;
    ask(state, move |pinned, who| pinned.domain(&name, who)).await
}

/// `GET /v1/domain/{domain}/datasets/{dataset_id}/urls`.
pub(crate) async fn urls(
    state: Shared,
    path: Result<Path<(String, String)>, PathRejection>,
    params: Result<Query<UrlsParams>, QueryRejection>,
) -> Answer {
    let Path((name, dataset)) = path?;
    let dataset_id = dataset_number(&dataset)
        .ok_or_else(|| Failure::bad_request(format!("expected the number of a dataset, found {dataset:?}")))?;
    let Query(params) = params?;
    let page = Page {
        offset: params.offset.unwrap_or(0),
        limit: params.limit.unwrap_or(DEFAULT_LIMIT),
        cursor: params.cursor,
    };
    let filter = Filter {
        host: params.host,
        path_prefix: params.path_prefix,
        from: moment("from", params.from)?,
        until: moment("until", params.until)?,
        status: params.status,
    };
    ask(state, move |pinned, who| pinned.urls(&name, dataset_id, &page, &filter, who)).await
}

/// `GET /v1/domains`.
pub(crate) async fn domains(state: Shared, params: Result<Query<NamesParams>, QueryRejection>) -> Answer {
    let Query(params) = params?;
    let limit = params.limit.unwrap_or(20).min(MAX_NAMES);
    ask(state, move |pinned, who| {
        let domains = pinned.domains(&params.prefix, params.after.as_deref(), limit as usize, who)?;
        let next_after = (domains.len() == limit as usize).then(|| domains.last().map(|d| d.domain.clone())).flatten();
        Ok(serde_json::json!({ "version": pinned.version(), "domains": domains, "next_after": next_after }))
    })
    .await
}

/// `GET /v1/datasets`.
pub(crate) async fn datasets(state: Shared) -> Answer {
    ask(state, |pinned, who| {
        let mut datasets = pinned.datasets(who)?;
        for dataset in &mut datasets {
            // Where files lie on this machine is nobody's business on another.
            dataset.archive_base.retain(|base| !base.starts_with("file:"));
        }
        Ok(serde_json::json!({ "version": pinned.version(), "datasets": datasets }))
    })
    .await
}

/// `GET /v1/stats`.
pub(crate) async fn stats(state: Shared) -> Answer {
    ask(state, |pinned, _| pinned.stats()).await
}

/// `GET /health`: 200 when the newest version can be pinned.
pub(crate) async fn health(state: Shared) -> Answer {
    ask(state, |pinned, _| Ok(serde_json::json!({ "status": "ok", "version": pinned.version() }))).await
}

/// Anything that is not here.
pub(crate) async fn nowhere() -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "unknown_path", "there is nothing at this address; the API is under /v1")
}

/// Pins the newest version and asks it, on a blocking thread, within the server's limits.
async fn ask<T, F>(axum::extract::State(state): Shared, question: F) -> Answer
where
    T: Serialize,
    F: Fn(&Pinned, &Principal) -> Result<T, QueryError> + Send + 'static,
{
    let Ok(permit) = Arc::clone(&state.permits).try_acquire_owned() else { return Err(Failure::busy()) };
    let limit = state.timeout;
    let work = tokio::task::spawn_blocking(move || {
        // Held until the work is done, not until the asker loses patience: a slow lake must not pile up threads.
        let _permit = permit;
        let answer = state.lake.ask(|pinned| question(pinned, &Principal::anyone()));
        match answer {
            Ok(answer) => serde_json::to_vec(&answer).map_err(|_| Failure::internal()),
            Err(error) => {
                if Failure::concerns_operator(&error) {
                    (state.on_error)(&error);
                }
                Err(Failure::from(error))
            }
        }
    });
    let body = match tokio::time::timeout(limit, work).await {
        Err(_) => return Err(Failure::timeout()),
        Ok(Err(_)) => return Err(Failure::internal()),
        Ok(Ok(answer)) => answer?,
    };
    Ok(([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], body).into_response())
}

fn moment(name: &str, text: Option<String>) -> Result<Option<trawl_model::UnixMillis>, Failure> {
    let parse = |text: String| {
        trawl_model::date::parse(&text).map_err(|error| Failure::bad_request(format!("{name}: {error}")))
    };
    text.map(parse).transpose()
}

impl From<PathRejection> for Failure {
    fn from(rejection: PathRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

impl From<QueryRejection> for Failure {
    fn from(rejection: QueryRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}
