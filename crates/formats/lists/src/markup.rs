//! Lists in markup: bookmarks as browsers export them, sitemaps and feeds.
//!
//! These are documents of people and of single sites, so they are read whole, up to a limit.

use crate::fields::{Roles, Value};
use crate::file::text_of;
use crate::sitemap::{decoded, elements, is_relative};
use crate::source::failed;
use crate::xml::{Event, Reader};
use crate::{BadItem, Options};
use std::io::{self, BufRead, Read};
use trawl_model::{Advice, DoorError, Items, Place};
use trawl_url::entities;

/// Bytes of a document at most. Sitemaps may have 50 MiB by their own rules; bookmarks carry icons.
const MAX_DOCUMENT: u64 = 64 << 20;

/// Reads a sitemap, an index of sitemaps, or a feed: a record for each entry, with its date.
pub(crate) fn read_sitemap(
    uri: &str,
    options: &Options,
    stream: impl BufRead,
    each: &mut Items<'_>,
) -> Result<(), DoorError> {
    let document = whole(uri, stream)?;
    let (text, encoding) = decoded(&document);
    let roles = Roles::of(options, false, ["ts"].into_iter());
    let mut ended = Ok(());
    let seen = elements::read(&text, encoding, None, options.now, &mut |found| {
        let behind = text_behind(&text, found.at);
        let item = match &found.address {
            Some(address) if is_relative(address) => {
                let message = "expected an absolute address: the document does not say what this one is relative to";
                Err(BadItem::new("relative_url", message, behind))
            }
            Some(address) => {
                let mut fields = roles.fields();
                fields.set_url(address.trim());
                if let (Some(date), Some(role)) = (found.date, roles.each.first()) {
                    fields.put(*role, "ts", Value::Text(&date.to_string()));
                }
                fields.finish().ok_or_else(|| no_address(behind))
            }
            None => Err(no_address(behind)),
        };
        ended = each(found.at, item.map_err(|bad| bad.at(Place::new(uri, found.at, 0))));
        ended.is_ok()
    });
    ended?;
    // Other documents end in .xml too: this one holds no URLs.
    let seen = seen.map_err(|e| BadItem::new("no_url", e.to_string(), b"").ends(Place::new(uri, 0, 0)))?;
    if seen.damaged {
        let error = "expected the end of the document, found the end of the file";
        return Err(failed(uri, text.len() as u64, io::Error::new(io::ErrorKind::UnexpectedEof, error)));
    }
    // The entries that could be read were; one whose tags are damaged may not be among them.
    seen.unbalanced.map_or(Ok(()), |at| {
        let message =
            "expected the end of the element begun last, or that of the file: entries may be missing from here on";
        each(at, Err(BadItem::new("damage", message, text_behind(&text, at)).at(Place::new(uri, at, 0))))
    })
}

fn no_address(text: &[u8]) -> BadItem {
    BadItem::new("no_url", "expected an entry with an address, found none", text)
}

/// Reads bookmarks: a record for each link, with the time it was added, its title and its tags.
pub(crate) fn read_bookmarks(
    uri: &str,
    options: &Options,
    stream: impl BufRead,
    each: &mut Items<'_>,
) -> Result<(), DoorError> {
    let document = whole(uri, stream)?;
    let roles = Roles::of(options, false, ["url", "ts", "title", "tags"].into_iter());
    let mut reader = Reader::new(&document);
    // The link being read: where it begins, its attributes, its title so far.
    let mut link: Option<(u64, [Option<String>; 3], String)> = None;
    loop {
        let before = reader.left();
        let event = reader.next();
        let at = (document.len() - reader.left()) as u64;
        // Quotes that do not end where they should take up the links behind them.
        if let Some(Event::Start(_)) = event {
            let tag = document.get(document.len() - before..document.len() - reader.left()).unwrap_or_default();
            for swallowed in links_in(tag.get(1..).unwrap_or_default()) {
                let at = (document.len() - before + 1 + swallowed) as u64;
                let bad = BadItem::new(
                    "damage",
                    "expected the end of a tag, found a link inside it",
                    text_behind(&document, at),
                );
                each(at, Err(bad.at(Place::new(uri, at, 0))))?;
            }
        }
        match (&event, &mut link) {
            (Some(Event::Text(text) | Event::Literal(text)), Some((_, _, title))) => {
                title.push_str(&entities::decode_distinct(&text_of(text)));
                continue;
            }
            (Some(Event::Start(tag)), None) if !tag.name.eq_ignore_ascii_case(b"a") => continue,
            (Some(Event::Text(_) | Event::Literal(_) | Event::End(_)), None) => continue,
            (None, None) => break,
            // Whatever else comes ends the title.
            _ => {}
        }
        if let Some((at, [url, ts, tags], title)) = link.take() {
            let mut fields = roles.fields();
            let values = [("url", url), ("ts", ts), ("title", Some(title)), ("tags", tags)];
            for (role, (name, value)) in roles.each.iter().zip(values) {
                if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
                    fields.put(*role, name, Value::Text(value.trim()));
                }
            }
            let bad =
                || BadItem::new("no_url", "expected a link with an address, found none", text_behind(&document, at));
            each(at, fields.finish().ok_or_else(|| bad().at(Place::new(uri, at, 0))))?;
        }
        if let Some(Event::Start(tag)) = event
            && tag.name.eq_ignore_ascii_case(b"a")
        {
            let value = |name| tag.attribute(name).map(|value| entities::decode_distinct(&text_of(value)).into_owned());
            link = Some((at, ["href", "add_date", "tags"].map(value), String::new()));
        }
    }
    if reader.damaged() {
        let error = "expected the end of a tag, found the end of the file";
        return Err(failed(uri, document.len() as u64, io::Error::new(io::ErrorKind::UnexpectedEof, error)));
    }
    Ok(())
}

