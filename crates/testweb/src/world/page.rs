//! Pages of a host: their paths, and where they link.

use super::{HOST_FANOUT, HostId, PageId, World};
use crate::dice::{Dice, purpose};
use crate::words;

/// How the paths of a host look; each style carries the page number, so that no table is needed to find a page again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `/stories/old-stone-bridge-17`
    Slug,
    /// `/stories/old-stone-bridge-17.html`
    Html,
    /// `/stories/17/old-stone-bridge`
    Number,
    /// `/stories/view.php?id=17`
    Query,
    /// `/2019/04/old-stone-bridge-17`
    Dated,
}

impl Style {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        match dice.below(10) {
            0..=3 => Self::Slug,
            4..=5 => Self::Html,
            6..=7 => Self::Number,
            8 => Self::Query,
            _ => Self::Dated,
        }
    }
}

impl World {
    /// Appends the path (and query) of a page.
    pub(super) fn push_path(&self, page: PageId, out: &mut String) {
        use std::fmt::Write;
        let Some(host) = self.host(page.host) else { return };
        if page.number == 0 {
            out.push('/');
            return;
        }
        let number = page.number;
        let mut dice = Dice::new(self.config.seed, purpose::SLUG, page.host.0.into(), number.into());
        let closed = self.is_closed(page);
        // Writing to a String cannot fail.
        let _ = match (host.style, closed) {
            (Style::Dated, false) => write!(out, "/{}/{:02}/", 2005 + dice.below(20), 1 + dice.below(12)),
            _ => write!(out, "/{}/", self.section(page)),
        };
        match host.style {
            Style::Query => {
                let _ = write!(out, "view.php?id={number}");
            }
            Style::Number => {
                let _ = write!(out, "{number}/");
                push_slug(&mut dice, out);
            }
            Style::Slug | Style::Html | Style::Dated => {
                push_slug(&mut dice, out);
                let _ = write!(out, "-{number}{}", if host.style == Style::Html { ".html" } else { "" });
            }
        }
    }

    /// The page at a request target, if there is one.
    pub(super) fn page_at(&self, id: HostId, target: &str) -> Option<PageId> {
        let host = self.host(id)?;
        if target == "/" {
            return Some(PageId { host: id, number: 0 });
        }
        let digits = match host.style {
            Style::Slug | Style::Dated => target.rsplit('-').next()?,
            Style::Html => target.strip_suffix(".html")?.rsplit('-').next()?,
            Style::Number => target.split('/').nth(2)?,
            Style::Query => target.rsplit('=').next()?,
        };
        let number = digits.parse().ok().filter(|&n| n > 0 && n < host.pages)?;
        let page = PageId { host: id, number };
        let mut path = String::with_capacity(64);
        self.push_path(page, &mut path);
        (path == target).then_some(page)
    }

    /// The section a page lies in; a closed page lies in the section that robots.txt closes.
    fn section(&self, page: PageId) -> &'static str {
        if self.is_closed(page) {
            return self.closed_section(page.host);
        }
        // Each host uses a handful of sections of its own.
        let own = Dice::new(self.config.seed, purpose::SECTION, page.host.0.into(), 0).next();
        let mut dice = Dice::new(self.config.seed, purpose::SECTION, page.host.0.into(), page.number.into());
        Dice::new(own, purpose::SECTION, dice.below(5), 1).pick(words::SECTIONS)
    }

    /// The name of the section a host keeps to itself.
    pub(super) fn closed_section(&self, host: HostId) -> &'static str {
        Dice::new(self.config.seed, purpose::ROBOTS, host.0.into(), 1).pick(words::PRIVATE)
    }

    /// Whether robots.txt closes this page. Only leaves of the page tree are closed, so that no open page hides behind one.
    pub(super) fn is_closed(&self, page: PageId) -> bool {
        let Some(host) = self.host(page.host) else { return false };
        host.robots.has_closed_section()
            && u64::from(page.number) * u64::from(host.branching) + 1 >= u64::from(host.pages)
            && page.number > 0
            && Dice::new(self.config.seed, purpose::ROBOTS, page.host.0.into(), u64::from(page.number) + 2).percent(25)
    }

    /// Depth of a page below its host's home page along the page tree; the links drawn by chance may be shorter.
    pub fn tree_depth(&self, page: PageId) -> u32 {
        let branching = self.host(page.host).map_or(1, |h| h.branching.max(1));
        let (mut number, mut depth) = (page.number, 0);
        while number > 0 {
            number = (number - 1) / branching;
            depth += 1;
        }
        depth
    }

    /// The pages a page links, in the order of its HTML, without repeats.
    pub fn links(&self, page: PageId) -> Vec<PageId> {
        let Some(host) = self.host(page.host).filter(|h| page.number < h.pages) else { return Vec::new() };
        let mut out = Vec::with_capacity(24);
        let on_host = |number| PageId { host: page.host, number };
        out.push(on_host(0));
        if page.number > 0 {
            out.push(on_host((page.number - 1) / host.branching));
        }
        let first = u64::from(page.number) * u64::from(host.branching) + 1;
        let children = first..(first + u64::from(host.branching)).min(host.pages.into());
        out.extend(children.filter_map(|n| u32::try_from(n).ok()).map(on_host));
        let mut dice = Dice::new(self.config.seed, purpose::LINKS, page.host.0.into(), page.number.into());
        for _ in 0..dice.below(4) {
            out.push(on_host(u32::try_from(dice.below(host.pages.into())).unwrap_or(0)));
        }
        for _ in 0..dice.below(4) {
            out.extend(self.popular_page(&mut dice));
        }
        if page.number == 0 {
            let first = u64::from(self.config.seeds) + u64::from(page.host.0) * u64::from(HOST_FANOUT);
            let hosts = first..(first + u64::from(HOST_FANOUT)).min(self.hosts.len() as u64);
            out.extend(hosts.filter_map(|n| u32::try_from(n).ok()).map(|n| PageId { host: HostId(n), number: 0 }));
        }
        let mut seen = std::collections::HashSet::with_capacity(out.len());
        out.retain(|link| seen.insert(*link));
        out
    }

    /// A page of a host drawn by popularity, mostly its home page.
    fn popular_page(&self, dice: &mut Dice) -> Option<PageId> {
        // Rank = hosts^u is Zipf with exponent 1: the first ten hosts draw as many links as the next ninety.
        let rank = (self.hosts.len() as f64).powf(dice.unit()) - 1.0;
        let host = HostId((rank as u32).min(u32::try_from(self.hosts.len()).ok()?.saturating_sub(1)));
        let pages = self.host(host)?.pages;
        let number = if dice.percent(60) { 0 } else { u32::try_from(dice.below(pages.into())).ok()? };
        Some(PageId { host, number })
    }
}

fn push_slug(dice: &mut Dice, out: &mut String) {
    for n in 0..dice.range(2, 4) {
        if n > 0 {
            out.push('-');
        }
        out.push_str(dice.pick(words::ENGLISH));
    }
}
