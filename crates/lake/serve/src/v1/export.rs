//! All rows of a domain or a dataset, as a stream of lines or a table.

use super::{PathOf, Shared, path, unwritten};
use crate::asker::Asker;
use crate::params::{Host, Params, choice, params};
use crate::stream::{Out, Packing, gone, stream};
use crate::work::Answer;
use arrow_ipc::writer::StreamWriter;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde::Serialize;
use std::io::{self, Write};
use std::ops::ControlFlow;
use trawl_model::UnixMillis;
use trawl_query::{Filter, ItemTable, QueryError, UrlItem};

/// Rows of one row group of Parquet: what a stream holds in memory.
const ROW_GROUP: usize = 1 << 16;

choice! {
    /// The form of an export.
    Format {
        /// One JSON object a line.
        Ndjson = "ndjson",
        /// RFC 4180, with a line of names.
        Csv = "csv",
        /// The stream format of Arrow IPC.
        Arrow = "arrow",
        /// A Parquet file.
        Parquet = "parquet",
    }
}

impl Format {
    fn content_type(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    fn packing(self) -> Packing {
        let packing = if matches!(self, Self::Ndjson | Self::Csv) { Packing::TEXT } else { Packing::AS_IS };
        packing.of_all_rows()
    }

    fn disposition(self) -> &'static str {
        match self {
            Self::Ndjson => "attachment; filename=\"urls.ndjson\"",
            Self::Csv => "attachment; filename=\"urls.csv\"",
            Self::Arrow => "attachment; filename=\"urls.arrows\"",
            Self::Parquet => "attachment; filename=\"urls.parquet\"",
        }
    }
}

