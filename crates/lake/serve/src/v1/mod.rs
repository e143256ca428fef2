//! The handlers under `/v1`, and the seed's two calls as it spells them.

mod capture;
mod export;

pub(crate) use capture::{CaptureParams, NO_ARCHIVES, capture, decoded, name_record, sandbox};
pub(crate) use export::{ExportParams, export_dataset, export_domain};

use crate::asker::Asker;
use crate::event::Facts;
use crate::failure::Failure;
use crate::params::{Host, Key, Nothing, Params, UrlText, params};
use crate::server::State;
use crate::stream::{Packing, gone, stream};
use crate::work::{Answer, ask, ask_bytes, ask_cached};
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::HeaderValue;
use serde::Serialize;
use std::ops::ControlFlow;
use std::sync::Arc;
use trawl_model::UnixMillis;
use trawl_query::{
    Comparison, DEFAULT_LIMIT, DatasetInfo, DiffEvent, Filter, MAX_LIMIT, NamesQuery, Page, QueryError, UrlsJson,
};
use utoipa::ToSchema;

pub(crate) type Shared = axum::extract::State<Arc<State>>;
pub(crate) type PathOf<T> = Result<Path<T>, PathRejection>;

/// Names in one answer at most.
const MAX_NAMES: u32 = 1000;
/// Default number of names in one answer.
const DEFAULT_NAMES: u32 = 20;

params! {
    /// A page of rows, and which.
    UrlsParams {
        /// Rows to skip; not with a filter or a cursor.
        offset: u64,
        /// Rows wanted, 1000 if not given, 10000 at most; 0 for the totals alone.
        limit: u32,
        /// `next_cursor` of the answer before; not with an offset.
        cursor: Key,
        /// Only this host, in any spelling. It is looked up.
        host: Host,
        /// Only paths that begin so, in any spelling. It is looked up.
        path_prefix: String,
        /// Not before this time.
        from: UnixMillis,
        /// Before this time.
        until: UnixMillis,
        /// Only this HTTP status.
        status: u16,
        /// Only failed fetches of this class, such as dns_nxdomain.
        error_class: String,
    }
}

params! {
    /// A page of names, and which.
    NamesParams {
        /// Names that begin so. It is looked up.
        prefix: String,
        /// Names that end so. Names are compared one by one: page on by `next_after`.
        suffix: String,
        /// Names that this dataset holds, by number or name.
        dataset: String,
        /// Names after this one: `next_after` of the answer before.
        after: String,
        /// Names wanted, 20 if not given, 1000 at most.
        limit: u32,
    }
}

params! {
    /// A page of a dataset's names.
    DatasetNamesParams {
        /// Names that begin so.
        prefix: String,
        /// Names that end so.
        suffix: String,
        /// Names after this one: `next_after` of the answer before.
        after: String,
        /// Names wanted, 20 if not given, 1000 at most.
        limit: u32,
    }
}

params! {
    /// One URL.
    UrlParams {
        /// The URL, in any spelling.
        url: UrlText,
        /// Rows wanted, 1000 if not given, 10000 at most.
        limit: u32,
    }
}

params! {
    /// What to compare.
    DiffParams {
        /// Only this domain.
        domain: Host,
        /// Compare URLs too, not only domains.
        urls: bool,
    }
}

/// `GET /v1/datasets`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Datasets {
    /// The version that answered.
    pub(crate) version: String,
    /// The datasets the asker may see, by number.
    pub(crate) datasets: Vec<DatasetInfo>,
}

pub(crate) fn path<T>(path: PathOf<T>) -> Result<T, Failure> {
    path.map(|Path(path)| path).map_err(|_| Failure::bad_request("the address is not UTF-8"))
}

/// `GET /v1/domain/{domain}`.
pub(crate) async fn domain(
    axum::extract::State(state): Shared,
    asker: Asker,
    name: PathOf<String>,
    _: Params<Nothing>,
) -> Answer {
    let name = path(name)?;
    let key = format!("domain {name}");
    ask_cached(&state, asker, Some(key), move |pinned, who| pinned.domain(&name, who)).await
}

/// `GET /v1/domain/{domain}/datasets/{dataset}/urls`.
pub(crate) async fn urls(
    axum::extract::State(state): Shared,
    asker: Asker,
    names: PathOf<(String, String)>,
    Params(params): Params<UrlsParams>,
) -> Answer {
    let (name, dataset) = path(names)?;
    // First pages of domains that many ask for are kept; those behind them are asked for once. So are those of a search, which
    // may have ended for want of time: the next asker may get further.
    let first = params.cursor.is_none() && params.offset.unwrap_or(0) == 0;
    let times = params.from.is_some() || params.until.is_some();
    let searched = times || params.status.is_some() || params.error_class.is_some();
    let key = (first && !searched).then(|| format!("urls {name:?} {dataset:?} {params:?}"));
    if params.cursor.is_some() && params.offset.is_some() {
        return Err(Failure::bad_request("give a cursor or an offset, not both"));
    }
    let page = Page {
        offset: params.offset.unwrap_or(0),
        limit: params.limit.unwrap_or(DEFAULT_LIMIT),
        cursor: params.cursor.map(|key| key.0),
    };
    let filter = Filter {
        host: params.host.map(|host| host.0),
        path_prefix: params.path_prefix,
        from: params.from,
        until: params.until,
        status: params.status,
        error_class: params.error_class,
    };
    ask_bytes(&state, asker, "application/json", key, move |pinned, who, facts| {
        let dataset_id = pinned.dataset_id(&dataset, who)?;
        let UrlsJson { text, rows } = pinned.urls_json(&name, dataset_id, &page, &filter, who)?;
        *facts = Facts { dataset_id: Some(dataset_id), rows: Some(rows), ..Facts::default() };
        Ok(text)
    })
    .await
}

