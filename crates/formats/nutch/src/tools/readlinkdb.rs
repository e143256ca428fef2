//! `readlinkdb -dump` and `-url`.

use super::text;
use crate::types::{Inlink, Inlinks};
use std::io::{self, Write};
use trawl_hadoop::{Text, java};

/// Prints pages with the links to them, in the order of the reference: that of the hash set which it reads links into. It
/// uses one set for a whole part, and a table that has grown for one page stays large for those behind it.
#[derive(Debug)]
pub struct LinkPrinter {
    capacity: usize,
}

impl Default for LinkPrinter {
    fn default() -> Self {
        LinkPrinter { capacity: 1 }
    }
}

impl LinkPrinter {
    fn ordered<'a, 'b>(&mut self, links: &'a Inlinks<'b>) -> impl Iterator<Item = &'a Inlink<'b>> {
        let hash = |l: &Inlink<'_>| java::hash_string(&l.from_url.to_str()) ^ java::hash_string(&l.anchor.to_str());
        let hashes: Vec<_> = links.0.iter().map(hash).collect();
        self.capacity = java::hash_map_capacity(hashes.len(), self.capacity);
        java::hash_map_order(&hashes, self.capacity).into_iter().filter_map(|n| links.0.get(n))
    }

    /// `-dump`: a page and the links to it.
    pub fn write(&mut self, url: &Text<'_>, links: &Inlinks<'_>, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{url}\tInlinks:")?;
        for link in self.ordered(links) {
            writeln!(out, " {}", text::inlink(link))?;
        }
        writeln!(out)
    }
}

/// `-url`: the links to one page, or that there are none.
pub fn write_inlinks_of(links: Option<&Inlinks<'_>>, out: &mut dyn Write) -> io::Result<()> {
    match links {
        None => writeln!(out, " - no link information.\n"),
        Some(links) => {
            for link in LinkPrinter::default().ordered(links) {
                writeln!(out, "{}", text::inlink(link))?;
            }
            writeln!(out, "\n")
        }
    }
}
