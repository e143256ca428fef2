//! `trawl seqdb create`.

use super::told;
use crate::exit::Status;
use crate::output::Output;
use std::path::PathBuf;
use trawl_seqdb::{Access, CreateHindex, CreateKvseq, CreatePerm, Kvseq, Purpose, Repr, Settings, design};

/// What is created.
#[derive(Debug, clap::Subcommand)]
pub enum What {
    /// Creates an empty sequence of keys and values
    ///
    /// Representations: int8 int16 int32 int64 (a length of so many bits before the string), fixed:N, lim8:N (room for N
    /// bytes, so that a string can change its length), or the number as stored.
    ///
    /// Examples:
    ///   trawl seqdb create kvseq words.kvseq
    ///   trawl seqdb create kvseq counts.kvseq --keyrepr fixed:8 --valrepr fixed:8
    #[command(verbatim_doc_comment)]
    Kvseq {
        #[command(flatten)]
        common: Common,
        /// How keys are stored
        #[arg(long, default_value = "int8", value_name = "REPR")]
        keyrepr: Repr,
        /// How values are stored
        #[arg(long, default_value = "int64", value_name = "REPR")]
        valrepr: Repr,
        /// Store entries without a delete flag, which saves one byte each
        #[arg(long)]
        no_delete: bool,
        /// Entries start at multiples of this
        #[arg(long, default_value_t = 0, value_name = "N")]
        align: u64,
        /// Let the file grow in steps of this many bytes; 0: exactly as needed
        #[arg(long, default_value_t = design::DEFAULT_FILEINCR, value_name = "N")]
        fileincr: i64,
    },
    /// Creates an empty hash table over the keys of a kvseq
    ///
    /// Fill it with `trawl seqdb index-rebuild`, or by adding entries with --index. It grows by itself.
    ///
    /// Example:
    ///   trawl seqdb create hindex words.hindex --container words.kvseq --htsize 20011
    #[command(verbatim_doc_comment)]
    Hindex {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        about: About,
        /// Number of cells; it grows when three quarters are used
        #[arg(long, default_value_t = 1021, value_name = "N")]
        htsize: u64,
        /// Words of a cell: 1, or 2 with stored hashes
        #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2))]
        cellsz: u64,
    },
    /// Creates an empty array of pointers into a kvseq
    ///
    /// Example:
    ///   trawl seqdb create perm words.perm --container words.kvseq
    #[command(verbatim_doc_comment)]
    Perm {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        about: About,
    },
}

/// What every file has.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// The file
    file: PathBuf,
    /// Bytes of the superblock
    #[arg(long, default_value_t = design::DEFAULT_SBSIZE, value_name = "N")]
    sbsize: u64,
    /// A note about the purpose of the file: up to 8 bytes
    #[arg(long, default_value = "", value_name = "TEXT", value_parser = purpose)]
    purpose: Purpose,
}

/// What an index or a perm is about.
#[derive(Debug, clap::Args)]
pub struct About {
    /// The kvseq that it points into
    #[arg(long, value_name = "KVSEQ")]
    container: PathBuf,
}

fn purpose(text: &str) -> Result<Purpose, &'static str> {
    Purpose::new(text).ok_or("--purpose has at most 8 bytes")
}

/// Runs the command.
pub fn run(what: What, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let (kind, file) = match what {
        What::Kvseq { common: Common { file, sbsize, purpose }, keyrepr, valrepr, no_delete, align, fileincr } => {
            let (key, value, delflag) = (keyrepr, valrepr, !no_delete);
            let default = CreateKvseq::default();
            let create = CreateKvseq { sbsize, purpose, key, value, delflag, align, fileincr, ..default };
            create.create(&file, settings)?.close()?;
            ("kvseq", file)
        }
        What::Hindex { common: Common { file, sbsize, purpose }, about, htsize, cellsz } => {
            about.expect_kvseq(settings)?;
            let create = CreateHindex { sbsize, purpose, htsize, cellsz, ..CreateHindex::default() };
            create.create(&file, settings)?.close()?;
            ("hindex", file)
        }
        What::Perm { common: Common { file, sbsize, purpose }, about } => {
            about.expect_kvseq(settings)?;
            CreatePerm { sbsize, purpose, ..CreatePerm::default() }.create(&file, settings)?.close()?;
            ("perm", file)
        }
    };
    let name = file.display().to_string();
    let json = serde_json::json!({"type": "created", "file": name, "format": kind});
    told(out, &json, &format!("{name}: {kind}"))
}

impl About {
    fn expect_kvseq(&self, settings: &Settings) -> anyhow::Result<()> {
        Kvseq::open(&self.container, Access::Read, settings)?.close()?;
        Ok(())
    }
}
