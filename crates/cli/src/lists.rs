//! Flags of commands that read URL lists.

use trawl_lists::Options;

/// How lists are read.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Lists")]
pub struct ListArgs {
    /// Column or member that holds the URLs: its name, or its number from 1 in a table without a header
    #[arg(long, value_name = "NAME")]
    url_column: Option<String>,

    /// Field separator of a table; detected by default. `\t` is a tab
    #[arg(long, value_name = "CHAR", value_parser = separator)]
    separator: Option<u8>,
}

impl ListArgs {
    /// These flags over `options`.
    pub fn apply(&self, options: Options) -> Options {
        Options { url_column: self.url_column.clone(), separator: self.separator, ..options }
    }
}

fn separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'"' | b'\n' | b'\r') => {
            Ok(*byte)
        }
        _ => Err(format!("expected one character such as ; or |, or \\t, found {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators() {
        assert_eq!((separator(";"), separator("\\t"), separator("\t")), (Ok(b';'), Ok(b'\t'), Ok(b'\t')));
        assert!(["", "ab", "x", "\"", "é", "\n"].iter().all(|text| separator(text).is_err()));
    }
}
