//! The query of the key form: decode, filter, sort, write again (rule 10).

use std::cmp::Ordering;

use super::Policy;
use crate::percent::{self, KEY_QUERY};

/// A query of more pieces counts as empty, as in the reference.
const MAX_PIECES: usize = 10_000;

pub fn push(query: &str, policy: &Policy, out: &mut String) {
    if memchr::memchr_iter(b'&', query.as_bytes()).count() >= MAX_PIECES {
        return;
    }
    let mark = out.len();
    out.push('?');
    let start = out.len();
    let mut ordered = true;
    let mut previous = start..start;
    for piece in query.split('&') {
        if piece.contains(';') || !percent::well_formed(piece.as_bytes()) {
            continue;
        }
        let before = out.len();
        if before > start {
            out.push('&');
        }
        let begin = out.len();
        if !push_piece(piece, policy, out) {
            out.truncate(before);
            continue;
        }
        let written = out.get(begin..).unwrap_or_default();
        ordered &= out.get(previous.clone()).is_none_or(|previous| compare(previous, written).is_le());
        previous = begin..out.len();
    }
    if out.len() == start {
        out.truncate(mark);
    } else if !ordered {
        sort(start, out);
    }
}

/// Writes one piece in canonical spelling; false if it is to be skipped.
fn push_piece(piece: &str, policy: &Policy, out: &mut String) -> bool {
    let begin = out.len();
    let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
    percent::normalise_with(key, KEY_QUERY, out, push_byte);
    let key_end = out.len();
    if !value.is_empty() {
        out.push('=');
        percent::normalise_with(value, KEY_QUERY, out, push_byte);
    }
    if policy.fold_case
        && let Some(written) = out.get_mut(begin..)
    {
        written.make_ascii_lowercase();
    }
    let key = out.get(begin..key_end).unwrap_or_default();
    out.len() > begin && policy.keeps(key, decode(key))
}

fn push_byte(byte: u8, out: &mut String) {
    if byte == b' ' { out.push('+') } else { percent::push_escaped(byte, out) }
}

fn sort(start: usize, out: &mut String) {
    let written = out.get(start..).unwrap_or_default().to_owned();
    out.truncate(start);
    let mut pieces: Vec<&str> = written.split('&').collect();
    pieces.sort_by(|a, b| compare(a, b));
    for (index, piece) in pieces.into_iter().enumerate() {
        if index > 0 {
            out.push('&');
        }
        out.push_str(piece);
    }
}

/// By decoded key, then decoded value.
fn compare(a: &str, b: &str) -> Ordering {
    let (a_key, a_value) = a.split_once('=').unwrap_or((a, ""));
    let (b_key, b_value) = b.split_once('=').unwrap_or((b, ""));
    decode(a_key).cmp(decode(b_key)).then_with(|| decode(a_value).cmp(decode(b_value)))
}

/// The bytes a canonical spelling stands for.
fn decode(text: &str) -> impl Iterator<Item = u8> + Clone {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let byte = *bytes.get(at)?;
        match percent::escape_at(bytes, at) {
            Some(decoded) => {
                at += 3;
                Some(decoded)
            }
            None => {
                at += 1;
                Some(if byte == b'+' { b' ' } else { byte })
            }
        }
    })
}
