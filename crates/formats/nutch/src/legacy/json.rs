//! Old values as JSON.

use super::{FetchListEntry, FetcherOutput, FetcherStatus, Link, Page, decode_fetcher_content, decode_fetcher_text};
use crate::class;
use crate::json::{content_bytes, outlinks, protocol_status, text};
use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use trawl_hadoop::json::{Detail, f32};
use trawl_hadoop::{Decoded, Decoder};

pub(crate) fn value(class: &str, d: &mut Decoder<'_>, detail: Detail) -> Decoded<Value> {
    Ok(match class {
        class::PAGE => page(&Page::decode(d)?, detail),
        class::LINK => link(&Link::decode(d)?, detail),
        class::FETCH_LIST_ENTRY => entry(&FetchListEntry::decode(d)?, detail),
        class::FETCHER_OUTPUT => output(&FetcherOutput::decode(d)?, detail)?,
        class::FETCHER_CONTENT => {
            let mut object = Map::new();
            content_bytes(&decode_fetcher_content(d)?, detail, &mut object);
            object.into()
        }
        class::FETCHER_TEXT => json!({ "text": text(&decode_fetcher_text(d)?, detail) }),
        _ => return Err(d.error("a class of Nutch 0.4 to 0.7", class)),
    })
}

fn page(p: &Page<'_>, detail: Detail) -> Value {
    json!({
        "url": text(&p.url, detail),
        "md5": HEXLOWER.encode(&p.md5),
        "nextFetch": p.next_fetch,
        "retries": p.retries,
        "fetchInterval": p.fetch_interval,
        "numOutlinks": p.num_outlinks,
        "score": f32(p.score),
        "nextScore": f32(p.next_score),
    })
}

fn entry(e: &FetchListEntry<'_>, detail: Detail) -> Value {
    let anchors: Vec<_> = e.anchors.iter().map(|a| text(a, detail)).collect();
    json!({ "fetch": e.fetch, "page": page(&e.page, detail), "anchors": anchors })
}

fn output(o: &FetcherOutput<'_>, detail: Detail) -> Decoded<Value> {
    let mut object = Map::new();
    object.insert("fetchListEntry".into(), entry(&o.entry, detail));
    object.insert("md5".into(), HEXLOWER.encode(&o.md5).into());
    match &o.status {
        FetcherStatus::Code(code) => object.insert("status".into(), (*code).into()),
        FetcherStatus::Protocol(status) => object.insert("protocolStatus".into(), protocol_status(status, detail)),
    };
    if o.version <= 3 {
        object.insert("title".into(), text(&o.title, detail));
        object.insert("outlinks".into(), outlinks(&o.outlinks, detail)?);
    }
    object.insert("fetchDate".into(), o.fetch_date.into());
    Ok(object.into())
}

fn link(l: &Link<'_>, detail: Detail) -> Value {
    json!({
        "fromID": HEXLOWER.encode(&l.from_id),
        "url": text(&l.url, detail),
        "domainID": l.domain_id,
        "anchor": text(&l.anchor, detail),
        "targetHasOutlink": l.target_has_outlink,
    })
}
