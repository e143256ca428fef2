//! The HTML of a page.

use super::text::push_capitalised;
use super::{PageId, World};
use crate::dice::{Dice, purpose};

impl World {
    /// Appends the HTML of a page.
    pub fn render(&self, page: PageId, out: &mut String) {
        let Some(host) = self.host(page.host) else { return };
        let mut dice = Dice::new(self.config.seed, purpose::TEXT, page.host.0.into(), page.number.into());
        let start = out.len();
        let size = start + self.page_bytes(&mut dice);
        let title = self.title(page);
        let parts: [&str; 8] = [
            "<!DOCTYPE html>\n<html lang=\"",
            host.language.tag(),
            "\">\n<head>\n<meta charset=\"utf-8\">\n<title>",
            &title,
            "</title>\n<meta name=\"viewport\" content=\"width=device-width\">\n</head>\n<body>\n<header><b>",
            &host.name,
            "</b></header>\n<nav><ul>\n",
            "",
        ];
        parts.iter().for_each(|part| out.push_str(part));
        for link in self.links(page) {
            out.push_str("<li><a href=\"");
            if link.host != page.host {
                out.push_str("http://");
                out.push_str(self.host(link.host).map_or("", |h| &h.name));
            }
            self.push_path(link, out);
            out.push_str("\">");
            self.push_title(link, out);
            out.push_str("</a></li>\n");
        }
        for part in ["</ul></nav>\n<main>\n<h1>", &title, "</h1>\n"] {
            out.push_str(part);
        }
        const END: &str = "</main>\n<footer>All words drawn by chance.</footer>\n</body>\n</html>\n";
        // At least one paragraph: it tells pages apart that have the same title.
        loop {
            out.push_str(self.pool.draw(host.language, &mut dice));
            if out.len() + END.len() >= size {
                break;
            }
        }
        out.push_str(END);
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
            push_capitalised(host.domain.split('.').next().unwrap_or(""), out);
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
