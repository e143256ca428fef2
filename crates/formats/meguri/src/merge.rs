//! Files into files: merge, split, extract. All of them stream, within the memory of a writer and of one page and a few
//! frames for each input.

use crate::error::{Error, Result};
use crate::keys::KeyPolicy;
use crate::reader::{HostCursor, HostRow, MeguriFile, RowCursor};
use crate::schema::{Extension, STATUS_GONE, Table};
use crate::writer::Writer;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use trawl_url::key::{HostGroup, UrlKey};

/// What a merge leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Rows with status `gone` are dropped.
    pub drop_gone: bool,
    /// Rows and hosts outside this range of host keys (both ends included) are dropped.
    pub range: Option<(u64, u64)>,
    /// Rows whose key is not the one of their URL are dropped, where the file says how keys are made: see
    /// [`MeguriFile::key_fault`]. An older row of the key takes the place of such a row. Costs a hash for each row.
    pub sound_keys: bool,
}

impl Keep {
    fn has(&self, host_key: u64) -> bool {
        self.range.is_none_or(|(lo, hi)| (lo..=hi).contains(&host_key))
    }
}

/// What became of the rows of all inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Merged {
    /// Rows read.
    pub rows_in: u64,
    /// Rows given to the writer.
    pub rows_out: u64,
    /// Rows whose key a newer file has, or an earlier row of the same file.
    pub superseded: u64,
    /// Rows dropped because they are gone.
    pub gone: u64,
    /// Rows dropped because they are outside the range.
    pub outside: u64,
    /// Rows dropped because their key is not the one of their URL.
    pub wrong_keys: u64,
    /// Hosts given to the writer.
    pub hosts_out: u64,
    /// Hosts whose key a newer file has, or a later row of the same file.
    pub hosts_superseded: u64,
    /// References that lead to no text; the rows are written without it.
    pub dangling: u64,
}

/// The extension columns that a file made of `inputs` needs: those of any of them, as wide as the widest.
pub fn extensions_of(inputs: &[MeguriFile], table: Table) -> Vec<Extension> {
    let mut widths: BTreeMap<u16, u8> = BTreeMap::new();
    for Extension { id, width } in inputs.iter().flat_map(|file| file.extensions(table)) {
        let known = widths.entry(id).or_insert(width);
        *known = (*known).max(width);
    }
    widths.into_iter().map(|(id, width)| Extension { id, width }).collect()
}

/// Merges files into a writer, oldest input first: of rows with one key the newest wins, whole; of hosts too. Keys made by
/// different policies, or for different host groups, do not compare, so such inputs are refused. `on_rows` gets the rows
/// read so far, now and then.
pub fn merge(inputs: &[MeguriFile], keep: &Keep, writer: &mut Writer, on_rows: &mut dyn FnMut(u64)) -> Result<Merged> {
    let mut rules = inputs.iter().map(|file| (file, (file.key_policy(), file.host_group())));
    if let Some((first, rule)) = rules.next()
        && let Some((other, found)) = rules.find(|(_, found)| *found != rule)
    {
        let shown = |file: &MeguriFile, (policy, group): (KeyPolicy, HostGroup)| {
            let group = if group == HostGroup::FullHost { "host name" } else { "registrable domain" };
            format!("{} has keys of policy {} by {group}", file.path().display(), policy.name())
        };
        let (first, other) = (shown(first, rule), shown(other, found));
        return Err(Error::Refused(format!("{first}, {other}: their rows cannot be compared")));
    }
    let mut merged = Merged::default();
    merge_hosts(inputs, keep, writer, &mut merged)?;
    merge_rows(inputs, keep, writer, &mut merged, on_rows)?;
    Ok(merged)
}

fn order(key: UrlKey) -> u128 {
    u128::from(key.host) << 64 | u128::from(key.path)
}

/// The next row of an input: smallest key first, of equal keys the newest input first.
type Head = Reverse<(u128, Reverse<usize>)>;

