//! The XML formats: a list of containers (`url`, `sitemap`, `item`, `entry`), each with an address and a date.
//!
//! What else stands in a container (images, videos, news, page maps, alternate languages) is passed over with all it
//! holds. Mistakes that are common in the wild are read as they were meant: two addresses in one container, an
//! address without its own element, an element inside an address.

use trawl_model::UnixMillis;
use trawl_model::date::any_date;

use super::{Kind, Target, unknown};
use crate::xml::{Event, Reader, Tag, local, prefix};
use crate::{Error, entities};

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
}

/// The container being read.
#[derive(Default)]
struct Container {
    prefix: Vec<u8>,
    /// Elements open inside it that are not fields.
    depth: u32,
    address: Option<String>,
    guid: Option<String>,
    /// Text directly inside, for containers without an address element.
    text: String,
    date: Option<UnixMillis>,
    /// Whether an entry was made of it already.
    used: bool,
}

/// Reads the document into `target`.
pub(super) fn read(document: &[u8], target: &mut Target) -> Result<(), Error> {
    let mut reader = Reader::new(document);
    let mut walk = Walk { kind: None, container: None, field: None, text: String::new() };
    while let Some(event) = reader.next() {
        let offset = document.len() - reader.left();
        let more = match event {
            Event::Start(tag) => walk.start(&tag, offset, target)?,
            Event::End(name) => walk.end(local(name), target),
            Event::Text(bytes) => {
                let text = target.text(bytes);
                walk.append(&entities::decode(&text));
                true
            }
            Event::Literal(bytes) => {
                walk.append(&target.text(bytes));
                true
            }
        };
        if !more {
            return Ok(());
        }
    }
    if walk.kind.is_none() && !target.document.over_limit {
        let found = target.text(document);
        return Err(unknown(0, &found));
    }
    target.document.damaged |= reader.damaged() || walk.container.is_some();
    walk.cut(reader.cut_end_tag(), target);
    Ok(())
}

/// The state of the walk through the document.
struct Walk {
    kind: Option<Kind>,
    container: Option<Container>,
    field: Option<Field>,
    text: String,
}

impl Walk {
    /// Takes the root element, which says what the document is.
    fn root(&mut self, name: &[u8], offset: usize, target: &mut Target) -> Result<Kind, Error> {
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
        let known = ROOTS.iter().find(|(root, _)| name.eq_ignore_ascii_case(root.as_bytes()));
        let (_, kind) = known.ok_or_else(|| unknown(offset, &format!("<{}>", target.text(name))))?;
        self.kind = Some(*kind);
        target.document.kind = *kind;
        Ok(*kind)
    }

    fn start(&mut self, tag: &Tag, offset: usize, target: &mut Target) -> Result<bool, Error> {
        let name = local(tag.name).to_ascii_lowercase();
        let kind = match self.kind {
            Some(kind) => kind,
            None => self.root(&name, offset, target)?,
        };
        let opens = match kind {
            Kind::Urls | Kind::Index => name == b"url" || name == b"sitemap",
            Kind::Rss => name == b"item",
            Kind::Atom | Kind::Text => name == b"entry",
        };
        // `<loc><url>…</url></loc>` is an address all the same.
        if opens && self.field.is_none() && self.container.as_ref().is_none_or(|open| open.depth == 0) {
            let more = self.finish(target);
            if !tag.empty {
                // An item of RSS 1.0 carries its address as `rdf:about` too.
                let about = tag.attribute("about").filter(|_| kind == Kind::Rss);
                let guid = about.map(|about| entities::decode(&target.text(about)).into_owned());
                self.container = Some(Container { prefix: prefix(tag.name).to_vec(), guid, ..Container::default() });
            }
            return Ok(more);
        }
        let Some(container) = &mut self.container else {
            if matches!(&*name, b"pubdate" | b"lastbuilddate" | b"updated") && matches!(kind, Kind::Rss | Kind::Atom) {
                self.open(Field::FeedDate);
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
            (b"guid", Kind::Rss) if own => Some(Field::Guid),
            // RSS 1.0 has `dc:date`.
            (b"pubdate" | b"date", Kind::Rss) if container.depth == 0 => Some(Field::Date),
            (b"updated" | b"published", Kind::Atom) if own => Some(Field::Date),
            (b"link", Kind::Atom) if own => {
                let rel = tag.attribute("rel").unwrap_or(b"alternate");
                if container.address.is_none() && rel.trim_ascii().eq_ignore_ascii_case(b"alternate") {
                    container.address =
                        tag.attribute("href").map(|href| entities::decode(&target.text(href)).into_owned());
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
            more = self.finish(target);
            self.container = Some(Container { prefix, used: true, ..Container::default() });
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

    fn end(&mut self, name: &[u8], target: &mut Target) -> bool {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let closes = match self.kind {
            Some(Kind::Urls | Kind::Index) => is("url") || is("sitemap"),
            Some(Kind::Rss) => is("item"),
            _ => is("entry"),
        };
        if let Some(field) = self.field {
            let done = match field {
                Field::Address => is("loc") || is("link"),
                Field::Guid => is("guid"),
                Field::Date | Field::FeedDate => !closes,
            };
            if done {
                self.close(field, target);
            }
            return true;
        }
        if closes {
            return self.finish(target);
        }
        if let Some(container) = &mut self.container {
            container.depth = container.depth.saturating_sub(1);
        }
        true
    }

    /// Ends a field: its text goes where it belongs.
    fn close(&mut self, field: Field, target: &mut Target) {
        self.field = None;
        let date = || any_date(self.text.trim(), target.now);
        match (field, &mut self.container) {
            (Field::FeedDate, _) => target.document.updated = target.document.updated.or_else(date),
            (Field::Date, Some(container)) => container.date = container.date.or_else(date),
            (Field::Address, Some(container)) if container.address.is_none() => {
                container.address = Some(std::mem::take(&mut self.text));
            }
            (Field::Guid, Some(container)) => container.guid = Some(std::mem::take(&mut self.text)),
            _ => {}
        }
    }

    /// The document ended: of an open container only an address that is whole counts.
    fn cut(&mut self, in_end_tag: bool, target: &mut Target) {
        if let Some(field) = self.field.filter(|_| in_end_tag) {
            self.close(field, target);
        }
        if let Some(container) = &mut self.container {
            container.guid = None;
            if !in_end_tag {
                container.text.clear();
            }
        }
        self.finish(target);
    }

    /// Makes an entry of the container, if one is open; returns whether there is room for more.
    fn finish(&mut self, target: &mut Target) -> bool {
        self.field = None;
        let Some(container) = self.container.take() else { return true };
        let direct = Some(container.text).filter(|text| !container.used && !text.trim().is_empty());
        let address = container.address.filter(|address| !address.trim().is_empty()).or(container.guid).or(direct);
        match address {
            Some(address) => target.add(&address, container.date),
            None => true,
        }
    }
}
