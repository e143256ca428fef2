//! One file per command.

pub mod captures;
pub mod cat;
pub mod cdxj;
pub mod convert;
mod copies;
pub mod crawl;
pub mod demo;
pub mod frontier;
pub mod inspect;
mod kinds;
pub mod lake;
pub mod meta;
pub mod nutch;
pub mod query;
pub mod seqdb;
pub mod serve;
pub mod testweb;
pub mod url;
pub mod verify;

use crate::cli::{Cli, Command, Json};
use crate::exit::Status;
use crate::output::{Form, Output};
use anyhow::bail;

/// Runs what was asked for. `tree` is the whole command line, for the commands that describe it.
pub fn run(cli: Cli, tree: clap::Command) -> anyhow::Result<Status> {
    let form = match (cli.csv, cli.json) {
        (true, _) => Form::Csv,
        (_, Json::No) => Form::Text,
        _ => Form::Json,
    };
    if form == Form::Csv && !cli.command.as_ref().is_some_and(has_csv) {
        bail!(
            "--csv prints listings: those of `trawl query`, `lake datasets`, `lake parts`, `lake deny list`, `frontier schedule`, `frontier map`, `seqdb list`, `seqdb fs ls`, `cdxj lookup`, `url links`, `url sitemap`, `url robots` and `settings`; try --json"
        );
    }
    let mut out = Output::new(form, cli.quiet, cli.credentials);
    let is_version = cli.version || cli.verbose && cli.command.is_none();
    let status = match cli.command {
        _ if is_version => meta::version(&mut out, cli.verbose),
        None => bail!("no command was named: `trawl --help` lists them"),
        Some(Command::Demo(args)) => demo::run(args, &mut out),
        Some(Command::Inspect(args)) => inspect::run(args, &mut out),
        Some(Command::Verify(args)) => verify::run(args, &mut out),
        Some(Command::Cat(args)) => cat::run(args, cli.json == Json::Digest, &mut out),
        Some(Command::Convert(args)) => convert::run(args, &mut out),
        Some(Command::Cdxj(args)) => cdxj::run(args, &mut out),
        Some(Command::Captures(args)) => captures::run(args, &mut out),
        Some(Command::Crawl(args)) => crawl::run(*args, &mut out),
        Some(Command::Lake(args)) => lake::run(args, &mut out),
        Some(Command::Query(args)) => query::run(args, &mut out),
        Some(Command::Serve(args)) => serve::run(args, &mut out),
        Some(Command::Nutch(args)) => nutch::run(args, &mut out),
        Some(Command::Frontier(args)) => frontier::run(args, &mut out),
        Some(Command::Seqdb(args)) => seqdb::run(args, &mut out),
        Some(Command::Url(args)) => url::run(args, &mut out),
        Some(Command::Testweb(args)) => testweb::run(args, &mut out),
        Some(Command::Settings(args)) => meta::settings(args, &tree, &mut out),
        Some(Command::Completions(args)) => meta::completions(args, tree, &mut out),
        Some(Command::Man(args)) => meta::man(args, tree, &mut out),
    }?;
    out.flush()?;
    Ok(status)
}

/// Whether a command prints a listing.
fn has_csv(command: &Command) -> bool {
    match command {
        Command::Query(_) | Command::Settings(_) => true,
        Command::Lake(args) => args.is_listing(),
        Command::Frontier(args) => args.is_listing(),
        Command::Seqdb(args) => args.is_listing(),
        Command::Url(args) => args.is_listing(),
        Command::Cdxj(args) => args.is_listing(),
        _ => false,
    }
}
