//! Class names of Nutch, and values of them inside other values.

use crate::types::{
    Content, CrawlDatum, HostDatum, Inlink, Inlinks, LinkDatum, Metadata, Node, NutchDocument, NutchIndexAction,
    Outlink, ParseData, ParseImpl, ParseStatus, ParseText, ProtocolStatus, SelectorEntry,
};
use crate::{json, legacy};
use serde_json::Value;
use std::borrow::Cow;
use trawl_hadoop::class::{self, ClassSet};
use trawl_hadoop::json::{Detail, JsonClasses};
use trawl_hadoop::{Decoded, Decoder};

/// `org.apache.nutch.` and the name.
macro_rules! nutch {
    ($($(#[$doc:meta])* $name:ident = $class:literal;)*) => {
        $($(#[$doc])* pub const $name: &str = concat!("org.apache.nutch.", $class);)*
    };
}

nutch! {
    /// State of a URL.
    CRAWL_DATUM = "crawl.CrawlDatum";
    /// A link to a page.
    INLINK = "crawl.Inlink";
    /// All links to a page.
    INLINKS = "crawl.Inlinks";
    /// An entry of the generator's temporary files.
    SELECTOR_ENTRY = "crawl.Generator$SelectorEntry";
    /// A value of one of a table of classes.
    NUTCH_WRITABLE = "crawl.NutchWritable";
    /// Nutch's own map of 0.8 to 1.2.
    NUTCH_MAP = "crawl.MapWritable";
    /// Names with values.
    METADATA = "metadata.Metadata";
    /// A value with metadata.
    META_WRAPPER = "metadata.MetaWrapper";
    /// What a server sent.
    CONTENT = "protocol.Content";
    /// How a fetch ended.
    PROTOCOL_STATUS = "protocol.ProtocolStatus";
    /// How parsing ended.
    PARSE_STATUS = "parse.ParseStatus";
    /// Text of a page.
    PARSE_TEXT = "parse.ParseText";
    /// Title, links and metadata of a page.
    PARSE_DATA = "parse.ParseData";
    /// Text and data of a page together.
    PARSE_IMPL = "parse.ParseImpl";
    /// A link from a page.
    OUTLINK = "parse.Outlink";
    /// An edge of the web graph.
    LINK_DATUM = "scoring.webgraph.LinkDatum";
    /// A node of the web graph.
    NODE = "scoring.webgraph.Node";
    /// A node with its URL, from `linkdumper`.
    LINK_NODE = "scoring.webgraph.LinkDumper$LinkNode";
    /// Nodes with their URLs, from `linkdumper`.
    LINK_NODES = "scoring.webgraph.LinkDumper$LinkNodes";
    /// State of a host.
    HOST_DATUM = "hostdb.HostDatum";
    /// A document for an index.
    DOCUMENT = "indexer.NutchDocument";
    /// A field of a document.
    FIELD = "indexer.NutchField";
    /// What to do with a document.
    INDEX_ACTION = "indexer.NutchIndexAction";
    /// A page of the web database of 0.4 to 0.7.
    PAGE = "db.Page";
    /// A link of the web database of 0.4 to 0.7.
    LINK = "db.Link";
    /// An entry of a fetch list of 0.4 to 0.7.
    FETCH_LIST_ENTRY = "pagedb.FetchListEntry";
    /// How a fetch ended, in 0.4 to 0.7.
    FETCHER_OUTPUT = "fetcher.FetcherOutput";
    /// What a server sent, in 0.4.
    FETCHER_CONTENT = "fetcher.FetcherContent";
    /// Text of a page, in 0.4.
    FETCHER_TEXT = "fetcher.FetcherText";
}

/// The name a class has today: aliases and packages of earlier releases are resolved.
pub fn canonical(class: &str) -> Cow<'_, str> {
    match class {
        "Page" | "net.nutch.pagedb.Page" => PAGE.into(),
        "Link" | "net.nutch.linkdb.LinkRecord" => LINK.into(),
        "FetchListEntry" => FETCH_LIST_ENTRY.into(),
        "FetcherOutput" => FETCHER_OUTPUT.into(),
        "Content" => CONTENT.into(),
        "ParseText" => PARSE_TEXT.into(),
        "ParseData" => PARSE_DATA.into(),
        _ => match (class.strip_prefix("net.nutch."), class::canonical(class)) {
            (Some(name), Cow::Borrowed(_)) => format!("org.apache.nutch.{name}").into(),
            (_, known) => known,
        },
    }
}

/// The classes of Hadoop and Nutch.
#[derive(Debug, Clone, Copy)]
pub struct NutchClasses;

impl ClassSet for NutchClasses {
    fn skip(&self, class: &str, d: &mut Decoder<'_>) -> Decoded<()> {
        match class {
            PROTOCOL_STATUS => ProtocolStatus::decode(d).map(drop),
            _ if class.starts_with("org.apache.nutch.") => self.json(class, d, Detail::Digest).map(drop),
            _ => class::skip(class, d, self),
        }
    }
}

/// Values inside other values have no length, so unversioned variants are taken to be of the newest form here; a value that
/// is a record of its own is read by [`crate::RecordPrinter`], which tells them apart.
impl JsonClasses for NutchClasses {
    fn json(&self, class: &str, d: &mut Decoder<'_>, detail: Detail) -> Decoded<Value> {
        d.enter("a value")?;
        let value = match class {
            CRAWL_DATUM => json::crawl_datum(&CrawlDatum::decode(d)?, detail)?,
            INLINK => json::inlink(&Inlink::decode(d, Default::default())?, detail)?,
            INLINKS => json::inlinks(&Inlinks::decode(d, Default::default())?, detail)?,
            OUTLINK => json::outlink(&Outlink::decode(d, Default::default())?, detail)?,
            PARSE_DATA => json::parse_data(&ParseData::decode(d, Default::default())?, detail)?,
            PARSE_IMPL => json::parse_impl(&ParseImpl::decode(d, true, Default::default())?, detail)?,
            METADATA => json::metadata(&Metadata::decode(d, Default::default())?, detail),
            CONTENT => json::content(&Content::decode(d)?, detail),
            PROTOCOL_STATUS => json::protocol_status(&ProtocolStatus::decode(d)?, detail),
            PARSE_STATUS => json::parse_status(&ParseStatus::decode(d)?, detail),
            PARSE_TEXT => json::parse_text(&ParseText::decode(d)?, detail),
            LINK_DATUM => json::link_datum(&LinkDatum::decode(d)?, detail),
            NODE => json::node(&Node::decode(d)?, detail),
            LINK_NODE => json::link_node(d, detail)?,
            LINK_NODES => json::link_nodes(d, detail)?,
            HOST_DATUM => json::host_datum(&HostDatum::decode(d)?, detail)?,
            SELECTOR_ENTRY => json::selector_entry(&SelectorEntry::decode(d)?, detail)?,
            DOCUMENT => json::document(&NutchDocument::decode(d)?, detail),
            FIELD => json::field(&crate::types::NutchField::decode(d)?, detail),
            INDEX_ACTION => json::index_action(&NutchIndexAction::decode(d)?, detail),
            NUTCH_WRITABLE => json::nutch_writable(d, detail)?,
            META_WRAPPER => json::meta_wrapper(d, detail)?,
            PAGE | LINK | FETCH_LIST_ENTRY | FETCHER_OUTPUT | FETCHER_CONTENT | FETCHER_TEXT => {
                legacy::json::value(class, d, detail)?
            }
            _ => trawl_hadoop::json::value(class, d, detail, self)?,
        };
        d.leave();
        Ok(value)
    }
}
