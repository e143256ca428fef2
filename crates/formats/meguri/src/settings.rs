//! How a file is written. The settings stand in the file's metadata, so that decoding and encoding again gives its bytes.

use crate::codec::{Codec, REFERENCE_LEVEL};
use crate::error::{Error, Result};
use crate::filter::DEFAULT_BITS;
use crate::footer::Metadata;

/// The metadata key of [`Settings`]; absent in files of the reference.
pub const SETTINGS_KEY: &[u8] = b"trawl";
/// Rows of a page unless told otherwise. A lookup unpacks one page of each column it needs; each page costs 74 bytes a
/// column in its header and the footer.
pub const DEFAULT_PAGE_ROWS: u32 = 8192;
/// Arena bytes of a frame unless told otherwise: what one text costs to read.
pub const DEFAULT_FRAME_BYTES: u32 = 256 << 10;
/// zstd level unless told otherwise: writing takes half the time of level 6, files are three percent larger.
pub const DEFAULT_LEVEL: i32 = 3;
/// Rows of one host that are worth key pages of their own: within a host path keys ascend, and their differences need
/// fewer bits than the keys.
pub(crate) const OWN_KEY_PAGES: usize = 384;
/// The most rows a page may have.
pub const MAX_PAGE_ROWS: u32 = 1 << 20;

/// Which seen filter is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenFilter {
    /// None.
    None,
    /// A blocked Bloom filter for one false positive in a hundred: 11 bits a URL.
    Bloom,
    /// A ribbon of this many bits (1 to 16) a slot.
    Ribbon(u8),
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The reference's layout: nominal encodings, the arena in one frame, nothing that was not asked for, no
    /// settings in the metadata. With [`Codec::None`] the bytes equal the reference's.
    pub reference: bool,
    /// The block codec.
    pub codec: Codec,
    /// Of zstd, -7 to 22.
    pub level: i32,
    /// Most rows of a page; 0 for one page a column (reference's layout only).
    pub page_rows: u32,
    /// Arena bytes of a frame.
    pub frame_bytes: u32,
    /// Whether a schedule index is written when a row is scheduled.
    pub schedule: bool,
    /// The seen filter.
    pub filter: SeenFilter,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            reference: false,
            codec: Codec::Zstd,
            level: DEFAULT_LEVEL,
            page_rows: DEFAULT_PAGE_ROWS,
            frame_bytes: DEFAULT_FRAME_BYTES,
            schedule: true,
            filter: SeenFilter::Ribbon(DEFAULT_BITS),
        }
    }
}

impl Settings {
    /// For files that are kept or shipped: as small as can be. Writing takes twenty times as long, and one text of the
    /// arena costs 8 MiB to unpack.
    pub fn pack() -> Self {
        Settings { level: 19, page_rows: 32_768, frame_bytes: 8 << 20, ..Settings::default() }
    }

    /// As the reference's commands write: one page a column, neither filter nor schedule index.
    pub fn reference(codec: Codec) -> Self {
        Settings {
            reference: true,
            codec,
            level: REFERENCE_LEVEL,
            page_rows: 0,
            frame_bytes: 0,
            schedule: false,
            filter: SeenFilter::None,
        }
    }

    /// Fails on a value that no file can be written with.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::Refused(what));
        if self.page_rows > MAX_PAGE_ROWS || self.page_rows == 0 && !self.reference {
            return refuse(format!("{} rows a page: expected 1 to {MAX_PAGE_ROWS}", self.page_rows));
        }
        if !self.reference && !(1 << 10..=16 << 20).contains(&self.frame_bytes) {
            return refuse(format!("arena frames of {} bytes: expected 1 KiB to 16 MiB", self.frame_bytes));
        }
        if !zstd::compression_level_range().contains(&self.level) {
            return refuse(format!("zstd level {}: expected {:?}", self.level, zstd::compression_level_range()));
        }
        match self.filter {
            SeenFilter::Ribbon(r) if !(1..=16).contains(&r) => {
                refuse(format!("a ribbon of {r} bits: expected 1 to 16"))
            }
            _ => Ok(()),
        }
    }

    /// The settings as they stand in metadata, with what a reader of single texts needs of the arena.
    pub(crate) fn to_metadata(self, arena: Option<ArenaFrames>) -> Vec<u8> {
        let filter = match self.filter {
            SeenFilter::None => "none".to_owned(),
            SeenFilter::Bloom => "bloom".to_owned(),
            SeenFilter::Ribbon(r) => format!("ribbon{r}"),
        };
        let Settings { level, page_rows, frame_bytes, schedule, codec, .. } = self;
        let mut text = format!(
            "version=1 codec={} level={level} page_rows={page_rows} frame_bytes={frame_bytes} filter={filter} schedule={}",
            codec as u8,
            u8::from(schedule)
        );
        if let Some(ArenaFrames { count, crc }) = arena {
            text.push_str(&format!(" frames={count} frames_crc={crc:08x}"));
        }
        text.into_bytes()
    }

    /// Reads the settings of a file; `None` if it says nothing, or nothing that this version understands.
    pub(crate) fn from_metadata(metadata: &Metadata) -> Option<(Settings, Option<ArenaFrames>)> {
        let text = std::str::from_utf8(metadata.get(SETTINGS_KEY)?).ok()?;
        let value = |name: &str| text.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let number = |name: &str| value(name)?.parse::<u32>().ok();
        if number("version")? != 1 {
            return None;
        }
        let filter = match value("filter")? {
            "none" => SeenFilter::None,
            "bloom" => SeenFilter::Bloom,
            other => SeenFilter::Ribbon(other.strip_prefix("ribbon")?.parse().ok()?),
        };
        let settings = Settings {
            reference: false,
            codec: Codec::from_id(u8::try_from(number("codec")?).ok()?)?,
            level: value("level")?.parse().ok()?,
            page_rows: number("page_rows")?,
            frame_bytes: number("frame_bytes")?,
            schedule: number("schedule")? == 1,
            filter,
        };
        settings.check().ok()?;
        let arena =
            || Some(ArenaFrames { count: number("frames")?, crc: u32::from_str_radix(value("frames_crc")?, 16).ok()? });
        Some((settings, arena()))
    }
}

/// What a reader must know to believe the arena's seek table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArenaFrames {
    pub count: u32,
    pub crc: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_the_metadata() {
        for filter in [SeenFilter::None, SeenFilter::Bloom, SeenFilter::Ribbon(9)] {
            for arena in [None, Some(ArenaFrames { count: 7, crc: 0x0abc })] {
                let settings = Settings { filter, level: -3, schedule: false, ..Settings::default() };
                let metadata = Metadata::from([(SETTINGS_KEY.to_vec(), settings.to_metadata(arena))]);
                assert_eq!(Settings::from_metadata(&metadata), Some((settings, arena)));
            }
        }
        let unknown = Metadata::from([(SETTINGS_KEY.to_vec(), b"version=2".to_vec())]);
        assert_eq!(Settings::from_metadata(&unknown), None);
        assert_eq!(Settings::from_metadata(&Metadata::new()), None);
    }

    #[test]
    fn impossible_settings_are_refused() {
        let default = Settings::default();
        for wrong in [
            Settings { page_rows: 0, ..default },
            Settings { page_rows: MAX_PAGE_ROWS + 1, ..default },
            Settings { frame_bytes: 0, ..default },
            Settings { level: 99, ..default },
            Settings { filter: SeenFilter::Ribbon(17), ..default },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        assert!(default.check().is_ok() && Settings::reference(Codec::None).check().is_ok());
    }
}