params! {
    /// Which rows, and in which form.
    ExportParams {
        /// ndjson if not given.
        format: Format,
        /// Only this host, in any spelling.
        host: Host,
        /// Only paths that begin so, in any spelling.
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

impl ExportParams {
    fn split(self) -> (Format, Filter) {
        let Self { format, host, path_prefix, from, until, status, error_class } = self;
        let host = host.map(|host| host.0);
        (format.unwrap_or(Format::Ndjson), Filter { host, path_prefix, from, until, status, error_class })
    }
}

/// `GET /v1/domain/{domain}/datasets/{dataset}/export`.
pub(crate) async fn export_domain(
    axum::extract::State(state): Shared,
    asker: Asker,
    names: PathOf<(String, String)>,
    Params(params): Params<ExportParams>,
) -> Answer {
    let (domain, dataset) = path(names)?;
    let (format, filter) = params.split();
    let kind = HeaderValue::from_static(format.content_type());
    stream(&state, asker, kind, format.packing(), move |pinned, who, out| {
        let dataset_id = pinned.dataset_id(&dataset, who)?;
        write(format, dataset_id, out, |each| pinned.export_domain(&domain, dataset_id, &filter, who, each))
    })
    .await
}

/// `GET /v1/datasets/{dataset}/export`.
pub(crate) async fn export_dataset(
    axum::extract::State(state): Shared,
    asker: Asker,
    dataset: PathOf<String>,
    Params(params): Params<ExportParams>,
) -> Answer {
    let dataset = path(dataset)?;
    let (format, filter) = params.split();
    let kind = HeaderValue::from_static(format.content_type());
    stream(&state, asker, kind, format.packing(), move |pinned, who, out| {
        let dataset_id = pinned.dataset_id(&dataset, who)?;
        write(format, dataset_id, out, |each| pinned.export_dataset(dataset_id, &filter, who, each))
    })
    .await
}

type Each<'a> = dyn FnMut(&str, UrlItem) -> ControlFlow<()> + 'a;

fn write(
    format: Format,
    dataset_id: u32,
    out: &mut Out<'_>,
    rows: impl FnOnce(&mut Each<'_>) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(format.disposition()));
    out.start(StatusCode::OK, headers);
    let mut writer = Writer::new(format, dataset_id, out)?;
    let mut failed = None;
    rows(&mut |domain, item| match writer.push(domain, item) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    match failed {
        Some(error) => Err(error),
        None => writer.finish(),
    }
}

enum Writer<'a, 'o> {
    Ndjson(u32, &'a mut Out<'o>),
    Csv(u32, &'a mut Out<'o>),
    Arrow(u32, Box<(ItemTable, StreamWriter<&'a mut Out<'o>>)>),
    Parquet(u32, Box<(ItemTable, ArrowWriter<&'a mut Out<'o>>)>),
}

/// A row as a line has it.
#[derive(Serialize)]
struct Line<'a> {
    dataset_id: u32,
    domain: &'a str,
    #[serde(flatten)]
    item: &'a UrlItem,
}

const CSV_NAMES: &str = "dataset_id,domain,url_id,url,ts,status,content_type,digest,body_length,warc_file,warc_offset,warc_length,extras\r\n";

impl<'a, 'o> Writer<'a, 'o> {
    fn new(format: Format, dataset_id: u32, out: &'a mut Out<'o>) -> Result<Self, QueryError> {
        Ok(match format {
            Format::Ndjson => Self::Ndjson(dataset_id, out),
            Format::Csv => {
                out.write_all(CSV_NAMES.as_bytes()).map_err(gone)?;
                Self::Csv(dataset_id, out)
            }
            Format::Arrow => {
                let batch = ItemTable::new();
                let writer = StreamWriter::try_new(out, &batch.schema()).map_err(unwritten)?;
                Self::Arrow(dataset_id, Box::new((batch, writer)))
            }
            Format::Parquet => {
                let batch = ItemTable::new();
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(Default::default()))
                    .set_max_row_group_row_count(Some(ROW_GROUP))
                    .build();
                let writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).map_err(unwritten)?;
                Self::Parquet(dataset_id, Box::new((batch, writer)))
            }
        })
    }

    fn push(&mut self, domain: &str, item: UrlItem) -> Result<(), QueryError> {
        match self {
            Self::Ndjson(dataset_id, out) => {
                let line = Line { dataset_id: *dataset_id, domain, item: &item };
                serde_json::to_writer(&mut **out, &line).map_err(|error| gone(error.into()))?;
                out.write_all(b"\n").map_err(gone)
            }
            Self::Csv(dataset_id, out) => csv_line(*dataset_id, domain, &item, &mut **out).map_err(gone),
            Self::Arrow(dataset_id, table) => {
                let (batch, writer) = &mut **table;
                batch.push(*dataset_id, domain, &item);
                if batch.is_full() { writer.write(&taken(batch)?).map_err(left) } else { Ok(()) }
            }
            Self::Parquet(dataset_id, table) => {
                let (batch, writer) = &mut **table;
                batch.push(*dataset_id, domain, &item);
                if batch.is_full() { writer.write(&taken(batch)?).map_err(left) } else { Ok(()) }
            }
        }
    }

    fn finish(self) -> Result<(), QueryError> {
        match self {
            Self::Ndjson(..) | Self::Csv(..) => Ok(()),
            Self::Arrow(_, table) => {
                let (mut batch, mut writer) = *table;
                if batch.rows() > 0 {
                    writer.write(&taken(&mut batch)?).map_err(left)?;
                }
                writer.finish().map_err(left)
            }
            Self::Parquet(_, table) => {
                let (mut batch, mut writer) = *table;
                if batch.rows() > 0 {
                    writer.write(&taken(&mut batch)?).map_err(left)?;
                }
                writer.close().map(|_| ()).map_err(left)
            }
        }
    }
}

fn taken(table: &mut ItemTable) -> Result<arrow_array::RecordBatch, QueryError> {
    table.take().map_err(unwritten)
}

/// What can go wrong with a table in memory is that its reader leaves.
fn left<E>(_: E) -> QueryError {
    QueryError::Cancelled
}

fn csv_line(dataset_id: u32, domain: &str, item: &UrlItem, out: &mut dyn Write) -> io::Result<()> {
    let number = |value: Option<u64>| value.map(|n| n.to_string()).unwrap_or_default();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let fields = [
        dataset_id.to_string(),
        domain.to_owned(),
        format!("{:#018x}", item.url_id),
        item.url.clone(),
        item.ts.map(|ts| ts.to_string()).unwrap_or_default(),
        number(item.status.map(u64::from)),
        text(&item.content_type),
        text(&item.digest),
        number(item.body_length),
        text(&item.warc_file),
        number(item.warc_offset),
        number(item.warc_length),
        item.extras.as_ref().map(ToString::to_string).unwrap_or_default(),
    ];
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        if field.contains([',', '"', '\r', '\n']) {
            write!(out, "\"{}\"", field.replace('"', "\"\""))?;
        } else {
            out.write_all(field.as_bytes())?;
        }
    }
    out.write_all(b"\r\n")
}