/// `GET /v1/url`.
pub(crate) async fn url(
    axum::extract::State(state): Shared,
    asker: Asker,
    Params(params): Params<UrlParams>,
) -> Answer {
    let UrlText(url) = params.url.ok_or_else(|| Failure::bad_request("parameter url is missing"))?;
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
    ask(&state, asker, move |pinned, who| pinned.url(&url, limit, who)).await
}

/// `GET /v1/domains`.
pub(crate) async fn domains(
    axum::extract::State(state): Shared,
    asker: Asker,
    Params(params): Params<NamesParams>,
) -> Answer {
    names(state, asker, params).await
}

/// `GET /v1/datasets/{dataset}/domains`.
pub(crate) async fn dataset_domains(
    axum::extract::State(state): Shared,
    asker: Asker,
    dataset: PathOf<String>,
    Params(params): Params<DatasetNamesParams>,
) -> Answer {
    let DatasetNamesParams { prefix, suffix, after, limit } = params;
    names(state, asker, NamesParams { prefix, suffix, after, limit, dataset: Some(path(dataset)?) }).await
}

async fn names(state: Arc<State>, asker: Asker, params: NamesParams) -> Answer {
    let limit = params.limit.unwrap_or(DEFAULT_NAMES).min(MAX_NAMES) as usize;
    ask(&state, asker, move |pinned, who| {
        let dataset = params.dataset.as_deref().map(|name| pinned.dataset_id(name, who)).transpose()?;
        let wanted = NamesQuery {
            prefix: params.prefix.as_deref().unwrap_or_default(),
            suffix: params.suffix.as_deref().unwrap_or_default(),
            after: params.after.as_deref(),
            dataset,
            limit,
        };
        pinned.names(&wanted, who)
    })
    .await
}

/// `GET /v1/datasets`.
pub(crate) async fn datasets(axum::extract::State(state): Shared, asker: Asker, _: Params<Nothing>) -> Answer {
    // Domains of small lakes are counted one by one: once for each version and principal.
    ask_cached(&state, asker, Some("datasets".into()), |pinned, who| {
        let mut datasets = pinned.datasets(who)?;
        for dataset in &mut datasets {
            // Clients must not learn where files are on this machine.
            dataset.archive_base.retain(|base| !base.starts_with("file:"));
            // Nor is what opens a server: a password, or a signature behind the address.
            for base in &mut dataset.archive_base {
                let open = base.split('?').next().unwrap_or_default();
                *base = trawl_url::without_userinfo(open).into_owned();
            }
        }
        Ok(Datasets { version: pinned.version().to_owned(), datasets })
    })
    .await
}

/// `GET /v1/stats`.
pub(crate) async fn stats(axum::extract::State(state): Shared, asker: Asker, _: Params<Nothing>) -> Answer {
    ask_cached(&state, asker, Some("stats".into()), |pinned, who| pinned.stats_for(who)).await
}

/// `GET /v1/datasets/{a}/diff/{b}`: one object a line, the summary last.
pub(crate) async fn diff(
    axum::extract::State(state): Shared,
    asker: Asker,
    names: PathOf<(String, String)>,
    Params(params): Params<DiffParams>,
) -> Answer {
    let (a, b) = path(names)?;
    let kind = HeaderValue::from_static("application/x-ndjson");
    stream(&state, asker, kind, Packing::TEXT.of_all_rows(), move |pinned, who, out| {
        let comparison = Comparison {
            a: pinned.dataset_id(&a, who)?,
            b: pinned.dataset_id(&b, who)?,
            domain: params.domain.as_ref().map(|host| host.0.as_str()),
            urls: params.urls.unwrap_or(false),
        };
        let mut failed = None;
        let summary = pinned.diff(&comparison, who, &mut |event| {
            let line = match event {
                DiffEvent::Url { domain, side, url } => {
                    serde_json::json!({ "type": "url", "domain": domain, "in": side, "url": url })
                }
                DiffEvent::Domain(domain) => tagged("domain", domain),
            };
            failed = writeln!(out, "{line}").err();
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match failed {
            Some(error) => Err(gone(error)),
            None => writeln!(out, "{}", tagged("summary", &summary)).map_err(gone),
        }
    })
    .await
}

fn tagged(kind: &str, value: &impl Serialize) -> serde_json::Value {
    let mut line = serde_json::json!({ "type": kind });
    if let (Some(line), Ok(serde_json::Value::Object(fields))) = (line.as_object_mut(), serde_json::to_value(value)) {
        line.extend(fields);
    }
    line
}

/// An error of a writer of tables.
pub(super) fn unwritten(error: impl std::error::Error + Send + Sync + 'static) -> QueryError {
    QueryError::Lake { source: Box::new(error) }
}
