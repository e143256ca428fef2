//! The command line: what there is to say, and what it means.

use crate::commands;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::{OsStr, OsString};
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

const LONG_ABOUT: &str = "\
Trawl turns the web into a lake that you can query.

It crawls politely, archives every exchange in open formats, and answers, for any domain, which datasets hold it and which \
URLs they hold, down to the bytes of one capture.

New here? `trawl demo` shows all of it, without a network.";

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 done, with findings (nothing found, faults in the input); 2 failed.
Settings come from flags, then TRAWL_* environment variables, then trawl.toml: see `trawl settings`.";

/// Where help lists the flags that every command has.
const OUTPUT: &str = "Output";

/// Everything on the command line.
#[derive(Debug, Parser)]
#[command(name = "trawl", about, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
#[command(disable_version_flag = true, arg_required_else_help = true, subcommand_required = false)]
#[command(infer_subcommands = true)]
pub struct Cli {
    /// Print results as JSON, one object per line; `digest` prints hashes in place of long contents
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, value_name = "digest", value_parser = json)]
    #[arg(default_value = "false", default_missing_value = "true", hide_default_value = true, help_heading = OUTPUT)]
    pub json: Json,

    /// Print listings (of `trawl query`, `lake datasets`, `frontier schedule`, `cdxj lookup` and the like) as CSV with a header line
    #[arg(long, global = true, conflicts_with = "json", help_heading = OUTPUT)]
    pub csv: bool,

    /// Print results and errors only, no progress and no remarks
    #[arg(long, short, global = true, help_heading = OUTPUT)]
    pub quiet: bool,

    /// Print user names and passwords in URLs as they were found; they are left out otherwise. Files always keep them
    #[arg(long, global = true, help_heading = OUTPUT)]
    pub credentials: bool,

    /// Print the version
    #[arg(long, short = 'V', action = clap::ArgAction::SetTrue)]
    pub version: bool,

    /// With --version: print what it was built from, too
    #[arg(long, short)]
    pub verbose: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Whether results are JSON, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Json {
    /// Text.
    No,
    /// JSON, nothing left out.
    Complete,
    /// JSON with hashes in place of long contents.
    Digest,
}

fn json(text: &str) -> Result<Json, String> {
    match text {
        "false" => Ok(Json::No),
        "true" => Ok(Json::Complete),
        "digest" => Ok(Json::Digest),
        _ => Err("expected digest, or no value".to_owned()),
    }
}

/// Daily acts are bare verbs; the rest is noun, then verb.
#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(commands::demo::Args),
    Crawl(Box<commands::crawl::Args>),
    Inspect(commands::inspect::Args),
    Verify(commands::verify::Args),
    Cat(commands::cat::Args),
    Convert(commands::convert::Args),
    Lake(commands::lake::Args),
    Query(commands::query::Args),
    Serve(commands::serve::Args),
    Url(commands::url::Args),
    Cdxj(commands::cdxj::Args),
    Captures(commands::captures::Args),
    Nutch(commands::nutch::Args),
    Frontier(commands::frontier::Args),
    Seqdb(commands::seqdb::Args),
    Testweb(commands::testweb::Args),
    Settings(commands::meta::SettingsArgs),
    Completions(commands::meta::CompletionsArgs),
    Man(commands::meta::ManArgs),
}

/// The whole tree, before settings are applied.
pub fn command() -> clap::Command {
    refined(Cli::command())
}

/// Of a repeated flag the last one counts. A number below zero is refused as the value that it is, not as an unknown flag. Help is
/// wrapped to the terminal, not where the source breaks lines.
fn refined(command: clap::Command) -> clap::Command {
    let number = |arg: clap::Arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg };
    let about = command.get_long_about().map(|text| unwrapped(&text.to_string()));
    let command = command.args_override_self(true).mut_args(number).mut_subcommands(refined);
    match about {
        Some(about) => command.long_about(about),
        None => command,
    }
}

/// A text with each paragraph on one line; indented lines, which are examples, stay as they are.
fn unwrapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = "";
    for line in text.lines() {
        let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
        if !out.is_empty() {
            out.push(if is_text(before) && is_text(line) { ' ' } else { '\n' });
        }
        out.push_str(line);
        before = line;
    }
    out
}