/// Where links begin in a text.
fn links_in(text: &[u8]) -> impl Iterator<Item = usize> {
    let begins = |at: &usize| {
        let next = |n: usize| text.get(at + n).copied();
        next(1).is_some_and(|b| b.eq_ignore_ascii_case(&b'a')) && next(2).is_some_and(|b| b.is_ascii_whitespace())
    };
    memchr::memchr_iter(b'<', text).filter(begins)
}

/// The text behind a tag that ends at `at`, for a message.
fn text_behind(document: &[u8], at: u64) -> &[u8] {
    let behind = usize::try_from(at).ok().and_then(|at| document.get(at..)).unwrap_or_default();
    // Not to its end: there may be no line end in the whole document, and a link in every tenth byte.
    let behind = behind.get(..BadItem::MAX_TEXT).unwrap_or(behind);
    behind.split(|b| *b == b'\n').next().unwrap_or_default()
}

/// The whole of a document.
fn whole(uri: &str, stream: impl BufRead) -> Result<Vec<u8>, DoorError> {
    let mut document = Vec::new();
    stream.take(MAX_DOCUMENT + 1).read_to_end(&mut document).map_err(|e| failed(uri, 0, e))?;
    if document.len() as u64 > MAX_DOCUMENT {
        let error = format!("expected a document of at most {MAX_DOCUMENT} bytes, found more");
        return Err(DoorError::new(Advice::Stop, error).at(Place::new(uri, MAX_DOCUMENT, 0)));
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Found;

    fn items(read: impl FnOnce(&mut Items<'_>) -> Result<(), DoorError>) -> Result<Vec<Found>, String> {
        let mut out = Vec::new();
        read(&mut |at, item| {
            out.push((at, item.map_err(|e| e.to_string())));
            Ok(())
        })
        .map_err(|e| e.to_string())?;
        Ok(out)
    }

    #[test]
    fn bookmarks() {
        let text = "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<META HTTP-EQUIV=\"Content-Type\" CONTENT=\"text/html\">\n\
            <TITLE>Bookmarks</TITLE>\n<H1>Bookmarks</H1>\n<DL><p>\n<DT><H3 ADD_DATE=\"1\">Folder</H3>\n<DL><p>\n\
            <DT><A HREF=\"http://a.com/?x=1&amp;y=2\" ADD_DATE=\"1700000000\" ICON=\"data:x\">A &amp; B</A>\n<DD>about it\n\
            <DT><a href='http://b.com/' tags='x,y'></a><DT><A>none</A>\n</DL><p>\n</DL><p>\n";
        let found = items(|each| read_bookmarks("f", &Options::default(), text.as_bytes(), each)).unwrap();
        let record = found[0].1.as_ref().unwrap();
        assert_eq!((record.url.as_str(), record.ts.unwrap().0), ("http://a.com/?x=1&y=2", 1_700_000_000_000));
        assert_eq!(record.extras.as_deref(), Some(r#"{"title":"A & B"}"#));
        let record = found[1].1.as_ref().unwrap();
        assert_eq!((record.url.as_str(), record.extras.as_deref()), ("http://b.com/", Some(r#"{"tags":"x,y"}"#)));
        assert!(found[2].1.as_ref().unwrap_err().contains("expected a link with an address"));
        assert_eq!(found.len(), 3);
        let cut = text.find("ICON").unwrap();
        assert!(items(|each| read_bookmarks("f", &Options::default(), &text.as_bytes()[..cut], each)).is_err());
    }

    #[test]
    fn sitemaps_and_feeds() {
        let sitemap = "<urlset><url><loc> http://a.com/?a&amp;b </loc><lastmod>2026-01-02</lastmod></url><url/>\
            <url><loc>/relative</loc></url></urlset>";
        let read = |text: &str| items(|each| read_sitemap("f", &Options::default(), text.as_bytes(), each));
        let found = read(sitemap).unwrap();
        let record = found[0].1.as_ref().unwrap();
        assert_eq!(
            (record.url.as_str(), record.ts.unwrap().to_string().as_str()),
            ("http://a.com/?a&b", "2026-01-02T00:00:00.000Z")
        );
        assert!(found[1].1.is_err());
        assert!(found[2].1.as_ref().unwrap_err().contains("expected an absolute address"));
        assert_eq!(found.len(), 3);
        let index = "<sitemapindex><sitemap><loc>http://a.com/1.xml</loc></sitemap></sitemapindex>";
        assert_eq!(read(index).unwrap()[0].1.as_ref().unwrap().url, "http://a.com/1.xml");
        let rss = "<rss><channel><link>http://a.com/</link><item><link>http://a.com/1</link>\
            <pubDate>Sun, 06 Nov 1994 08:49:37 GMT</pubDate></item>\
            <item><guid isPermaLink=\"false\">http://a.com/not</guid></item><item><guid>http://a.com/2</guid></item></channel></rss>";
        let found = read(rss).unwrap();
        let urls: Vec<_> = found.iter().map(|(_, item)| item.as_ref().map(|r| r.url.as_str()).ok()).collect();
        assert_eq!(urls, [Some("http://a.com/1"), None, Some("http://a.com/2")]);
        let seed = items(|each| read_sitemap("f", &Options::crawl(), sitemap.as_bytes(), each)).unwrap();
        assert_eq!(seed[0].1.as_ref().unwrap().extras.as_deref(), Some(r#"{"ts":"2026-01-02T00:00:00.000Z"}"#));
        let urls = |text: &[u8]| {
            let found = items(|each| read_sitemap("f", &Options::default(), text, each)).unwrap();
            found.into_iter().map(|(_, item)| item.map(|record| record.url)).collect::<Vec<_>>()
        };
        let ok = |urls: &[&str]| urls.iter().map(|url| Ok((*url).to_owned())).collect::<Vec<Result<_, String>>>();
        // What is not a character stays what it was.
        for (open, close) in
            [("<urlset><url><loc>", "</loc></url></urlset>"), ("<rss><item><link>", "</link></item></rss>")]
        {
            for (part, expected) in [
                (&b"\xe4"[..], "%E4"),
                (b"\xe5", "%E5"),
                (b"&#xD800;", "%ED%A0%80"),
                (b"&#55297;", "%ED%A0%81"),
                (b"&#0;", "%26%230"),
            ] {
                let text = [open.as_bytes(), b"http://a.com/", part, close.as_bytes()].concat();
                assert_eq!(urls(&text), ok(&[&format!("http://a.com/{expected}")]));
            }
            let utf16 = |half: u16| {
                let text = format!("\u{feff}{open}http://a.com/?{close}");
                let units = text.encode_utf16().map(|unit| if unit == u16::from(b'?') { half } else { unit });
                urls(&units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
            };
            assert_eq!(utf16(0xD800), ok(&["http://a.com/%ED%A0%80"]));
            assert_eq!(utf16(0xDC01), ok(&["http://a.com/%ED%B0%81"]));
        }
        // Addresses are relative to what is nearest.
        let rss = "<rss><channel><atom:link href='http://no.com/'/><link>http://b.com/x/</link>\
            <item><link>posts/1.html</link></item><item><link>http://c.com/</link></item><item><guid>//d.com/</guid></item></channel></rss>";
        assert_eq!(urls(rss.as_bytes()), ok(&["http://b.com/x/posts/1.html", "http://c.com/", "http://d.com/"]));
        let atom = "<feed xml:base='http://b.com/a/'><entry><link href='1'/></entry><entry xml:base='deep/'><link href='2'/></entry>\
            <entry><link xml:base='http://e.com/' href='/3'/></entry><entry><link base='http://no.com/' href='4'/></entry></feed>";
        let expected = ["http://b.com/a/1", "http://b.com/a/deep/2", "http://e.com/3", "http://b.com/a/4"];
        assert_eq!(urls(atom.as_bytes()), ok(&expected));
        let nothing = urls(b"<rss><item><link>posts/1.html</link></item><item><link>http://a.com/</link></item></rss>");
        assert!(nothing[0].is_err() && nothing[1].is_ok(), "{nothing:?}");
        // Files that were joined by `cat`.
        let rss = "<rss><channel><link>http://a.com/</link><item><link>1</link></item></channel></rss>";
        let (other, sitemap) = (rss.replace("a.com", "f.com"), "<urlset><url><loc>http://g.com/</loc></url></urlset>");
        let feeds = [rss, atom, other.as_str(), "\u{feff}", sitemap];
        let expected = [&["http://a.com/1"][..], &expected, &["http://f.com/1", "http://g.com/"]].concat();
        assert_eq!(urls(feeds.join("\n").as_bytes()), ok(&expected));
        for behind in ["http://b.com/\n", "<opml><outline xmlUrl='x'/></opml>", "<![CDATA[http://b.com/]]>"] {
            let found = urls(format!("Warning: x\n{rss}\n{behind}").as_bytes());
            assert_eq!(found[..1], ok(&["http://a.com/1"]), "{behind}");
            assert!(found[1].as_ref().is_err_and(|e| e.contains("may be missing")) && found.len() == 2, "{found:?}");
        }
        for bad in ["<html>", "x", "", "<urlset><url><loc>http://a.com/</loc></url><url><loc>htt"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
