//! The HTML of pages, of traps and of the page that stands for missing ones.

use super::text::push_capitalised;
use super::{Host, HostId, Link, Node, PageId, Resource, World};
use crate::character::Character;
use crate::dice::{Dice, purpose};

const END: &str = "</main>\n<footer>All words drawn by chance.</footer>\n</body>\n</html>\n";

impl World {
    /// Appends the HTML of a node at a virtual time; nodes that are not HTML append nothing.
    pub fn render(&self, node: Node, now_s: u64, out: &mut String) {
        match node.what {
            Resource::Page(number) => {
                let page = self.original(PageId { host: node.host, number });
                self.render_page(page, now_s, &self.links(node), out);
            }
            Resource::Session { page, .. } => {
                let page = PageId { host: node.host, number: page };
                self.render_page(page, now_s, &self.links(node), out);
            }
            Resource::Calendar(month) => {
                let title = format!("Calendar {}-{:02}", month / 12, month % 12 + 1);
                self.render_small(node, &title, "<p>Nothing is planned for this month.</p>\n", out);
            }
            Resource::Facet(code) => {
                self.render_small(node, "Catalog", &format!("<p>{} items match.</p>\n", code % 40), out);
            }
            Resource::Missing(_) => self.render_absent(node.host, out),
            _ => {}
        }
    }

    /// Appends the one page that stands for all missing pages of a host.
    pub fn render_absent(&self, host: HostId, out: &mut String) {
        let node = self.node(host, Resource::Missing(0));
        self.render_small(node, "Page not found", "<p>The page you asked for is not here.</p>\n", out);
    }

    fn render_small(&self, node: Node, title: &str, text: &str, out: &mut String) {
        let Some(host) = self.host(node.host) else { return };
        push_head(host, "utf-8", title, "", out);
        self.push_links(node.host, &self.links(node), out);
        ["<main>\n<h1>", title, "</h1>\n", text, END].iter().for_each(|part| out.push_str(part));
    }

    fn render_page(&self, page: PageId, now_s: u64, links: &[Link], out: &mut String) {
        let Some(host) = self.host(page.host) else { return };
        let (version, _) = self.version(page, now_s);
        let near = self.text_character(page) == Some(Character::NearDuplicate);
        // A near duplicate takes the text of the page before it, all but the first paragraph.
        let model = if near { PageId { number: page.number.saturating_sub(1), ..page } } else { page };
        let dice = |p: PageId| Dice::new(self.config.seed ^ version, purpose::TEXT, p.host.0.into(), p.number.into());
        let mut text = dice(model);
        let start = out.len();
        let size = start + self.page_bytes(&mut text);
        let title = self.title(page);
        let directive = if self.is_nofollow(page) && !nofollow_in_header(page) { NOFOLLOW } else { "" };
        push_head(host, self.charset(page), &title, directive, out);
        if page.number == 0 && host.announcement == Some(Character::Feed) {
            out.push_str("<link rel=\"alternate\" type=\"application/xml\" href=\"/feed.xml\">\n");
        }
        self.push_links(page.host, links, out);
        ["<main>\n<h1>", &title, "</h1>\n"].iter().for_each(|part| out.push_str(part));
        if near {
            out.push_str(self.pool.draw(host.language, &mut dice(page)));
        }
        // At least one paragraph: it tells pages apart that have the same title.
        loop {
            out.push_str(self.pool.draw(host.language, &mut text));
            if out.len() + END.len() >= size {
                break;
            }
        }
        out.push_str(END);
    }

    fn push_links(&self, host: HostId, links: &[Link], out: &mut String) {
        out.push_str("<nav><ul>\n");
        for link in links {
            out.push_str("<li><a href=\"");
            self.push_href(host, link, out);
            out.push_str("\">");
            match link.to.what {
                Resource::Page(number) => self.push_title(PageId { host: link.to.host, number }, out),
                _ => out.push_str("More"),
            }
            out.push_str("</a></li>\n");
        }
        out.push_str("</ul></nav>\n");
    }

    /// About how large a page is: most are a few kilobytes, few are near the largest.
    fn page_bytes(&self, dice: &mut Dice) -> usize {
        let (lo, hi) = (f64::from(self.config.min_page_bytes), f64::from(self.config.max_page_bytes));
        // The mean of two numbers leans to the middle of the logarithmic scale: a cheap stand-in for a log-normal.
        let place = (dice.unit() + dice.unit()) / 2.0;
        (lo * (hi / lo).powf(place)) as usize
    }

    /// The title of a page.
    pub fn title(&self, page: PageId) -> String {
        let mut out = String::new();
        self.push_title(page, &mut out);
        out
    }

    fn push_title(&self, page: PageId, out: &mut String) {
        let Some(host) = self.host(page.host) else { return };
        if page.number == 0 {
            push_capitalised(host.registrable().split('.').next().unwrap_or(""), out);
            return;
        }
        let mut dice = Dice::new(self.config.seed, purpose::TEXT, page.host.0.into(), u64::from(page.number) | 1 << 40);
        for n in 0..dice.range(2, 5) {
            let word = dice.pick(host.language.words());
            if n > 0 {
                out.push_str(host.language.space());
                out.push_str(word);
            } else {
                push_capitalised(word, out);
            }
        }
    }
}

const NOFOLLOW: &str = "<meta name=\"robots\" content=\"nofollow\">\n";

/// Some pages say it in a header instead.
pub(crate) fn nofollow_in_header(page: PageId) -> bool {
    (page.number / 2).is_multiple_of(2)
}

fn push_head(host: &Host, charset: &str, title: &str, extra: &str, out: &mut String) {
    let parts: [&str; 10] = [
        "<!DOCTYPE html>\n<html lang=\"",
        host.language.tag(),
        "\">\n<head>\n<meta charset=\"",
        // A page in UTF-16 cannot name it in a way a reader of bytes would find; its mark says it.
        if charset == "utf-16le" { "utf-8" } else { charset },
        "\">\n<title>",
        title,
        "</title>\n",
        extra,
        "</head>\n<body>\n<header><b>",
        &host.name,
    ];
    parts.iter().for_each(|part| out.push_str(part));
    out.push_str("</b></header>\n");
}
