//! Content codings and charsets, and the bomb.

use std::io::Write;
use std::sync::OnceLock;

use crate::character::Character;

/// The `Content-Encoding` of a coding, if the client's `Accept-Encoding` allows it.
pub(super) fn negotiate(coding: Option<Character>, accept: Option<&[u8]>) -> Option<(Character, &'static str)> {
    let coding = coding?;
    let name = match coding {
        Character::Gzip => "gzip",
        Character::Brotli => "br",
        Character::Zstd => "zstd",
        Character::Deflate => "deflate",
        _ => return None,
    };
    let accept = std::str::from_utf8(accept?).ok()?;
    let takes = |item: &str| {
        let mut parts = item.split(';').map(str::trim);
        let named = parts.next().is_some_and(|n| n.eq_ignore_ascii_case(name) || n == "*");
        named && !parts.any(|p| p.eq_ignore_ascii_case("q=0"))
    };
    accept.split(',').any(takes).then_some((coding, name))
}

/// A body in a coding; as it was if the coder fails, which memory writers do not.
pub(super) fn encode(coding: Character, body: Vec<u8>) -> Vec<u8> {
    let capacity = body.len() / 2;
    let coded = match coding {
        Character::Gzip => {
            let mut out = flate2::write::GzEncoder::new(Vec::with_capacity(capacity), flate2::Compression::fast());
            out.write_all(&body).and_then(|()| out.finish())
        }
        Character::Deflate => {
            let mut out = flate2::write::ZlibEncoder::new(Vec::with_capacity(capacity), flate2::Compression::fast());
            out.write_all(&body).and_then(|()| out.finish())
        }
        Character::Zstd => zstd::bulk::compress(&body, 1),
        Character::Brotli => {
            let mut out = Vec::with_capacity(capacity);
            let params = brotli::enc::BrotliEncoderParams { quality: 3, ..Default::default() };
            brotli::BrotliCompress(&mut body.as_slice(), &mut out, &params).map(|_| out)
        }
        _ => return body,
    };
    coded.unwrap_or(body)
}

/// Text in a charset that [`crate::World::charset`] names.
pub(super) fn to_charset(text: String, charset: &str) -> Vec<u8> {
    match charset {
        "utf-8" => text.into_bytes(),
        "utf-16le" => [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect(),
        _ => match encoding_rs::Encoding::for_label(charset.as_bytes()) {
            Some(encoding) => encoding.encode(&text).0.into_owned(),
            None => text.into_bytes(),
        },
    }
}

/// A gzip body that decompresses to `bytes` zeros; made once, by the first request for one.
pub(super) fn bomb(bytes: u64) -> &'static [u8] {
    static BOMB: OnceLock<Vec<u8>> = OnceLock::new();
    BOMB.get_or_init(|| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let zeros = vec![0; 1 << 20];
        let mut left = bytes;
        while left > 0 {
            let take = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
            let _ = out.write_all(zeros.get(..take).unwrap_or_default());
            left -= take as u64;
        }
        out.finish().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn codings_are_used_only_if_accepted() {
        let gzip = |accept: &[u8]| negotiate(Some(Character::Gzip), Some(accept)).is_some();
        assert!(gzip(b"gzip") && gzip(b"br, GZIP;q=0.5") && gzip(b"*"));
        assert!(!gzip(b"") && !gzip(b"br") && !gzip(b"gzip;q=0") && !gzip(b"\xff"));
        assert_eq!(negotiate(Some(Character::Gzip), None), None);
        assert_eq!(negotiate(None, Some(b"gzip")), None);
    }

    #[test]
    fn every_coding_decodes_to_the_body() {
        let body = b"the quick brown fox ".repeat(500);
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(&encode(Character::Gzip, body.clone())[..]).read_to_end(&mut out).unwrap();
        assert_eq!(out, body);
        out.clear();
        flate2::read::ZlibDecoder::new(&encode(Character::Deflate, body.clone())[..]).read_to_end(&mut out).unwrap();
        assert_eq!(out, body);
        out.clear();
        brotli::BrotliDecompress(&mut &encode(Character::Brotli, body.clone())[..], &mut out).unwrap();
        assert_eq!(out, body);
        assert_eq!(zstd::decode_all(&encode(Character::Zstd, body.clone())[..]).unwrap(), body);
    }

    #[test]
    fn charsets_hold_the_text() {
        let japanese = "日本の庭";
        assert_eq!(encoding_rs::SHIFT_JIS.decode(&to_charset(japanese.into(), "shift_jis")).0, japanese);
        assert_eq!(encoding_rs::EUC_JP.decode(&to_charset(japanese.into(), "euc-jp")).0, japanese);
        assert_eq!(encoding_rs::UTF_16LE.decode(&to_charset(japanese.into(), "utf-16le")).0, japanese);
        assert_eq!(to_charset("Brücke".into(), "windows-1252"), b"Br\xfccke");
    }

    #[test]
    fn the_bomb_is_small_and_becomes_large() {
        let bytes = 8 << 20;
        let small = bomb(bytes);
        assert!(small.len() < 20_000, "{}", small.len());
        let large = std::io::copy(&mut flate2::read::GzDecoder::new(small), &mut std::io::sink()).unwrap();
        assert_eq!(large, bytes);
    }
}
