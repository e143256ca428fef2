//! Values as JSON: the layout that the fixtures define.

use crate::class::NutchClasses;
use crate::types::{
    Content, CrawlDatum, FieldValue, HostDatum, Inlink, Inlinks, Interval, LinkDatum, LinkForm, LinkNode, MetaWrapper,
    Metadata, Node, NutchDocument, NutchField, NutchIndexAction, NutchWritable, Outlink, ParseData, ParseImpl,
    ParseStatus, ParseText, ProtocolStatus, SelectorEntry,
};
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use trawl_hadoop::json::{self, Detail, JsonClasses as _};
use trawl_hadoop::{Any, Decoded, Decoder, MapWritable, Strings, Text};

/// Contents up to this length are shown in a digest, beside their hash.
const CONTENT_LIMIT: usize = 600;

pub(crate) fn text(t: &Text<'_>, detail: Detail) -> Value {
    json::text(t.as_bytes(), detail)
}

fn map(m: &MapWritable<'_>, detail: Detail) -> Decoded<Value> {
    json::entries(m, detail, &NutchClasses)
}

fn args(args: Option<&Strings<'_>>, detail: Detail) -> Value {
    let one = |arg: &Option<Text<'_>>| arg.as_ref().map_or(Value::Null, |arg| text(arg, detail));
    args.map_or(Value::Null, |args| args.iter().map(one).collect())
}

pub(crate) fn crawl_datum(c: &CrawlDatum<'_>, detail: Detail) -> Decoded<Value> {
    let signature = if c.signature.is_empty() { Value::Null } else { HEXLOWER.encode(&c.signature).into() };
    let interval = match c.interval {
        Interval::Seconds(s) => s.into(),
        Interval::Days(days) => json::f32(days),
    };
    let mut value = json!({
        // As stored: what an old code means today is the name beside it.
        "status": c.stored_status.cast_signed(),
        "status_name": c.status().name(),
        "fetchTime": c.fetch_time,
        "retries": c.retries,
        "fetchInterval": interval,
        "score": json::f32(c.score),
        "signature": signature,
        "modifiedTime": c.modified_time,
        "metadata": map(&c.metadata, detail)?,
    });
    if let (Some(count), Some(object)) = (c.link_count, value.as_object_mut()) {
        object.insert("linkCount".into(), count.into());
    }
    Ok(value)
}

fn link(
    name: &str,
    url: &Text<'_>,
    anchor: &Text<'_>,
    m: Option<&MapWritable<'_>>,
    form: LinkForm,
    detail: Detail,
) -> Decoded<Value> {
    let mut object = Map::new();
    object.insert(name.into(), text(url, detail));
    object.insert("anchor".into(), text(anchor, detail));
    // Only where the file has a place for them.
    if form == LinkForm::WithMetadata {
        object.insert("metadata".into(), m.map_or(Ok(Value::Null), |m| map(m, detail))?);
    }
    Ok(object.into())
}

pub(crate) fn inlink(l: &Inlink<'_>, detail: Detail) -> Decoded<Value> {
    link("fromUrl", &l.from_url, &l.anchor, l.metadata.as_ref(), l.form, detail)
}

pub(crate) fn inlinks(l: &Inlinks<'_>, detail: Detail) -> Decoded<Value> {
    // A set: its order on disk is that of a hash.
    let mut links: Vec<_> = l.0.iter().collect();
    links.sort_by(|a, b| (&a.from_url, &a.anchor).cmp(&(&b.from_url, &b.anchor)));
    let links: Vec<_> = links.into_iter().map(|l| inlink(l, detail)).collect::<Decoded<_>>()?;
    Ok(json!({ "inlinks": links }))
}

pub(crate) fn outlink(l: &Outlink<'_>, detail: Detail) -> Decoded<Value> {
    link("toUrl", &l.to_url, &l.anchor, l.metadata.as_ref(), l.form, detail)
}

