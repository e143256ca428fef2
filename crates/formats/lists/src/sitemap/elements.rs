//! The XML formats: a list of containers (`url`, `sitemap`, `item`, `entry`), each with an address and a date.
//!
//! What else stands in a container (images, videos, news, page maps, alternate languages) is passed over with all it
//! holds. Mistakes that are common in the wild are read as they were meant: two addresses in one container, an
//! address without its own element or without a container, an element inside an address.

use super::base::Bases;
use super::{Kind, text, unknown};
use crate::Error;
use crate::lines::BOM;
use crate::xml::{Event, Reader, Tag, local, prefix};
use encoding_rs::Encoding;
use std::borrow::Cow;
use trawl_model::UnixMillis;
use trawl_model::date::any_date;
use trawl_url::{Base, entities};

/// The longest text that is kept of one element.
const MAX_TEXT: usize = trawl_url::MAX_URL_LEN;

/// What the text being read is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    /// The address.
    Address,
    /// An address of last resort: an RSS `guid`.
    Guid,
    /// The date.
    Date,
    /// The date of the feed as a whole.
    FeedDate,
    /// The address of the feed's site.
    FeedAddress,
    /// Nothing that is wanted.
    Other,
}

/// A container that was read.
pub(crate) struct Found {
    /// Where it begins in the document.
    pub at: u64,
    /// What it says its address is; absolute where it or the document says what it is relative to.
    pub address: Option<String>,
    /// And its date.
    pub date: Option<UnixMillis>,
}

/// What the document turned out to be.
pub(crate) struct Seen {
    pub kind: Kind,
    /// The date of a feed as a whole.
    pub updated: Option<UnixMillis>,
    /// Whether it ended in the middle of an entry.
    pub damaged: bool,
    /// Where its elements first do not lie inside each other, or where it ends before they do. An entry may be missing there.
    pub unbalanced: Option<u64>,
}

/// Elements inside each other at most, in a document of which that is checked.
const MAX_DEPTH: usize = 1000;

/// Whether each end tag ends the element that was begun last, and whether nothing but elements stands side by side.
#[derive(Default)]
struct Balance<'a> {
    open: Vec<&'a [u8]>,
    /// Whether any element has begun.
    any: bool,
    broken: Option<u64>,
}

impl<'a> Balance<'a> {
    fn see(&mut self, event: &Event<'a>, at: u64) {
        let fits = match event {
            _ if self.broken.is_some() => return,
            Event::Start(tag) if tag.empty => true,
            Event::Start(tag) => {
                self.any = true;
                self.open.push(tag.name);
                self.open.len() <= MAX_DEPTH
            }
            Event::End(name) => self.open.pop().is_some_and(|open| open.eq_ignore_ascii_case(name)),
            // Behind a document, a list of lines may have been joined to it. What a server prints in front is no entry.
            Event::Text(bytes) | Event::Literal(bytes) => !self.any || !self.open.is_empty() || is_blank(bytes),
        };
        self.broken = Some(at).filter(|_| !fits);
    }

    /// Whether the start tag that was seen last is that of a whole document.
    fn is_root(&self) -> bool {
        self.broken.is_none() && self.open.len() == 1
    }

    fn end(self, at: u64) -> Option<u64> {
        self.broken.or_else(|| Some(at).filter(|_| !self.open.is_empty()))
    }
}

/// Whether a text is nothing but white space and byte order marks, as between documents that were joined by `cat`.
fn is_blank(text: &[u8]) -> bool {
    text.split(|b| b.is_ascii_whitespace()).all(|word| word.is_empty() || word == BOM)
}

/// What a root element says that its document is.
fn kind_of(root: &[u8]) -> Option<Kind> {
    const ROOTS: [(&str, Kind); 7] = [
        ("urlset", Kind::Urls),
        ("sitemapindex", Kind::Index),
        ("rss", Kind::Rss),
        ("rdf", Kind::Rss),
        ("feed", Kind::Atom),
        // Without their root, which happens.
        ("url", Kind::Urls),
        ("sitemap", Kind::Index),
    ];
    ROOTS.iter().find(|(known, _)| root.eq_ignore_ascii_case(known.as_bytes())).map(|(_, kind)| *kind)
}