fn merge_rows(
    inputs: &[MeguriFile],
    keep: &Keep,
    writer: &mut Writer,
    merged: &mut Merged,
    on_rows: &mut dyn FnMut(u64),
) -> Result<()> {
    let mut cursors = inputs.iter().map(MeguriFile::cursor).collect::<Result<Vec<RowCursor>>>()?;
    let mut heap = BinaryHeap::new();
    let next = |cursors: &mut Vec<RowCursor>, input: usize| -> Result<Option<Head>> {
        let (Some(cursor), Some(file)) = (cursors.get_mut(input), inputs.get(input)) else { return Ok(None) };
        let before = cursor.key();
        if !cursor.advance()? {
            return Ok(None);
        }
        let key = cursor.key();
        if let (Some(before), Some(key)) = (before, key)
            && key < before
        {
            return Err(file.unsorted(cursor.number(), before, key));
        }
        Ok(key.map(|key| Reverse((order(key), Reverse(input)))))
    };
    for input in 0..cursors.len() {
        heap.extend(next(&mut cursors, input)?);
    }
    let mut last = None;
    while let Some(mut top) = heap.peek_mut() {
        let Reverse((key, Reverse(input))) = *top;
        merged.rows_in += 1;
        if merged.rows_in.is_multiple_of(65_536) {
            on_rows(merged.rows_in);
        }
        if last == Some(key) {
            merged.superseded += 1;
        } else {
            last = Some(key);
            let (Some(cursor), Some(file)) = (cursors.get_mut(input), inputs.get(input)) else { break };
            let (number, record) = (cursor.number(), cursor.record().copied().unwrap_or_default());
            if !keep.has(record.host_key) {
                merged.outside += 1;
            } else if let Some(row) = cursor.row()? {
                if keep.sound_keys && file.key_fault(number, row.key(), row.url).is_some() {
                    merged.wrong_keys += 1;
                    last = None;
                } else if keep.drop_gone && record.status == STATUS_GONE {
                    merged.gone += 1;
                } else {
                    writer.push(row)?;
                    merged.rows_out += 1;
                }
            }
        }
        match next(&mut cursors, input)? {
            Some(entry) => *top = entry,
            None => {
                std::collections::binary_heap::PeekMut::pop(top);
            }
        }
    }
    merged.dangling += cursors.iter().map(RowCursor::dangling).sum::<u64>();
    on_rows(merged.rows_in);
    Ok(())
}

fn merge_hosts(inputs: &[MeguriFile], keep: &Keep, writer: &mut Writer, merged: &mut Merged) -> Result<()> {
    let mut cursors = inputs.iter().map(MeguriFile::hosts).collect::<Result<Vec<HostCursor>>>()?;
    let mut heads = cursors.iter_mut().map(HostCursor::next_host).collect::<Result<Vec<Option<HostRow>>>>()?;
    while let Some(least) = heads.iter().flatten().map(|host| host.record.host_key).min() {
        let mut newest = None;
        for (head, cursor) in heads.iter_mut().zip(&mut cursors) {
            while head.as_ref().is_some_and(|host| host.record.host_key <= least) {
                merged.hosts_superseded += u64::from(newest.is_some());
                newest = std::mem::replace(head, cursor.next_host()?);
            }
        }
        if let Some(host) = newest.filter(|host| keep.has(host.record.host_key)) {
            writer.push_host(&host)?;
            merged.hosts_out += 1;
        }
    }
    merged.dangling += cursors.iter().map(HostCursor::dangling).sum::<u64>();
    Ok(())
}

/// Copies the rows and hosts of some ranges of host keys (both ends included; ascending, without overlap) from one file,
/// without rows whose key is not the one of their URL. Pages of other hosts are not read.
pub fn extract(file: &MeguriFile, ranges: &[(u64, u64)], writer: &mut Writer) -> Result<Merged> {
    let mut merged = Merged::default();
    let mut hosts = file.hosts()?;
    while let Some(host) = hosts.next_host()? {
        let key = host.record.host_key;
        if ranges.iter().any(|(lo, hi)| (*lo..=*hi).contains(&key)) {
            writer.push_host(&host)?;
            merged.hosts_out += 1;
        }
    }
    merged.dangling += hosts.dangling();
    for (lo, hi) in ranges {
        let mut cursor = file.cursor_over(file.rows_of_hosts(*lo, *hi)?)?;
        let mut last = None;
        while cursor.advance()? {
            merged.rows_in += 1;
            if last == cursor.key() {
                merged.superseded += 1;
                continue;
            }
            let number = cursor.number();
            let Some(row) = cursor.row()? else { continue };
            if file.key_fault(number, row.key(), row.url).is_some() {
                merged.wrong_keys += 1;
                continue;
            }
            last = Some(row.key());
            writer.push(row)?;
            merged.rows_out += 1;
        }
        merged.dangling += cursor.dangling();
    }
    Ok(merged)
}

/// Splits a file at a host key: hosts below it go to `low`, the others to `high`.
pub fn split(file: &MeguriFile, at: u64, low: &mut Writer, high: &mut Writer) -> Result<(Merged, Merged)> {
    let below = match at.checked_sub(1) {
        Some(last) => extract(file, &[(0, last)], low)?,
        None => Merged::default(),
    };
    Ok((below, extract(file, &[(at, u64::MAX)], high)?))
}

/// The ranges of host keys that `ranges` (ascending, without overlap) leave out.
pub fn complement(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut rest = Vec::new();
    let mut next = Some(0u64);
    for (lo, hi) in ranges {
        if let Some(start) = next.filter(|start| start < lo) {
            rest.push((start, lo - 1));
        }
        next = hi.checked_add(1);
    }
    rest.extend(next.map(|start| (start, u64::MAX)));
    rest
}
