//! `trawl seqdb superblock`.

use crate::exit::Status;
use crate::output::Output;
use anyhow::{Context, bail};
use serde::Serialize;
use std::path::PathBuf;
use trawl_seqdb::{Inspection, Purpose, Settings, inspect, set_variables};

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
    #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], action = clap::ArgAction::Append)]
    set: Vec<String>,
}

#[derive(Serialize)]
struct Facts<'a> {
    file: String,
    format: &'a str,
    purpose: &'a str,
    unix_bytes: u64,
    bytes: u64,
    clean: Option<bool>,
    variables: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    value: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<&'a str>,
}

impl<'a> Facts<'a> {
    fn new(seen: &'a Inspection) -> Self {
        let row = |v: &'a trawl_seqdb::Variable| Row { name: &v.name, value: v.value, remark: v.remark.as_deref() };
        Facts {
            file: seen.path.display().to_string(),
            format: seen.kind.as_str(),
            purpose: &seen.purpose,
            unix_bytes: seen.unix_bytes,
            bytes: seen.bytes,
            clean: seen.clean,
            variables: seen.variables.iter().map(row).collect(),
        }
    }
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
    out.fact(&Facts::new(&seen), |w| write!(w, "{seen}"))?;
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