/// Takes containers; tells whether there is room for more.
type Each<'a> = dyn FnMut(Found) -> bool + 'a;

/// The container being read.
#[derive(Default)]
struct Container {
    at: u64,
    prefix: Vec<u8>,
    /// Elements open inside it that are not fields.
    depth: u32,
    address: Option<String>,
    guid: Option<String>,
    /// Text directly inside, for containers without an address element.
    text: String,
    date: Option<UnixMillis>,
    /// What its addresses are relative to.
    base: Option<Base>,
    /// Whether an entry was made of it already.
    used: bool,
    /// Whether it is an address that lies in no container.
    alone: bool,
}

/// Reads the document, and hands over every container in it. `found_at` is where the document was found, if that is known: what
/// a feed's addresses are relative to where nothing in it says so.
pub(crate) fn read(
    document: &[u8],
    encoding: &'static Encoding,
    found_at: Option<Base>,
    now: UnixMillis,
    each: &mut Each<'_>,
) -> Result<Seen, Error> {
    let mut reader = Reader::new(document);
    let mut walk = Walk {
        kind: None,
        container: None,
        field: None,
        text: String::new(),
        updated: None,
        bases: Bases::new(found_at),
        encoding,
        now,
    };
    let mut balance = Balance::default();
    // What the first document is; others may be joined to it.
    let mut first: Option<Kind> = None;
    while let Some(event) = reader.next() {
        let offset = document.len() - reader.left();
        balance.see(&event, offset as u64);
        let more = match event {
            Event::Start(tag) => {
                if first.is_some() && !tag.empty && balance.is_root() && !walk.next_root(local(tag.name)) {
                    balance.broken = Some(offset as u64);
                }
                let base = tag.xml_base().map(|base| entities::decode_distinct(&walk.decoded(base)).into_owned());
                walk.bases.start(base.as_deref());
                let more = walk.start(&tag, offset, each)?;
                first = first.or(walk.kind);
                if tag.empty {
                    walk.bases.end();
                }
                more
            }
            Event::End(name) => {
                let more = walk.end(local(name), each);
                walk.bases.end();
                more
            }
            Event::Text(bytes) => {
                let text = walk.decoded(bytes);
                walk.append(&entities::decode_distinct(&text));
                true
            }
            Event::Literal(bytes) => {
                let text = walk.decoded(bytes);
                walk.append(&text);
                true
            }
        };
        if !more {
            break;
        }
    }
    let Some(kind) = first else {
        let head = document.get(..200).unwrap_or(document);
        return Err(unknown(0, &walk.decoded(head)));
    };
    let damaged = reader.damaged() || walk.container.is_some();
    walk.cut(reader.cut_end_tag(), each);
    let unbalanced = balance.end((document.len() - reader.left()) as u64);
    Ok(Seen { kind, updated: walk.updated, damaged, unbalanced })
}

/// The state of the walk through the document.
struct Walk {
    kind: Option<Kind>,
    container: Option<Container>,
    field: Option<Field>,
    text: String,
    updated: Option<UnixMillis>,
    bases: Bases,
    encoding: &'static Encoding,
    now: UnixMillis,
}

