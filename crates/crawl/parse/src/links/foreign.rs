//! Whether the tokenizer is inside SVG or MathML, where `<![CDATA[` counts and no element holds raw text.
//!
//! A tree builder knows this from its stack of open elements. Here only the elements that switch between HTML and
//! foreign content are kept, at most [`DEPTH`] of them: deeper nesting stays in the state it is in.

use super::names::tag;

const DEPTH: usize = 16;

/// The open `svg`, `math` and integration points (elements inside those two that hold HTML again).
#[derive(Debug, Default)]
pub(super) struct Foreign {
    open: [u128; DEPTH],
    depth: usize,
    /// Open templates of SVG or MathML: elements like any others, whose contents are part of the page.
    templates: usize,
}

impl Foreign {
    fn top(&self) -> Option<u128> {
        self.depth.checked_sub(1).and_then(|top| self.open.get(top)).copied()
    }

    /// Whether any such element is open.
    pub(super) fn any(&self) -> bool {
        self.depth > 0
    }

    /// Whether the current content is foreign.
    pub(super) fn inside(&self) -> bool {
        matches!(self.top(), Some(tag::SVG | tag::MATH))
    }

    /// Notes a start tag; returns whether its element is foreign itself.
    pub(super) fn start(&mut self, name: u128, self_closing: bool) -> bool {
        match (name, self.top()) {
            (tag::SVG | tag::MATH, _) => {}
            (_, None) => return false,
            (tag::FOREIGN_OBJECT | tag::DESC | tag::TITLE, Some(tag::SVG))
            | (tag::MI | tag::MO | tag::MN | tag::MS | tag::MTEXT | tag::ANNOTATION_XML, Some(tag::MATH)) => {}
            (_, Some(tag::SVG | tag::MATH)) => {
                if tag::BREAKOUT.contains(&name) {
                    self.leave();
                    return false;
                }
                self.templates += usize::from(name == tag::TEMPLATE && !self_closing);
                return true;
            }
            _ => return false,
        }
        if !self_closing && let Some(slot) = self.open.get_mut(self.depth) {
            *slot = name;
            self.depth += 1;
        }
        true
    }

    /// Goes back to the HTML around.
    fn leave(&mut self) {
        while self.inside() {
            self.depth -= 1;
        }
        self.templates = 0;
    }

    /// Notes `</template>`; returns whether it ends a template of HTML, and with it what is open inside.
    pub(super) fn end_template(&mut self) -> bool {
        if self.inside() && self.templates > 0 {
            self.templates -= 1;
            return false;
        }
        self.leave();
        true
    }

    /// Notes an end tag: it closes the innermost open element of its name, if that is one of those kept.
    pub(super) fn end(&mut self, name: u128) {
        if self.depth > 0
            && let Some(at) = self.open.iter().take(self.depth).rposition(|open| *open == name)
        {
            self.depth = at;
            if !self.inside() {
                self.templates = 0;
            }
        }
    }
}
