//! `trawl frontier inspect`: header and footer.

use crate::exit::Status;
use crate::output::Output;
use serde::Serialize;
use std::path::PathBuf;
use trawl_meguri::inspect::Inspection;

/// Says what is in a file, from its header and footer alone
///
/// Prints rows, range of hosts, regions, and columns with their encodings and bytes. Takes two reads, whatever the size
/// of the file.
///
/// Example:
///   trawl frontier inspect base.meguri
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct InspectArgs {
    /// Files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Facts {
    file: String,
    #[serde(flatten)]
    contents: Inspection,
}

pub fn run(args: &InspectArgs, out: &mut Output) -> anyhow::Result<Status> {
    for path in &args.files {
        let facts = Facts { file: path.display().to_string(), contents: Inspection::of(&super::open(path)?) };
        out.fact(&facts, |w| write!(w, "file         {}\n{}", facts.file, facts.contents))?;
    }
    Ok(Status::Done)
}
