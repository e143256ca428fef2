//! seqdb containers, for the commands that take any format.

mod contents;
mod events;
mod load;

pub use contents::{Contents, Row, cat_entries, cat_file, cat_files, value};
pub use events::{PagesSource, captures, each_event};
pub use load::Loader;

use crate::system;
use crate::units::{show_bytes, show_count};
use crate::verify::Fault;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use trawl_seqdb::{
    Access, Counted, Filesys, Findings, Hindex, Inspection, Kind, Kvseq, Pages, Perm, Settings, Whole, inspect,
};
use trawl_warc::Severity;

/// Defaults, with a name for whoever finds a container locked.
pub fn settings(program: &str) -> Settings {
    let holder = trawl_io::describe_holder(program, &system::now().rfc3339_seconds());
    Settings::new(system::clock(), holder)
}

/// A byte string: text where it is UTF-8, else base64 in JSON and escapes for people.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a>(pub &'a [u8]);

#[derive(Serialize)]
struct Base64 {
    base64: String,
}

impl Serialize for Text<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Base64 { base64: data_encoding::BASE64.encode(self.0) }.serialize(serializer),
        }
    }
}

impl std::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => f.write_str("\\\\")?,
                    '\t' => f.write_str("\\t")?,
                    '\n' => f.write_str("\\n")?,
                    '\r' => f.write_str("\\r")?,
                    c if c.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(c))?,
                    // The other control characters, which a terminal might obey too.
                    c if c.is_control() => {
                        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                            write!(f, "\\x{byte:02x}")?;
                        }
                    }
                    c => write!(f, "{c}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// What a superblock says, as JSON.
#[derive(Debug, Serialize)]
pub struct Superblock {
    format: &'static str,
    purpose: String,
    unix_bytes: u64,
    bytes: u64,
    clean: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writer: Option<String>,
    variables: Vec<Variable>,
}

#[derive(Debug, Serialize)]
struct Variable {
    name: String,
    value: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
}

impl From<&Inspection> for Superblock {
    fn from(seen: &Inspection) -> Self {
        let variable = |v: &trawl_seqdb::Variable| {
            let (name, value, remark) = (v.name.clone(), v.value, v.remark.clone());
            Variable { name, value, remark }
        };
        Superblock {
            format: seen.kind.as_str(),
            purpose: seen.purpose.clone(),
            unix_bytes: seen.unix_bytes,
            bytes: seen.bytes,
            clean: seen.clean,
            writer: seen.writer.clone(),
            variables: seen.variables.iter().map(variable).collect(),
        }
    }
}

/// What is in a container file, for `trawl inspect`.
#[derive(Debug, Serialize)]
pub struct Container {
    #[serde(flatten)]
    superblock: Option<Superblock>,
    /// What it holds, in numbers.
    #[serde(serialize_with = "as_object")]
    counts: Vec<(&'static str, u64)>,
    /// Its first entries: a name or key, and bytes.
    sample: Vec<Entry>,
    /// Why it cannot be read further.
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<String>,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    bytes: u64,
}

impl Entry {
    fn new(name: &[u8], bytes: u64) -> Self {
        Entry { name: Text(name).to_string(), bytes }
    }
}

fn as_object<S: serde::Serializer>(counts: &[(&'static str, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().copied())
}

impl Container {
    /// Looks at a container file. A data file stands for its filesys.
    pub fn of(path: &Path, limit: usize) -> anyhow::Result<Self> {
        let settings = settings("trawl inspect");
        let mut it = Container { superblock: None, counts: Vec::new(), sample: Vec::new(), damage: None };
        let looked = inspect(path, &settings).and_then(|seen| {
            it.superblock = Some(Superblock::from(&seen));
            it.look(path, &seen, limit, &settings)
        });
        match looked {
            // The file cannot be read at all.
            Err(error @ trawl_seqdb::Error::Io(_)) => Err(error.into()),
            Err(error) => Ok(Container { damage: Some(error.to_string()), ..it }),
            Ok(()) => Ok(it),
        }
    }

    fn look(&mut self, path: &Path, seen: &Inspection, limit: usize, settings: &Settings) -> trawl_seqdb::Result<()> {
        match seen.kind {
            // By its neighbours too: what it says it is for may be what is broken.
            Kind::Kvseq if path.extension().is_some_and(|suffix| suffix == trawl_seqdb::design::DATA_SUFFIX) => {
                match Whole::of(path, settings)? {
                    Whole::Pages(paths) => {
                        let pages = Pages::open(&paths, Access::Read, settings)?;
                        self.counts = vec![("captures", pages.len()), ("urls", pages.url_count())];
                        self.files(pages.filesys(), limit)?;
                    }
                    Whole::Filesys(paths) => {
                        let fs = Filesys::open(&paths, Access::Read, settings)?;
                        self.counts = vec![("files", fs.stats().files)];
                        self.files(&fs, limit)?;
                    }
                    _ => self.entries(path, limit, settings)?,
                }
            }
            Kind::Kvseq => self.entries(path, limit, settings)?,
            Kind::Hindex => {
                let index = Hindex::open(path, Access::Read, settings)?;
                let deleted = index.used_cells().saturating_sub(index.keys());
                self.counts = vec![("cells", index.htsize()), ("keys", index.keys()), ("deleted", deleted)];
            }
            Kind::Perm => self.counts = vec![("pairs", Perm::open(path, Access::Read, settings)?.len())],
        }
        Ok(())
    }

    fn entries(&mut self, path: &Path, limit: usize, settings: &Settings) -> trawl_seqdb::Result<()> {
        let kv = Kvseq::open(path, Access::Read, settings)?;
        self.counts.extend(kv.entries().map(|n| ("entries", n)));
        self.counts.extend(kv.live_entries().map(|n| ("live", n)));
        let mut scan = kv.scan().keys_only();
        while let Some(item) = scan.next_entry()?.filter(|_| self.sample.len() < limit) {
            self.sample.push(Entry::new(item.key, item.value_len));
        }
        Ok(())
    }

    fn files(&mut self, fs: &Filesys, limit: usize) -> trawl_seqdb::Result<()> {
        let stats = fs.stats();
        self.counts.extend([("used_bytes", stats.used_bytes), ("dead_bytes", stats.dead_bytes)]);
        let mut files = fs.files();
        while self.sample.len() < limit {
            let Some(info) = files.next_file()? else { break };
            self.sample.push(Entry::new(&info.name, info.size));
        }
        Ok(())
    }

    /// Whether it could not be read to the end.
    pub fn is_damaged(&self) -> bool {
        self.damage.is_some()
    }

    /// Shows it to a person.
    pub fn write(&self, file: &str, w: &mut dyn Write) -> io::Result<()> {
        let Some(sb) = &self.superblock else {
            return writeln!(w, "{file}: seqdb\n  damaged: {}", self.damage.as_deref().unwrap_or_default());
        };
        let purpose = if sb.purpose.is_empty() { String::new() } else { format!(" ({})", sb.purpose) };
        let state = match &sb.writer {
            Some(writer) => format!(", being written by {writer}"),
            None if sb.clean == Some(false) => ", not closed properly".to_owned(),
            None => String::new(),
        };
        write!(w, "{file}: {}{purpose}", sb.format)?;
        for (what, n) in &self.counts {
            match what.strip_suffix("_bytes") {
                Some(what) => write!(w, ", {} {what}", show_bytes(*n))?,
                None => write!(w, ", {} {what}", show_count(*n))?,
            }
        }
        writeln!(w, ", {} of {} in use{state}", show_bytes(sb.bytes), show_bytes(sb.unix_bytes))?;
        for Entry { name, bytes } in &self.sample {
            writeln!(w, "  {:>10}  {name}", show_bytes(*bytes))?;
        }
        self.damage.iter().try_for_each(|damage| writeln!(w, "  damaged: {damage}"))
    }
}

/// Whether an error tells of a broken container, and not of a file that cannot be read or is in use.
pub fn is_damage(error: &anyhow::Error) -> bool {
    use trawl_seqdb::Error;
    error.downcast_ref::<Error>().is_some_and(|e| !matches!(e, Error::Io(_) | Error::LockFailed(_) | Error::Sort(_)))
}

/// What a check of containers came to.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Checked {
    /// Containers: a filesys is one, whatever its files.
    pub containers: u64,
    /// Files, entries, keys or pairs in them.
    pub entries: u64,
    /// What is wrong.
    pub faults: u64,
}

/// Checks the containers that the files are part of, each once.
pub fn verify<'a>(
    files: impl Iterator<Item = &'a Path>,
    memory: usize,
    on_fault: &mut dyn FnMut(Fault),
) -> anyhow::Result<Checked> {
    let settings = Settings { sort_memory_bytes: memory, ..settings("trawl verify") };
    let mut findings = Findings::new();
    let mut wholes: Vec<Whole> = Vec::new();
    for file in files {
        match Whole::of(file, &settings) {
            Ok(whole) if wholes.contains(&whole) => {}
            Ok(whole) => wholes.push(whole),
            Err(error) => findings.take(error)?,
        }
    }
    let within = |hindex: &Path| wholes.iter().any(|w| matches!(w, Whole::Map(files) if files.hindex == hindex));
    let mut checked = Checked::default();
    for whole in wholes.iter().filter(|w| !matches!(w, Whole::Hindex(path, _) if within(path))) {
        checked.containers += 1;
        checked.entries += match whole.verify(&settings, &mut findings, &trawl_seqdb::silent)? {
            Counted::Filesys(counted) => counted.files,
            Counted::Kvseq(counted) => counted.entries,
            Counted::Hindex(counted) => counted.keys,
            Counted::Perm(counted) => counted.pairs,
            _ => 0,
        };
    }
    checked.faults = findings.faults();
    for finding in findings.list() {
        let severity = match finding.severity {
            trawl_seqdb::Severity::Fault => Severity::Fault,
            trawl_seqdb::Severity::Warning => Severity::Note,
        };
        let detail = format!("expected {}, found {}", finding.expected, finding.found);
        let (file, offset) = (finding.path.display().to_string(), Some(finding.offset));
        on_fault(Fault { severity, file, offset, kind: "container", detail });
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_and_told() {
        assert_eq!(Text(b"a\tb\\\xff\n\0").to_string(), "a\\tb\\\\\\xff\\n\\x00");
        assert_eq!(Text("\u{9b}31m".as_bytes()).to_string(), "\\xc2\\x9b31m", "a terminal would obey it");
        assert_eq!(serde_json::to_string(&Text("ü\n".as_bytes())).unwrap(), "\"ü\\n\"");
        assert_eq!(serde_json::to_string(&Text(b"\xff\x00")).unwrap(), "{\"base64\":\"/wA=\"}");
    }
}
