//! The bytes of robots.txt files, plain and odd.

use super::{RobotsReply, World};
use crate::character::Character;
use crate::dice::{Dice, purpose};
use crate::world::HostId;

/// A huge file has this many bytes: well past the 500 KiB that every crawler must read.
const HUGE_BYTES: usize = 700 << 10;

pub(super) fn reply(world: &World, id: HostId) -> RobotsReply {
    let text = world.robots(id).unwrap_or_default().render();
    let (content_type, body) = match world.host(id).and_then(|h| h.robots) {
        Some(Character::RobotsHtml) => ("text/html; charset=utf-8", HTML.as_bytes().to_vec()),
        Some(Character::RobotsBom) => ("text/plain", [b"\xef\xbb\xbf", text.replace('\n', "\r\n").as_bytes()].concat()),
        Some(Character::RobotsHuge) => ("text/plain", huge(text).into_bytes()),
        // The rules lie in the second half: half a file allows everything.
        Some(Character::RobotsCut | Character::RobotsStall) => {
            ("text/plain", format!("{}{text}", "# patience\n".repeat(text.len().div_ceil(8))).into_bytes())
        }
        Some(Character::RobotsOdd) => {
            let dice = Dice::new(world.config.seed, purpose::ROBOTS, id.0.into(), 1 << 41);
            ("text/plain; charset=utf-8", odd(&text, dice).into_bytes())
        }
        _ => ("text/plain; charset=utf-8", text.into_bytes()),
    };
    RobotsReply { content_type, body }
}

const HTML: &str = "<!DOCTYPE html>\n<html><head><title>Welcome</title></head>\n<body><p>Disallow nothing, says this page.</p></body></html>\n";

/// The rules first, then filler, then a rule that closes nothing whether it is read or not.
fn huge(mut text: String) -> String {
    let mut line = 0u32;
    while text.len() < HUGE_BYTES {
        line += 1;
        text.push_str(&format!("# filler {line:08}: a crawler may stop reading after 500 kibibytes, and not before\n"));
    }
    text.push_str("User-agent: *\nDisallow: /never/\n");
    text
}

/// The same rules, written as carelessly as the standard tolerates.
fn odd(text: &str, mut dice: Dice) -> String {
    // Rules before the first group belong to no agent.
    let mut out = String::from("# written by hand\r\nDisallow: /\r\n\r\n");
    for line in text.lines() {
        let Some((name, value)) = line.split_once(": ").or_else(|| line.strip_suffix(':').map(|name| (name, "")))
        else {
            out.push_str("\r\n");
            continue;
        };
        let name = match dice.below(3) {
            0 => name.to_ascii_uppercase(),
            1 => name.to_ascii_lowercase(),
            _ => name.to_owned(),
        };
        let space = dice.pick(&["", " ", "  ", "\t"]);
        let comment = dice.pick(&["", "", " # why not", "\t#"]);
        let end = dice.pick(&["\n", "\r\n", "\r"]);
        out.push_str(&format!("{space}{name}{}:{space}{value}{comment}{end}", dice.pick(&["", " "])));
        if dice.percent(30) {
            out.push_str(dice.pick(&[
                "Host: example.org\n",
                "Request-rate: 1/5\n",
                "not a line of robots.txt\n",
                "\n",
                "# note\n",
            ]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::profiles::Profile;
    use crate::world::{Group, Robots, Rule};

    /// A small reading of robots.txt: lines end at CR or LF, comments go, names are case-insensitive, and a group is
    /// what follows its agents.
    fn read(bytes: &[u8]) -> Robots {
        let text = std::str::from_utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).unwrap();
        let mut robots = Robots::default();
        let mut in_rules = true;
        for line in text.split(['\r', '\n']) {
            let line = line.split('#').next().unwrap();
            let Some((name, value)) = line.split_once(':') else { continue };
            let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
            match (name.as_str(), robots.groups.last_mut()) {
                ("user-agent", Some(group)) if !in_rules => group.agents.push(value),
                ("user-agent", _) => {
                    robots.groups.push(Group { agents: vec![value], rules: vec![], crawl_delay_ms: None });
                    in_rules = false;
                }
                ("allow" | "disallow", Some(group)) => {
                    group.rules.push(Rule { allow: name == "allow", pattern: value });
                    in_rules = true;
                }
                ("crawl-delay", Some(group)) => {
                    group.crawl_delay_ms = Some((value.parse::<f64>().unwrap() * 1000.0).round() as u64);
                    in_rules = true;
                }
                ("sitemap", _) => robots.sitemaps.push(value),
                _ => {}
            }
        }
        robots
    }

    #[test]
    fn every_file_says_what_the_rules_are() {
        let world = World::new(&Config { domains: 800, ..Config::profile(Profile::Hostile) }).unwrap();
        let mut kinds = std::collections::BTreeSet::new();
        for (id, host) in world.host_ids().zip(world.hosts()) {
            let Some(rules) = world.robots(id) else { continue };
            let reply = reply(&world, id);
            let mut found = read(&reply.body);
            if host.robots == Some(Character::RobotsHuge) {
                assert!(reply.body.len() > 500 << 10);
                // What stands past the limit closes nothing.
                assert_eq!(found.groups.pop().unwrap().rules[0].pattern, "/never/");
            }
            assert_eq!(found, rules, "{}", String::from_utf8_lossy(&reply.body));
            kinds.insert(host.robots);
        }
        assert!(kinds.len() >= 11, "{kinds:?}");
    }
}