pub(crate) fn outlinks(list: &[Outlink<'_>], detail: Detail) -> Decoded<Value> {
    list.iter().map(|l| outlink(l, detail)).collect::<Decoded<Vec<_>>>().map(Value::from)
}

/// Names in the order of their UTF-16 units, with all values that a name has; names without values left out.
pub(crate) fn metadata(m: &Metadata<'_>, detail: Detail) -> Value {
    let mut names: BTreeMap<Vec<u16>, (&Text<'_>, Vec<&Text<'_>>)> = BTreeMap::new();
    for (name, values) in &m.0 {
        let units = name.to_str().encode_utf16().collect();
        names.entry(units).or_insert((name, Vec::new())).1.extend(values);
    }
    let entry = |(name, values): (&Text<'_>, Vec<&Text<'_>>)| {
        let values: Vec<_> = values.into_iter().map(|v| text(v, detail)).collect();
        json!({ "name": text(name, detail), "values": values })
    };
    names.into_values().filter(|(_, values)| !values.is_empty()).map(entry).collect()
}

/// Length and hash of a content, and the bytes themselves if they are few or everything is wanted.
pub(crate) fn content_bytes(bytes: &[u8], detail: Detail, object: &mut Map<String, Value>) {
    object.insert("content_len".into(), bytes.len().into());
    object.insert("content_sha256".into(), json::sha256(bytes).into());
    if detail == Detail::Full || bytes.len() <= CONTENT_LIMIT {
        object.insert("content_base64".into(), BASE64.encode(bytes).into());
    }
}

pub(crate) fn content(c: &Content<'_>, detail: Detail) -> Value {
    let mut object = Map::new();
    object.insert("url".into(), text(&c.url, detail));
    object.insert("base".into(), text(&c.base, detail));
    object.insert("contentType".into(), text(&c.content_type, detail));
    content_bytes(&c.content, detail, &mut object);
    object.insert("metadata".into(), metadata(&c.metadata, detail));
    object.into()
}

pub(crate) fn protocol_status(s: &ProtocolStatus<'_>, detail: Detail) -> Value {
    json!({
        "code": s.code,
        "name": s.name(),
        "lastModified": s.last_modified,
        "args": args(s.args.as_ref(), detail),
    })
}

pub(crate) fn parse_status(s: &ParseStatus<'_>, detail: Detail) -> Value {
    json!({ "major": s.major, "minor": s.minor, "args": args(s.args.as_ref(), detail) })
}

pub(crate) fn parse_text(t: &ParseText<'_>, detail: Detail) -> Value {
    json!({ "text": text(&t.0, detail) })
}

pub(crate) fn parse_data(p: &ParseData<'_>, detail: Detail) -> Decoded<Value> {
    let mut object = Map::new();
    if let Some(status) = &p.status {
        object.insert("status".into(), parse_status(status, detail));
    }
    object.insert("title".into(), text(&p.title, detail));
    object.insert("outlinks".into(), outlinks(&p.outlinks, detail)?);
    let content_meta = if p.version <= 2 { "metadata" } else { "contentMeta" };
    object.insert(content_meta.into(), metadata(&p.content_meta, detail));
    if p.version >= 4 {
        object.insert("parseMeta".into(), metadata(&p.parse_meta, detail));
    }
    Ok(object.into())
}

pub(crate) fn parse_impl(p: &ParseImpl<'_>, detail: Detail) -> Decoded<Value> {
    Ok(json!({
        "canonical": p.canonical,
        "text": text(&p.text.0, detail),
        "data": parse_data(&p.data, detail)?,
    }))
}

pub(crate) fn link_datum(l: &LinkDatum<'_>, detail: Detail) -> Value {
    json!({
        "url": text(&l.url, detail),
        "anchor": text(&l.anchor, detail),
        "score": json::f32(l.score),
        "timestamp": l.timestamp,
        "linkType": l.link_type,
    })
}

pub(crate) fn node(n: &Node<'_>, detail: Detail) -> Value {
    json!({
        "numInlinks": n.num_inlinks,
        "numOutlinks": n.num_outlinks,
        "inlinkScore": json::f32(n.inlink_score),
        "metadata": metadata(&n.metadata, detail),
    })
}

pub(crate) fn link_node(d: &mut Decoder<'_>, detail: Detail) -> Decoded<Value> {
    let l = LinkNode::decode(d)?;
    Ok(json!({ "url": text(&l.url, detail), "node": node(&l.node, detail) }))
}

pub(crate) fn link_nodes(d: &mut Decoder<'_>, detail: Detail) -> Decoded<Value> {
    let list = LinkNode::decode_list(d)?;
    let one = |l: &LinkNode<'_>| json!({ "url": text(&l.url, detail), "node": node(&l.node, detail) });
    Ok(json!({ "links": list.iter().map(one).collect::<Vec<_>>() }))
}

pub(crate) fn host_datum(h: &HostDatum<'_>, detail: Detail) -> Decoded<Value> {
    Ok(json!({
        "score": json::f32(h.score),
        "lastCheck": h.last_check,
        "homepageUrl": text(&h.homepage_url, detail),
        "dnsFailures": h.dns_failures,
        "connectionFailures": h.connection_failures,
        "unfetched": h.unfetched,
        "fetched": h.fetched,
        "notModified": h.not_modified,
        "redirTemp": h.redir_temp,
        "redirPerm": h.redir_perm,
        "gone": h.gone,
        "metadata": map(&h.metadata, detail)?,
    }))
}

pub(crate) fn selector_entry(s: &SelectorEntry<'_>, detail: Detail) -> Decoded<Value> {
    Ok(json!({ "url": text(&s.url, detail), "datum": crawl_datum(&s.datum, detail)?, "segnum": s.segment }))
}

fn field_value(v: &FieldValue<'_>, detail: Detail) -> Value {
    let value = match v {
        FieldValue::String(s) => text(s, detail),
        FieldValue::Boolean(v) => (*v).into(),
        FieldValue::Integer(v) => (*v).into(),
        FieldValue::Float(v) => json::f32(*v),
        FieldValue::Long(v) | FieldValue::Date(v) => (*v).into(),
        FieldValue::Other(_) => Value::Null,
    };
    json!({ "class": v.class(), "v": value })
}

pub(crate) fn field(f: &NutchField<'_>, detail: Detail) -> Value {
    let values: Vec<_> = f.values.iter().map(|v| field_value(v, detail)).collect();
    json!({ "weight": json::f32(f.weight), "values": values })
}

pub(crate) fn document(doc: &NutchDocument<'_>, detail: Detail) -> Value {
    let mut fields: Vec<_> = doc.fields.iter().collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    let one = |(name, f): &&(Text<'_>, NutchField<'_>)| {
        let values: Vec<_> = f.values.iter().map(|v| field_value(v, detail)).collect();
        json!({ "name": text(name, detail), "weight": json::f32(f.weight), "values": values })
    };
    let fields: Vec<_> = fields.iter().map(one).collect();
    json!({ "fields": fields, "weight": json::f32(doc.weight), "meta": metadata(&doc.metadata, detail) })
}

pub(crate) fn index_action(a: &NutchIndexAction<'_>, detail: Detail) -> Value {
    json!({ "action": a.action, "doc": document(&a.document, detail) })
}

fn any(value: &Any<'_>, detail: Detail) -> Decoded<Value> {
    NutchClasses.json(&value.class, &mut Decoder::new(&value.bytes), detail)
}

pub(crate) fn nutch_writable(d: &mut Decoder<'_>, detail: Detail) -> Decoded<Value> {
    let NutchWritable(value) = NutchWritable::decode(d)?;
    Ok(json!({ "class": value.class, "value": any(&value, detail)? }))
}

pub(crate) fn meta_wrapper(d: &mut Decoder<'_>, detail: Detail) -> Decoded<Value> {
    let MetaWrapper { value: NutchWritable(value), metadata: meta } = MetaWrapper::decode(d)?;
    Ok(json!({ "class": value.class, "value": any(&value, detail)?, "meta": metadata(&meta, detail) }))
}