/// The arguments, with a value such as `-1s` joined to the flag before it: clap takes only plain numbers below zero for values, and
/// would call this one an unknown flag.
pub fn joined(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    for arg in args {
        let text = arg.to_str().unwrap_or_default();
        let is_value =
            text.len() > 1 && text.starts_with('-') && text.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        match out.last_mut().filter(|last| is_value && text.parse::<f64>().is_err() && is_flag(last)) {
            Some(flag) => flag.push(format!("={text}")),
            None => out.push(arg),
        }
    }
    out
}

fn is_flag(arg: &OsStr) -> bool {
    arg.to_str().is_some_and(|arg| arg.len() > 2 && arg.starts_with("--") && !arg.contains('='))
}

/// An error of clap's, reworded to say which numbers are accepted, and that a value is not from the command line: a flag that was
/// not given cannot be wrong.
pub fn plain(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument {
        // "To pass '--lake' as a value, use '-- --lake'": a flag of another command was meant, not a value.
        error.remove(ContextKind::Suggested);
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let number = std::error::Error::source(&error).and_then(expected_number);
    let (arg, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
    let is_value = matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) && !value.is_empty();
    let is_typed = |is: &dyn Fn(&str) -> bool| std::env::args_os().any(|typed| is(&typed.to_string_lossy()));
    // An empty variable is a flag without a value.
    let flag = arg.split([' ', '=', '[']).next().unwrap_or_default();
    let is_empty = error.kind() == ErrorKind::InvalidValue && value.is_empty() && flag.starts_with("--");
    let is_set = is_value && !is_typed(&|typed| typed.ends_with(&value))
        || is_empty && !is_typed(&|typed| typed == flag || typed.starts_with(&format!("{flag}=")));
    let origin = if is_set { " (set by an environment variable or by trawl.toml)" } else { "" };
    let message = match number {
        Some(expected) => {
            format!("invalid value '{value}' for '{arg}': expected {expected}, found {value:?}{origin}\n")
        }
        None if is_set => {
            let text = error.to_string();
            // The first line says what is wrong; possible values and a hint follow.
            match text.trim_start_matches("error: ").split_once('\n') {
                Some((first, rest)) => format!("{first}{origin}\n{rest}"),
                None => format!("{text}{origin}\n"),
            }
        }
        None => return error,
    };
    clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
}

/// Which number is accepted, if an error is about a number.
fn expected_number(source: &(dyn std::error::Error + 'static)) -> Option<String> {
    let any = "a whole number, 0 or more".to_owned();
    if let Some(error) = source.downcast_ref::<ParseIntError>() {
        let is_large = *error.kind() == IntErrorKind::PosOverflow;
        return Some(if is_large { "a smaller whole number".to_owned() } else { any });
    }
    if source.is::<ParseFloatError>() {
        return Some("a number".to_owned());
    }
    let text = source.to_string();
    let (found, range) = text.split_once(" is not in ")?;
    match range.split_once("..=") {
        // A negative number is not one that is too large.
        Some((least, most)) if least != "0" || !found.starts_with('-') => {
            Some(format!("a whole number from {least} to {most}"))
        }
        _ => range.starts_with("0..").then_some(any),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_lines_and_examples_stay() {
        let text = "Crawls\n\nOne\ntwo.\n\nExamples:\n  a b\n  c\n";
        assert_eq!(unwrapped(text), "Crawls\n\nOne two.\n\nExamples:\n  a b\n  c");
    }

    #[test]
    fn a_value_below_zero_belongs_to_its_flag() {
        let join = |args: &[&str]| joined(args.iter().map(Into::into));
        assert_eq!(join(&["--delay", "-1s", "x"]), ["--delay=-1s", "x"]);
        for same in [&["--depth", "-1"][..], &["-n", "-1s"], &["--a=b", "-1s"], &["--", "-1s"], &["--out", "-x"]] {
            assert_eq!(join(same), same);
        }
    }
}
