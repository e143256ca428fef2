//! `trawl seqdb superblock`.

use crate::containers::Superblock;
use crate::exit::Status;
use crate::output::Output;
use anyhow::{Context, bail};
use serde::Serialize;
use std::path::PathBuf;
use trawl_seqdb::{Purpose, Settings, inspect, set_variables};

/// Shows the variables of a container file, or changes them
///
/// Changing is rarely wise; a smaller ISZ for files to come is an example that is. SBSIZE and FORMAT cannot be changed.
///
/// Examples:
///   trawl seqdb superblock docs.data
///   trawl seqdb superblock docs.data --set ISZ 128
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct SuperblockArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Set a variable: a number, 0x and hex digits, or for PURPOSE a text of up to 8 bytes
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], action = clap::ArgAction::Append, allow_negative_numbers = true)]
    set: Vec<String>,
}

#[derive(Serialize)]
struct Facts {
    file: String,
    #[serde(flatten)]
    superblock: Superblock,
}

/// Runs the command.
pub fn run(args: SuperblockArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    if !args.set.is_empty() {
        let pairs = args.set.chunks_exact(2).map(|pair| match pair {
            [name, value] => Ok((name.clone(), parse_value(name, value)?)),
            _ => bail!("--set takes a name and a value"),
        });
        set_variables(&args.file, &pairs.collect::<anyhow::Result<Vec<_>>>()?, settings)?;
    }
    let seen = inspect(&args.file, settings)?;
    let facts = Facts { file: args.file.display().to_string(), superblock: Superblock::from(&seen) };
    out.fact(&facts, |w| write!(w, "{seen}"))?;
    Ok(Status::Done)
}

/// A number, or the text of a PURPOSE.
fn parse_value(name: &str, text: &str) -> anyhow::Result<i64> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(u64::cast_signed),
        None => text.parse().ok(),
    };
    match number {
        Some(number) => Ok(number),
        None if name == "PURPOSE" => {
            Purpose::new(text).map(Purpose::to_value).context("PURPOSE has at most 8 bytes, and no NUL")
        }
        None => bail!("{name}: expected a number or 0x and hex digits, found {text:?}"),
    }
}
