//! The `trawl` binary: thin, every command is a call into a library.

// Doc comments of commands are help texts: their examples are for a terminal.
#![allow(rustdoc::bare_urls)]

mod cli;
mod commands;
mod exit;
mod globs;
mod interrupt;
mod lake_dir;
mod lists;
mod output;
mod progress;
mod queues;
mod settings;
mod system;
mod target;
mod units;

use clap::FromArgMatches;
use std::process::ExitCode;

fn main() -> ExitCode {
    exit::code(run())
}

fn run() -> anyhow::Result<exit::Status> {
    let args = cli::joined(commands::nutch::double_dashes(std::env::args_os()));
    let mut command = settings::apply(cli::command(), &args)?;
    // clap's own exit code for a wrong call is 2, ours for "failed" too; help and version leave with 0.
    let parse = |command: &clap::Command| match command.clone().try_get_matches_from(&args) {
        Ok(matches) => matches,
        Err(error) => cli::plain(error, command).exit(),
    };
    let mut matches = parse(&command);
    // Parsing takes milliseconds, more than a lookup: so it is done again only where settings have changed.
    if let Some(of_run) = commands::crawl::settings_of_run(&command, &matches)? {
        command = of_run;
        matches = parse(&command);
    }
    let mut cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    commands::crawl::note_settings(&mut cli, &command, &matches);
    system::raise_open_files();
    let done = commands::run(cli, command);
    lake_dir::tell_usage();
    done
}
