//! Every address, once: the router and the OpenAPI document are both made from this list.

use crate::params::Declared;
use crate::server::State;
use crate::v1::{
    self, CaptureParams, DatasetNamesParams, Datasets, DiffParams, ExportParams, NamesParams, UrlParams, UrlsParams,
};
use crate::{archive, meta, openapi, page};
use axum::Router;
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use std::sync::Arc;
use trawl_query::{DomainAnswer, LakeStats, NamesAnswer, UrlAnswer, UrlsAnswer};

/// What an operation answers with 200.
pub(crate) enum Answers {
    /// JSON with this schema, and schemas it refers to.
    Json(openapi::Schemas),
    /// One of these media types.
    Types(&'static [&'static str]),
}

/// One operation.
pub(crate) struct Operation {
    /// Where it is; the first is the name of it.
    pub(crate) paths: &'static [&'static str],
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) params: fn() -> Vec<serde_json::Value>,
    pub(crate) answers: Answers,
    route: fn() -> MethodRouter<Arc<State>>,
}

fn no_params() -> Vec<serde_json::Value> {
    Vec::new()
}

/// The operations of the API.
pub(crate) fn operations() -> Vec<Operation> {
    let json = Answers::Json;
    vec![
        Operation {
            paths: &["/v1/domain/{domain}", "/domain/{domain}"],
            id: "domain",
            summary: "Which datasets hold a domain, with counts",
            params: no_params,
            answers: json(openapi::schemas_of::<DomainAnswer>()),
            route: || get(v1::domain),
        },
        Operation {
            paths: &["/v1/domain/{domain}/datasets/{dataset}/urls", "/domain/{domain}/dataset/{dataset}/urls"],
            id: "urls",
            summary: "The URLs of a domain in a dataset, page by page",
            params: UrlsParams::describe,
            answers: json(openapi::schemas_of::<UrlsAnswer>()),
            route: || get(v1::urls),
        },
        Operation {
            paths: &["/v1/domain/{domain}/datasets/{dataset}/export"],
            id: "export_domain",
            summary: "All URLs of a domain in a dataset, as a stream",
            params: ExportParams::describe,
            answers: Answers::Types(EXPORTS),
            route: || get(v1::export_domain),
        },
        Operation {
            paths: &["/v1/url"],
            id: "url",
            summary: "One URL across datasets",
            params: || required(UrlParams::describe(), "url"),
            answers: json(openapi::schemas_of::<UrlAnswer>()),
            route: || get(v1::url),
        },
        Operation {
            paths: &["/v1/domains"],
            id: "domains",
            summary: "Names of domains, in order",
            params: NamesParams::describe,
            answers: json(openapi::schemas_of::<NamesAnswer>()),
            route: || get(v1::domains),
        },
        Operation {
            paths: &["/v1/datasets"],
            id: "datasets",
            summary: "The datasets the asker may see",
            params: no_params,
            answers: json(openapi::schemas_of::<Datasets>()),
            route: || get(v1::datasets),
        },
        Operation {
            paths: &["/v1/datasets/{dataset}/domains"],
            id: "dataset_domains",
            summary: "Names of the domains a dataset holds, in order",
            params: DatasetNamesParams::describe,
            answers: json(openapi::schemas_of::<NamesAnswer>()),
            route: || get(v1::dataset_domains),
        },
        Operation {
            paths: &["/v1/datasets/{dataset}/diff/{other}"],
            id: "diff",
            summary: "Two datasets compared, as a stream of lines, the summary last",
            params: DiffParams::describe,
            answers: Answers::Types(&["application/x-ndjson"]),
            route: || get(v1::diff),
        },
        Operation {
            paths: &["/v1/datasets/{dataset}/export"],
            id: "export_dataset",
            summary: "All URLs of a dataset, as a stream",
            params: ExportParams::describe,
            answers: Answers::Types(EXPORTS),
            route: || get(v1::export_dataset),
        },
        Operation {
            paths: &["/v1/stats"],
            id: "stats",
            summary: "The lake in numbers",
            params: no_params,
            answers: json(openapi::schemas_of::<LakeStats>()),
            route: || get(v1::stats),
        },
        Operation {
            paths: &["/v1/capture/{dataset}"],
            id: "capture",
            summary: "The bytes of a capture: by url and ts, or by locator",
            params: CaptureParams::describe,
            answers: Answers::Types(CAPTURES),
            route: || get(v1::capture),
        },
        Operation {
            paths: &["/cdx"],
            id: "cdx",
            summary: "Captures as a CDX server lists them",
            params: || required(archive::CdxParams::describe(), "url"),
            answers: Answers::Types(&["text/plain", "application/json", "text/x-cdxj"]),
            route: || get(archive::cdx),
        },
        Operation {
            paths: &["/healthz", "/health"],
            id: "healthz",
            summary: "Whether the process answers",
            params: no_params,
            answers: json(openapi::schemas_of::<meta::Health>()),
            route: || get(meta::healthz),
        },
        Operation {
            paths: &["/readyz"],
            id: "readyz",
            summary: "Whether the lake can be asked, and what became of it",
            params: no_params,
            answers: json(openapi::schemas_of::<meta::Ready>()),
            route: || get(meta::readyz),
        },
    ]
}

const EXPORTS: &[&str] =
    &["application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"];
const CAPTURES: &[&str] = &[
    "application/warc",
    "application/http",
    "text/plain",
    "application/json",
    "application/octet-stream",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/avif",
];

fn required(mut params: Vec<serde_json::Value>, name: &str) -> Vec<serde_json::Value> {
    for param in params.iter_mut().filter(|param| param["name"] == name) {
        param["required"] = true.into();
    }
    params
}

/// Addresses that are not of the API: pages, and URLs inside of addresses, which OpenAPI cannot describe.
const BESIDE: [&str; 10] = [
    "/",
    "/explorer.css",
    "/explorer.js",
    "/docs",
    "/docs.js",
    "/openapi.json",
    "/metrics",
    "/timemap/link/{*url}",
    "/timegate/{*url}",
    "/web/{*rest}",
];

/// The names of all routes, for counting.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    operations().into_iter().flat_map(|operation| operation.paths.iter().copied()).chain(BESIDE)
}

/// The OpenAPI document.
pub(crate) fn document() -> Bytes {
    openapi::document(&operations())
}

/// What everyone may call.
pub(crate) fn public(state: Arc<State>) -> Router {
    let mut router = Router::new()
        .route("/", get(page::explorer))
        .route("/explorer.css", get(page::css))
        .route("/explorer.js", get(page::js))
        .route("/docs", get(meta::docs))
        .route("/docs.js", get(meta::docs_js))
        .route("/openapi.json", get(meta::openapi))
        .route("/timemap/link/{*url}", get(archive::timemap))
        .route("/timegate/{*url}", get(archive::timegate))
        .route("/web/{*rest}", get(archive::memento));
    for operation in operations() {
        for path in operation.paths {
            router = router.route(path, (operation.route)());
        }
    }
    if !state.has_admin {
        router = router.route("/metrics", get(meta::metrics));
    }
    finish(router, state)
}

/// What only the operator's own network should reach.
pub(crate) fn admin(state: Arc<State>) -> Router {
    let router = Router::new()
        .route("/metrics", get(meta::metrics))
        .route("/healthz", get(meta::healthz))
        .route("/readyz", get(meta::readyz))
        .route("/admin/datasets", get(meta::admin_datasets));
    finish(router, state)
}

fn finish(router: Router<Arc<State>>, state: Arc<State>) -> Router {
    router.method_not_allowed_fallback(meta::no_method).fallback(meta::nowhere).with_state(state)
}
