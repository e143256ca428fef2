//! One status and one JSON code per failure.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use trawl_query::QueryError;
use utoipa::ToSchema;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    code: &'static str,
    message: String,
}

/// The body of every failure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailureBody<'a> {
    /// A stable name, for machines.
    error: &'a str,
    /// What is wrong, for people.
    message: &'a str,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// An unknown token. The answer does not say whether it was wrong, old or revoked.
    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "a valid token is needed: Authorization: Bearer TOKEN")
    }

    /// More requests than the server answers at once.
    pub(crate) fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many requests at once: try again")
    }

    /// More requests at once than one client may make.
    pub(crate) fn too_many() -> Self {
        let message = "too many requests at once from one client: try again";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message)
    }

    pub(crate) fn timeout() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", "the lake did not answer in time: try a smaller limit")
    }

    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "lake_error", "the lake could not be read")
    }

    pub(crate) fn unavailable() -> Self {
        let message = "the lake cannot be reached at the moment: try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "lake_unavailable", message)
    }

    /// Whether the operator should hear of `error`: the asker did nothing wrong.
    pub(crate) fn concerns_operator(error: &QueryError) -> bool {
        error.status() >= 500 && !matches!(error, QueryError::Cancelled)
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Cancelled => Self::timeout(),
            // Their texts name files of the lake: that is for the operator.
            QueryError::Lake { .. } => Self::internal(),
            QueryError::Unavailable { .. } => Self::unavailable(),
            error => {
                let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Self::new(status, error.code(), error.to_string())
            }
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = FailureBody { error: self.code, message: &self.message };
        // Two texts always become JSON.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let kind = HeaderValue::from_static("application/json");
        let mut response = (self.status, [(header::CONTENT_TYPE, kind)], body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
