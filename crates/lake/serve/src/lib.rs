//! HTTP API, explorer page
