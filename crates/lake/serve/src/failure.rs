//! One status and one JSON code per failure.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use trawl_query::QueryError;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// More requests than the server answers at once.
    pub(crate) fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many requests at once: try again")
    }

    pub(crate) fn timeout() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", "the lake did not answer in time: try a smaller limit")
    }

    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "lake_error", "the lake could not be read")
    }

    /// Whether the operator should hear of `error`: the asker did nothing wrong.
    pub(crate) fn concerns_operator(error: &QueryError) -> bool {
        error.status() >= 500
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        if Self::concerns_operator(&error) {
            // Its text names files of the lake: that is for the operator.
            return Self::internal();
        }
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, error.code(), error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.code, "message": self.message });
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert("retry-after", axum::http::HeaderValue::from_static("1"));
        }
        response
    }
}
