//! From settings to hosts: names, page counts, and the characters of each host.

use std::collections::HashMap;

use super::form::Draws;
use super::page::Style;
use super::text::{Language, Pool};
use super::{HOST_FANOUT, Host, World};
use crate::character::{Axis, Character, Draw};
use crate::config::Config;
use crate::dice::{Dice, purpose};
use crate::{names, words};

/// Share of domains with a second host, percent.
const SECOND_HOST_PERCENT: u64 = 15;

/// Drawers for the axes that concern hosts.
struct HostDraws {
    transport: Draw,
    certificate: Draw,
    robots: Draw,
    conduct: Draw,
    announcement: Draw,
    trap: Draw,
    absence: Draw,
    address: Draw,
    shape: Draw,
    name: Draw,
}

pub(super) fn build(config: &Config) -> World {
    let draw = |axis| Draw::new(&config.shares, axis);
    let draws = HostDraws {
        transport: draw(Axis::Transport),
        certificate: draw(Axis::Certificate),
        robots: draw(Axis::Robots),
        conduct: draw(Axis::Conduct),
        announcement: draw(Axis::Announcement),
        trap: draw(Axis::Trap),
        absence: draw(Axis::Absence),
        address: draw(Axis::Address),
        shape: draw(Axis::Shape),
        name: draw(Axis::Name),
    };
    let names = host_names(config);
    let counts = page_counts(config, names.len());
    let mut hosts = Vec::with_capacity(names.len());
    let mut hubs = 0;
    for ((at, (name, domain, domain_at)), pages) in (0u32..).zip(names).zip(counts) {
        let mut host = new_host(config, &draws, at, name, pages);
        (host.domain, host.domain_at) = (domain, domain_at);
        if matches!(host.robots, Some(Character::RobotsDelay | Character::RobotsPartialDelay)) {
            host.pages = host.pages.min(config.max_pages_of_delayed);
        }
        // The next host must have a hub before it that links it.
        let next_needs = (at + 1).saturating_sub(config.seeds) / HOST_FANOUT;
        if at < config.seeds || hubs <= next_needs {
            soothe(&mut host);
        }
        if is_sound(&host) {
            host.hub = Some(hubs);
            hubs += 1;
        }
        hosts.push(host);
    }
    let mut first_page = Vec::with_capacity(hosts.len());
    let mut page_count = 0u64;
    for host in &hosts {
        first_page.push(page_count);
        page_count += u64::from(host.pages);
    }
    let by_name = (0u32..).zip(&hosts).map(|(at, host)| (host.name.clone(), at)).collect::<HashMap<_, _>>();
    World {
        hosts,
        by_name,
        first_page,
        page_count,
        pool: Pool::new(config.seed),
        draws: Draws::new(&config.shares),
        config: config.clone(),
    }
}

fn new_host(config: &Config, draws: &HostDraws, at: u32, name: String, pages: u32) -> Host {
    let mut dice = Dice::new(config.seed, purpose::HOST, at.into(), 0);
    let branching = u32::try_from(dice.range(4, 14)).unwrap_or(4);
    let style = Style::draw(&mut dice);
    let language = Language::of(&name, &mut dice);
    let transport = draws.transport.draw(&mut dice);
    let certificate = draws.certificate.draw(&mut dice).filter(|_| transport.is_some());
    // Axes that came later have dice of their own: a web without their characters stays the web it was.
    let mut later = Dice::new(config.seed, purpose::HOST, at.into(), 2);
    let style = match draws.address.draw(&mut later) {
        Some(Character::SemicolonQuery) => Style::Semicolon,
        Some(_) => Style::Pipe,
        None => style,
    };
    let shape = draws.shape.draw(&mut later);
    let branching = if shape.is_some() { pages } else { branching };
    let resolution = draws.name.draw(&mut later);
    Host {
        name,
        domain: 0,
        domain_at: 0,
        pages,
        branching,
        hub: None,
        style,
        language,
        transport,
        certificate,
        robots: draws.robots.draw(&mut dice),
        conduct: draws.conduct.draw(&mut dice),
        announcement: draws.announcement.draw(&mut dice),
        trap: draws.trap.draw(&mut dice),
        absence: draws.absence.draw(&mut dice),
        shape,
        resolution,
    }
}

/// Whether any crawler that keeps the rules reads the home page of this host.
fn is_sound(host: &Host) -> bool {
    let shut = [Character::RobotsClosed, Character::RobotsError, Character::RobotsLoop];
    host.certificate.is_none() && !host.is_dead() && !host.robots.is_some_and(|r| shut.contains(&r))
}

/// Takes away what keeps a host from being a hub.
fn soothe(host: &mut Host) {
    if !is_sound(host) {
        (host.certificate, host.conduct, host.robots) = (None, None, None);
    }
}

/// (host name, number of its domain, where the domain begins in the name), unique, in order of popularity.
fn host_names(config: &Config) -> Vec<(String, u32, u8)> {
    let mut out = Vec::new();
    for (at, domain) in (0u32..).zip(names::domains(config.seed, super::index(config.domains))) {
        let mut dice = Dice::new(config.seed, purpose::HOST, at.into(), 1);
        let mut push = |label: &str| {
            let begins = u8::try_from(label.len()).unwrap_or(0);
            out.push((format!("{label}{domain}"), at, begins));
        };
        push(if dice.percent(60) { "www." } else { "" });
        if dice.percent(SECOND_HOST_PERCENT) {
            push(&format!("{}.", dice.pick(words::SUBDOMAINS)));
        }
    }
    out
}

/// Zipf page counts, dealt to the hosts in an order of their own: a popular host need not be a large one.
fn page_counts(config: &Config, hosts: usize) -> Vec<u32> {
    let weights: Vec<f64> = (1..=hosts).map(|rank| (rank as f64).powf(-config.zipf)).collect();
    let total: f64 = weights.iter().sum();
    let mut order: Vec<(u64, usize)> =
        (0..hosts).map(|at| (Dice::new(config.seed, purpose::RANK, at as u64, 0).next(), at)).collect();
    order.sort_unstable();
    let mut dealt: Vec<(usize, u32)> = order
        .into_iter()
        .zip(weights)
        .map(|((_, at), weight)| {
            let share = (f64::from(config.pages) * weight / total).round();
            // `as` saturates, and the value is a small positive number anyway.
            (at, (share as u32).clamp(1, config.max_pages_per_host))
        })
        .collect();
    dealt.sort_unstable();
    dealt.into_iter().map(|(_, pages)| pages).collect()
}