impl Walk {
    fn decoded<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        text(bytes, self.encoding)
    }

    /// The value of an attribute.
    fn value(&self, tag: &Tag<'_>, name: &str) -> Option<String> {
        tag.attribute(name).map(|value| entities::decode_distinct(&self.decoded(value)).into_owned())
    }

    /// Takes the root element, which says what the document is.
    fn root(&mut self, name: &[u8], offset: usize) -> Result<Kind, Error> {
        let kind = kind_of(name).ok_or_else(|| unknown(offset, &format!("<{}>", self.decoded(name))))?;
        self.kind = Some(kind);
        Ok(kind)
    }

    /// Another document begins behind the first, as where files were joined by `cat`: what it is, and what its addresses
    /// are relative to, it says itself. Tells whether its entries can be read.
    fn next_root(&mut self, name: &[u8]) -> bool {
        let kind = kind_of(name);
        self.kind = kind.or(self.kind);
        self.bases.next_document();
        kind.is_some()
    }

    fn start(&mut self, tag: &Tag<'_>, offset: usize, each: &mut Each<'_>) -> Result<bool, Error> {
        let name = local(tag.name).to_ascii_lowercase();
        let kind = match self.kind {
            Some(kind) => kind,
            None => self.root(&name, offset)?,
        };
        let opens = match kind {
            Kind::Urls | Kind::Index => name == b"url" || name == b"sitemap",
            Kind::Rss => name == b"item",
            Kind::Atom | Kind::Text => name == b"entry",
        };
        // The address of the site, never closed, does not hide what follows.
        if opens && self.field == Some(Field::FeedAddress) {
            self.close(Field::FeedAddress);
        }
        // `<loc><url>…</url></loc>` is an address all the same.
        if opens && self.field.is_none() && self.container.as_ref().is_none_or(|open| open.depth == 0) {
            let more = self.finish(each);
            // An item of RSS 1.0 carries its address as `rdf:about` too.
            let guid = self.value(tag, "about").filter(|_| kind == Kind::Rss);
            let (at, prefix) = (offset as u64, prefix(tag.name).to_vec());
            let base = self.bases.current(kind);
            self.container = Some(Container { at, prefix, guid, base, ..Container::default() });
            return Ok(more && (!tag.empty || self.finish(each)));
        }
        // A link may say itself what it is relative to.
        let href = self.value(tag, "href").filter(|_| kind == Kind::Atom);
        let href = href.map(|href| self.bases.resolve(kind, href));
        let Some(container) = &mut self.container else {
            if matches!(&*name, b"pubdate" | b"lastbuilddate" | b"updated") && matches!(kind, Kind::Rss | Kind::Atom) {
                self.open(Field::FeedDate);
            }
            if name == b"link" && prefix(tag.name).is_empty() && kind == Kind::Rss && !tag.empty {
                self.open(Field::FeedAddress);
            }
            // Sitemaps that leave `<url>` out; an address with a prefix is that of an image.
            if name == b"loc" && prefix(tag.name).is_empty() && matches!(kind, Kind::Urls | Kind::Index) && !tag.empty {
                self.container = Some(Container { at: offset as u64, alone: true, ..Container::default() });
                self.open(Field::Address);
            }
            return Ok(true);
        };
        if self.field.is_some() {
            return Ok(true);
        }
        let own = container.depth == 0 && prefix(tag.name) == container.prefix;
        let field = match (&*name, kind) {
            (b"loc", Kind::Urls | Kind::Index) if own => Some(Field::Address),
            (b"lastmod", Kind::Urls | Kind::Index) if own => Some(Field::Date),
            (b"link", Kind::Rss) if own => Some(Field::Address),
            // What says that it is not an address is none, even if it looks like one.
            (b"guid", Kind::Rss) if own => {
                let is_link =
                    tag.attribute("isPermaLink").is_none_or(|is| !is.trim_ascii().eq_ignore_ascii_case(b"false"));
                Some(if is_link { Field::Guid } else { Field::Other })
            }
            // RSS 1.0 has `dc:date`.
            (b"pubdate" | b"date", Kind::Rss) if container.depth == 0 => Some(Field::Date),
            (b"updated" | b"published", Kind::Atom) if own => Some(Field::Date),
            (b"link", Kind::Atom) if own => {
                let rel = tag.attribute("rel").unwrap_or(b"alternate");
                if container.address.is_none() && rel.trim_ascii().eq_ignore_ascii_case(b"alternate") {
                    container.address = href;
                }
                None
            }
            _ => None,
        };
        let again = field == Some(Field::Address) && (container.address.is_some() || container.used);
        let mut more = true;
        if again && matches!(kind, Kind::Urls | Kind::Index) {
            // A second address: the first one's container was never closed.
            let prefix = container.prefix.clone();
            more = self.finish(each);
            self.container = Some(Container { at: offset as u64, prefix, used: true, ..Container::default() });
        }
        match (field, &mut self.container) {
            (Some(field), _) if !tag.empty => self.open(field),
            (None, Some(container)) if !tag.empty => container.depth = container.depth.saturating_add(1),
            _ => {}
        }
        Ok(more)
    }

    fn open(&mut self, field: Field) {
        self.field = Some(field);
        self.text.clear();
    }

    fn append(&mut self, text: &str) {
        let to = match (&self.field, &mut self.container) {
            (Some(_), _) => &mut self.text,
            (None, Some(container)) if container.depth == 0 => &mut container.text,
            _ => return,
        };
        if to.len() + text.len() <= MAX_TEXT {
            to.push_str(text);
        }
    }

    fn end(&mut self, name: &[u8], each: &mut Each<'_>) -> bool {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let closes = match self.kind {
            Some(Kind::Urls | Kind::Index) => is("url") || is("sitemap"),
            Some(Kind::Rss) => is("item"),
            _ => is("entry"),
        };
        if let Some(field) = self.field {
            let done = match field {
                Field::Address | Field::FeedAddress => is("loc") || is("link"),
                Field::Guid | Field::Other => is("guid"),
                Field::Date | Field::FeedDate => !closes,
            };
            if done {
                self.close(field);
            }
            let alone = done && self.container.as_ref().is_some_and(|container| container.alone);
            return !alone || self.finish(each);
        }
        if closes {
            return self.finish(each);
        }
        if let Some(container) = &mut self.container {
            container.depth = container.depth.saturating_sub(1);
        }
        true
    }

    /// Ends a field: its text goes where it belongs.
    fn close(&mut self, field: Field) {
        self.field = None;
        let date = || any_date(self.text.trim(), self.now);
        match (field, &mut self.container) {
            (Field::FeedAddress, _) => self.bases.site(self.text.trim()),
            (Field::FeedDate, _) => self.updated = self.updated.or_else(date),
            (Field::Date, Some(container)) => container.date = container.date.or_else(date),
            (Field::Address, Some(container)) if container.address.is_none() => {
                container.address = Some(std::mem::take(&mut self.text));
            }
            (Field::Guid, Some(container)) => container.guid = Some(std::mem::take(&mut self.text)),
            _ => {}
        }
    }

    /// The document ended: of an open container only an address that is whole counts.
    fn cut(&mut self, in_end_tag: bool, each: &mut Each<'_>) {
        if let Some(field) = self.field.filter(|_| in_end_tag) {
            self.close(field);
        }
        if let Some(container) = &mut self.container {
            container.guid = None;
            if !in_end_tag {
                container.text.clear();
            }
        }
        self.finish(each);
    }

    /// Makes an entry of the container, if one is open; returns whether there is room for more.
    fn finish(&mut self, each: &mut Each<'_>) -> bool {
        self.field = None;
        let Some(container) = self.container.take() else { return true };
        let direct = Some(container.text).filter(|text| !container.used && !text.trim().is_empty());
        // An id or a text need not be an address: in a feed, only one that is absolute is taken for one.
        let is_feed = matches!(self.kind, Some(Kind::Rss | Kind::Atom));
        let beside = container.guid.or(direct).filter(|text| !is_feed || !super::is_relative(text));
        let address = container.address.filter(|address| !address.trim().is_empty()).or(beside);
        // A second address has made the entry of a container that was left open; what remains of it is nothing.
        if address.is_none() && container.used {
            return true;
        }
        let address = address.map(|address| super::base::resolve(container.base.as_ref(), address));
        each(Found { at: container.at, address, date: container.date })
    }
}
