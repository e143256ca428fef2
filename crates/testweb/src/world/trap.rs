//! Spaces without end: calendars, sessions and filters. A crawler must notice them and stop.

use std::fmt::{self, Write};

use super::{HostId, Node, PageId, Resource, World};
use crate::character::Character;
use crate::dice::{Dice, purpose};

/// Years the calendar knows.
const YEARS: std::ops::RangeInclusive<u32> = 1900..=9999;
/// The filters: a name and its values. A combination is a number with one digit (0 = not set) a filter.
const FACETS: [(&str, [&str; 6]); 5] = [
    ("color", ["red", "green", "blue", "black", "white", "gold"]),
    ("size", ["xs", "s", "m", "l", "xl", "xxl"]),
    ("brand", ["acme", "birch", "cobalt", "delta", "ember", "flint"]),
    ("price", ["0-10", "10-20", "20-50", "50-100", "100-500", "500-"]),
    ("sort", ["name", "newest", "cheapest", "rating", "popular", "random"]),
];
const DIGIT: u32 = 7;

/// What a target might name among the traps of a host.
pub(super) fn guess(world: &World, id: HostId, target: &str) -> Option<Resource> {
    let host = world.host(id)?;
    match host.trap? {
        Character::CalendarTrap => {
            let (year, month) = target.strip_prefix("/calendar/")?.split_once('/')?;
            let (year, month): (u32, u32) = (year.parse().ok()?, month.parse().ok()?);
            (YEARS.contains(&year) && (1..=12).contains(&month)).then(|| Resource::Calendar(year * 12 + month - 1))
        }
        Character::FacetTrap => {
            let query = target.strip_prefix("/catalog/filter")?;
            let mut code = 0;
            for pair in query.strip_prefix('?').unwrap_or("").split('&').filter(|p| !p.is_empty()) {
                let (name, value) = pair.split_once('=')?;
                let place = FACETS.iter().position(|&(n, _)| n == name)?;
                let digit = FACETS.get(place)?.1.iter().position(|&v| v == value)? + 1;
                code += u32::try_from(digit).ok()? * DIGIT.pow(u32::try_from(place).ok()?);
            }
            Some(Resource::Facet(code))
        }
        Character::SessionTrap => {
            let at = target.rfind("sid=")?;
            let sid = target.get(at + 4..)?.strip_prefix("s1x")?;
            let path = target.get(..at)?.strip_suffix(['?', '&'])?;
            let page = if path == "/" { 0 } else { world.guess_page(host, path)? };
            Some(Resource::Session { page, sid: u64::from_str_radix(sid, 16).ok()? })
        }
        _ => None,
    }
}

/// Appends the target of a node of a trap.
pub(super) fn push_target(world: &World, node: Node, out: &mut String) -> fmt::Result {
    match node.what {
        Resource::Calendar(month) => write!(out, "/calendar/{}/{:02}", month / 12, month % 12 + 1),
        Resource::Facet(code) => {
            out.push_str("/catalog/filter");
            let mut rest = code;
            let mut mark = '?';
            for (name, values) in FACETS {
                if let Some(value) = (rest % DIGIT).checked_sub(1).and_then(|d| values.get(super::index(d))) {
                    write!(out, "{mark}{name}={value}")?;
                    mark = '&';
                }
                rest /= DIGIT;
            }
            Ok(())
        }
        Resource::Session { page, sid } => {
            let from = out.len();
            world.push_path(PageId { host: node.host, number: page }, out);
            let mark = if out.get(from..).is_some_and(|path| path.contains('?')) { '&' } else { '?' };
            write!(out, "{mark}sid=s1x{sid:016x}")
        }
        _ => Ok(()),
    }
}

/// Appends the links by which a page of a host with a trap leads into it.
pub(super) fn entrances(world: &World, page: PageId, out: &mut Vec<Node>) {
    let Some(trap) = world.host(page.host).and_then(|h| h.trap) else { return };
    let what = match trap {
        Character::CalendarTrap if page.number == 0 => Resource::Calendar(month_of(world.config.epoch_s)),
        Character::FacetTrap if page.number == 0 => Resource::Facet(0),
        Character::SessionTrap => {
            let mut dice = Dice::new(world.config.seed, purpose::TRAP, page.host.0.into(), page.number.into());
            Resource::Session { page: page.number, sid: dice.next() }
        }
        _ => return,
    };
    out.push(world.node(page.host, what));
}

/// Where a page of a trap leads: back home, and deeper in.
pub(super) fn links(world: &World, node: Node) -> Vec<Node> {
    let mut out = vec![world.node(node.host, Resource::Page(0))];
    let mut push = |what| out.push(Node { what, ..node });
    match node.what {
        Resource::Calendar(month) => {
            let neighbours = [month + 1, month + 2, month + 12, month.saturating_sub(1)];
            neighbours.into_iter().filter(|m| YEARS.contains(&(m / 12))).for_each(|m| push(Resource::Calendar(m)));
        }
        Resource::Facet(code) => {
            let mut dice = Dice::new(world.config.seed, purpose::TRAP, node.host.0.into(), code.into());
            for _ in 0..8 {
                let place = DIGIT.pow(u32::try_from(dice.below(FACETS.len() as u64)).unwrap_or(0));
                let digit = u32::try_from(dice.below(DIGIT.into())).unwrap_or(0);
                push(Resource::Facet(code - code / place % DIGIT * place + digit * place));
            }
        }
        Resource::Session { sid, .. } => {
            let pages = world.host(node.host).map_or(1, |h| h.pages);
            let mut dice = Dice::new(sid, purpose::TRAP, node.host.0.into(), 0);
            for _ in 0..3 {
                let page = u32::try_from(dice.below(pages.into())).unwrap_or(0);
                push(Resource::Session { page, sid: dice.next() });
            }
        }
        _ => {}
    }
    out
}

/// Months since year 0 of a Unix time.
fn month_of(unix_s: u64) -> u32 {
    let (year, month, _) = crate::date::civil(unix_s / 86_400);
    u32::try_from(year).unwrap_or(0) * 12 + month - 1
}
